"""Google: Gemini chat models over its OpenAI-compatible endpoint."""

from penstock.providers.chat_models import DEVELOPER_AS_SYSTEM, chat_models, chat_operation
from penstock.providers.openai_compatible import error_message, failure_kind
from penstock.providers.spec import LITELLM, Provider, Source, bearer, ignored, refused

# The endpoint rejects fields that it does not know. Its usage counts thinking tokens only in the total.
CHAT = chat_operation(
    DEVELOPER_AS_SYSTEM,
    *ignored("seed", "user", "presence_penalty", "frequency_penalty", "logit_bias", "store", "metadata"),
    *refused("logprobs", "top_logprobs"),
)
# Dollars for a million tokens of input, output and cached input; `chat_models` describes the columns.
# Google calls its shutdown dates the earliest possible ones.
MODELS = """
    gemini-3.5-flash        1.5   9     0.15   sound 1.5
    gemini-3.5-flash-lite   0.3   2.5   0.03
    gemini-3.1-pro-preview  2     12    0.2    >200000  4  18  0.4
    gemini-3.1-flash-lite   0.25  1.5   0.025  sound 0.5               until 2027-05-07
    gemini-3-flash-preview  0.5   3     0.05   sound 1
    gemini-2.5-pro          1.25  10    0.125  >200000  2.5  15  0.25  until 2026-10-16
    gemini-2.5-flash        0.3   2.5   0.03                           until 2026-10-16
    gemini-2.5-flash-lite   0.1   0.4   0.01                           until 2026-10-16
"""

# Prices that Google calls introductory, and those that follow them.
GEMINI_4 = """
    gemini-4-carbon  2  10  0.1  from 2026-12-01  4  20  0.2
    gemini-4-argon   2  10  0.1  from 2026-12-01  4  20  0.2
"""
GEMINI_4_SOURCE = Source("docs.laozhang.ai, which quotes Google", "2026-11-11", is_second_hand=True)
FLASH = """
    gemini-3.8-flash  0.75  3.75  0.075  from 2027-01-01  1.5  7.5  0.15
    gemini-3.7-flash  0.75  3.75  0.075  from 2027-01-01  1.5  7.5  0.15
    gemini-3.6-flash  0.75  3.75  0.075  from 2027-01-01  1.5  7.5  0.15
"""
FLASH_SOURCE = Source(
    "the releases of agent-telemetry and PromptLab, which quote Google", "2026-09-30", is_second_hand=True
)

PROVIDER = Provider(
    slug="gemini",
    name="Google Gemini",
    docs="https://ai.google.dev/gemini-api/docs/openai",
    base_url="https://generativelanguage.googleapis.com/v1beta/openai",
    key_env="GEMINI_API_KEY",
    auth=bearer,
    error_message=error_message,
    failure_kind=failure_kind,
    models=(
        *chat_models("google", GEMINI_4_SOURCE, GEMINI_4, CHAT),
        *chat_models("google", FLASH_SOURCE, FLASH, CHAT),
        *chat_models("google", LITELLM, MODELS, CHAT, max_sound_tokens=32),
    ),
)
