"""DeepSeek: OpenAI's chat, with the model's reasoning in a field of its own."""

from penstock.providers.compatible import chats, error_kind, error_text
from penstock.providers.spec import Provider, bearer

PROVIDER = Provider(
    slug="deepseek",
    name="DeepSeek",
    docs="https://api-docs.deepseek.com",
    base_url="https://api.deepseek.com/v1",
    key="DEEPSEEK_API_KEY",
    auth=bearer,
    error=error_text,
    kind=error_kind,
    models=chats(
        "deepseek",
        "list price, public tables of 2026-11",
        (
            ("deepseek-v4-pro", "deepseek-v4-pro", "1.32", "3.96"),
            ("deepseek-v4-flash", "deepseek-v4-flash", "0.3", "1.2"),
        ),
    ),
    retired={
        "deepseek/deepseek-chat": "deepseek/deepseek-v4-flash",
        "deepseek/deepseek-reasoner": "deepseek/deepseek-v4-pro",
    },
)
