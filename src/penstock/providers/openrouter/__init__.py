"""OpenRouter: any chat model that it knows, and images and videos of many providers, at the cost that it reports."""

from math import inf
from typing import Any

from penstock.providers.chat_models import RESPONSES, chat_operation
from penstock.providers.openrouter import images, live, media, videos
from penstock.providers.spec import Model, Price, Provider, Source, bearer, converted, fixed

# Sent to OpenRouter as the highest price of a chat, so that the hold is always enough.
MAX_PRICE = {"prompt": "15", "completion": "75", "request": "0.05"}
_LIMIT = "limit"  # how the first row tells the second one that there is a limit, also if the caller sends no `provider`


def with_limits(preferences: dict[str, Any]) -> dict[str, Any]:
    """The caller's preferences with its highest prices, but none above ours."""
    limits = preferences.pop(_LIMIT)
    written = preferences.get("max_price")
    lower = {
        name: usd
        for name, usd in (written.items() if isinstance(written, dict) else ())
        if _dollars(usd) < _dollars(limits.get(name, "inf"))
    }
    return {**preferences, "max_price": {**limits, **lower}}


def _dollars(value: Any) -> float:
    """A price, which OpenRouter takes as a number or as a text; infinite if it is neither."""
    try:
        usd = float(value)
    except (TypeError, ValueError):
        return inf
    return usd if usd >= 0 else inf


CHAT = chat_operation(
    fixed(f"provider.{_LIMIT}", MAX_PRICE),
    converted("provider", to="provider", convert=with_limits),
    takes_preferences=True,
    responses=RESPONSES,
)
CHAT_PRICE = Price(
    unit="token",
    usd="0.000075",
    input_usd="0.000015",
    each_usd="0.05",
    source=Source("the most that is accepted; what is reported is charged"),
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
    live=live.CATALOGUE,
)
