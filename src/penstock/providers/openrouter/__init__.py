"""OpenRouter: any chat model that it knows, and images and videos of many providers, at the cost that it reports."""

from penstock.providers.chat_models import chat_operation
from penstock.providers.openrouter import images, media, videos
from penstock.providers.spec import Model, Price, Provider, bearer, fixed

# Sent to OpenRouter as the highest price of a chat, so that the hold is always enough.
MAX_PRICE = {"prompt": "15", "completion": "75", "request": "0.05"}
CHAT = chat_operation(fixed("provider.max_price", MAX_PRICE))
CHAT_PRICE = Price(
    unit="token",
    usd="0.000075",
    input_usd="0.000015",
    each_usd="0.05",
    note="the most that is accepted; what is reported is charged, 2026-11",
)

PROVIDER = Provider(
    slug="openrouter",
    name="OpenRouter",
    docs="https://openrouter.ai/docs",
    base_url="https://openrouter.ai/api/v1",
    key_env="OPENROUTER_API_KEY",
    auth=bearer,
    error_message=media.error_message,
    failure_kind=media.failure_kind,
    models=(Model(id="openrouter/*", upstream="*", op=CHAT, prices=(CHAT_PRICE,)), *images.MODELS, *videos.MODELS),
)
