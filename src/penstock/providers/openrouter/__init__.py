"""OpenRouter: any chat model that has a name there, and pictures and films of many makers, at the cost it reports."""

from penstock.providers.chats import talk
from penstock.providers.openrouter import images, told, videos
from penstock.providers.spec import Model, Price, Provider, bearer, fixed

# What a routed chat may cost at most is told to the router, so that what is set aside is always enough.
MOST = {"prompt": "15", "completion": "75", "request": "0.05"}
TALK = talk(fixed("provider.max_price", MOST), priced_extras=frozenset({"plugins", "web_search_options"}))
CHAT = Price(
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
    error_message=told.error_text,
    failure_kind=told.error_kind,
    models=(Model(id="openrouter/*", upstream="*", op=TALK, prices=(CHAT,)), *images.MODELS, *videos.MODELS),
)
