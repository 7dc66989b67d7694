"""Groq: open chat models over an OpenAI-compatible API, under the ids that OpenRouter gives them."""

from penstock.providers.chat_models import chat_models, chat_operation, messages_param
from penstock.providers.openai_compatible import error_message, failure_kind
from penstock.providers.spec import LITELLM, Provider, bearer, refused, renamed

# Groq answers 400 to the refused fields, and to a `name` in a message.
CHAT = chat_operation(
    messages_param(drop=("name",)),
    renamed("max_tokens", to="max_completion_tokens"),
    *refused("logprobs", "top_logprobs", "logit_bias"),
)
# Dollars for a million tokens of input, output and cached input; `chat_models` describes the columns.
MODELS = """
    openai/gpt-oss-120b            0.15   0.6  0.075
    openai/gpt-oss-20b             0.075  0.3  0.0375
    openai/gpt-oss-safeguard-20b   0.075  0.3  0.037
    qwen/qwen3.8-27b               0.8    4
"""

PROVIDER = Provider(
    slug="groq",
    name="Groq",
    docs="https://console.groq.com/docs/openai",
    base_url="https://api.groq.com/openai/v1",
    key_env="GROQ_API_KEY",
    auth=bearer,
    error_message=error_message,
    failure_kind=failure_kind,
    models=chat_models("groq", LITELLM, MODELS, CHAT),
)
