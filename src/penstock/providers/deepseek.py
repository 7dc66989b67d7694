"""DeepSeek: OpenAI's chat, with the model's reasoning in a field of its own."""

from penstock.providers.chats import ONE_LIMIT, ONE_VOICE, chats, talk
from penstock.providers.compatible import error_kind, error_text
from penstock.providers.spec import Provider, bearer

# While an answer is being thought of, it sends empty lines, or comments in a stream; both are nothing to a reader.
PROVIDER = Provider(
    slug="deepseek",
    name="DeepSeek",
    docs="https://api-docs.deepseek.com",
    base_url="https://api.deepseek.com/v1",
    key_env="DEEPSEEK_API_KEY",
    auth=bearer,
    error_message=error_text,
    failure_kind=error_kind,
    models=chats(
        "deepseek",
        "public price table, 2026-11, at its dearer hours",
        """
        deepseek-v4-pro    1.32  3.96  0.044
        deepseek-v4-flash  0.3   1.2   0.006
    """,
        talk(ONE_VOICE, ONE_LIMIT, finish={b"insufficient_system_resource": b"length"}),
    ),
    retired={
        "deepseek/deepseek-chat": "deepseek/deepseek-v4-flash",
        "deepseek/deepseek-reasoner": "deepseek/deepseek-v4-pro",
    },
)
