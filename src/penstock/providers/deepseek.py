"""DeepSeek: OpenAI-compatible chat, with the model's reasoning in a separate field."""

from penstock.providers.chat_models import DEVELOPER_AS_SYSTEM, MAX_TOKENS, chat_models, chat_operation
from penstock.providers.openai_compatible import error_message, failure_kind
from penstock.providers.spec import LITELLM, Provider, bearer

# While the model thinks, the server sends empty lines, or comments in a stream; JSON and event readers skip both.
CHAT = chat_operation(DEVELOPER_AS_SYSTEM, MAX_TOKENS, finish_reasons={b"insufficient_system_resource": b"length"})
# Dollars for a million tokens of input, output and cached input; `chat_models` describes the columns.
# DeepSeek charges less at some hours; these are the prices of the others.
MODELS = """
    deepseek-v4-pro    1.32  3.96  0.044
    deepseek-v4-flash  0.3   1.2   0.006
"""

PROVIDER = Provider(
    slug="deepseek",
    name="DeepSeek",
    docs="https://api-docs.deepseek.com",
    base_url="https://api.deepseek.com/v1",
    key_env="DEEPSEEK_API_KEY",
    auth=bearer,
    error_message=error_message,
    failure_kind=failure_kind,
    models=chat_models("deepseek", LITELLM, MODELS, CHAT),
    retired={
        "deepseek/deepseek-chat": "deepseek/deepseek-v4-flash",
        "deepseek/deepseek-reasoner": "deepseek/deepseek-v4-pro",
    },
)
