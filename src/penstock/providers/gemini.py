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
# Google calls its shutdown dates the earliest possible ones.
MODELS = """
    gemini-4-argon          2     10    0.1
    gemini-3.8-flash        0.75  3.75  0.075
    gemini-3.7-flash        0.75  3.75  0.075
    gemini-3.6-flash        0.75  3.75  0.075
    gemini-3.5-flash        1.5   9     0.15
    gemini-3.5-flash-lite   0.3   2.5   0.03
    gemini-3.1-pro-preview  2     12    0.2    >200000  4  18  0.4
    gemini-3.1-flash-lite   0.25  1.5   0.025
    gemini-3-flash-preview  0.5   3     0.05
    gemini-2.5-pro          1.25  10    0.125  >200000  2.5  15  0.25  until 2026-10-16
    gemini-2.5-flash        0.3   2.5   0.03                           until 2026-10-16
    gemini-2.5-flash-lite   0.1   0.4   0.01                           until 2026-10-16
"""

# Until 2026-11-30; then both models of Gemini 4 cost twice as much.
CARBON = Source("apidog.com and docs.laozhang.ai, which quote Google", "2026-11-11", is_second_hand=True)

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
        *chat_models("google", CARBON, "gemini-4-carbon 2 10 0.1", CHAT),
        *chat_models("google", LITELLM, MODELS, CHAT),
    ),
)
