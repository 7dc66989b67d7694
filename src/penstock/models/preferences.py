"""Read a caller's preferences among providers: the field `provider` of a call, in the words of OpenRouter."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, Literal

import msgspec

from penstock.errors import InvalidRequest, quoted

Sort = Literal["price", "latency", "throughput"]

FIELD = "provider"
SORTS: tuple[Sort, ...] = ("price", "latency", "throughput")
# What `max_price` can limit, in dollars: the whole call, an image, a second of video, a million tokens.
LIMITS: Mapping[str, tuple[str, ...]] = {
    "image": ("request", "image"),
    "edit": ("request", "image"),
    "upscale": ("request", "image"),
    "video": ("request", "second"),
    "chat": ("request", "prompt", "completion"),
    "speech": ("request",),
    "transcription": ("request",),
    "sound": ("request", "second"),
}
MAX_NAMES = 50
MAX_USD = 10**6
_NAMES = ("order", "only", "ignore", "allow_fallbacks", "sort", "max_price")


class Preferences(msgspec.Struct, frozen=True, kw_only=True):
    """Which providers a caller wants, in which order, and at what price."""

    order: tuple[str, ...] = ()  # tried first, in this order
    only: tuple[str, ...] = ()  # empty: all
    ignore: tuple[str, ...] = ()
    allow_fallbacks: bool = True  # False: only those in `order`, or without it only the first
    sort: Sort | None = None
    max_price: Mapping[str, Decimal] = msgspec.field(default_factory=dict)  # dollars, by names of LIMITS

    @property
    def needs_records(self) -> bool:
        """Whether the order depends on how fast the providers were."""
        return self.sort in ("latency", "throughput")


NO_PREFERENCES = Preferences()


def read_preferences(value: Mapping[str, Any], task: str) -> Preferences:
    """Check the field; raise InvalidRequest, which names the part and what is allowed."""
    given = {name: part for name, part in value.items() if part is not None}
    if unknown := next((name for name in given if name not in _NAMES), None):
        _refuse(str(unknown), f"is not known here; `{FIELD}` can have {quoted(_NAMES)}")
    if not isinstance(given.get("allow_fallbacks", True), bool):
        _refuse("allow_fallbacks", "must be a boolean")
    if "sort" in given and given["sort"] not in SORTS:
        _refuse("sort", f"must be one of {quoted(SORTS)}")
    return Preferences(
        order=_slugs(given, "order"),
        only=_slugs(given, "only"),
        ignore=_slugs(given, "ignore"),
        allow_fallbacks=given.get("allow_fallbacks", True),
        sort=given.get("sort"),
        max_price=_limits(given["max_price"], LIMITS[task]) if "max_price" in given else {},
    )


def _slugs(given: Mapping[str, Any], name: str) -> tuple[str, ...]:
    """The names of providers in a list; whether they exist is checked with the catalog."""
    slugs = given.get(name, [])
    is_list = isinstance(slugs, list) and len(slugs) <= MAX_NAMES and all(isinstance(slug, str) for slug in slugs)
    if not is_list:
        _refuse(name, f"must be a list of names of providers, at most {MAX_NAMES}")
    if name == "only" and name in given and not slugs:
        _refuse(name, "must name a provider; leave it out to allow all")
    return tuple(dict.fromkeys(slugs))


def _limits(value: Any, allowed: Sequence[str]) -> dict[str, Decimal]:
    """Limits in dollars; a number alone is one for the whole call."""
    limits = value if isinstance(value, dict) else {"request": value}
    for name, usd in limits.items():
        if name not in allowed:
            _refuse(f"max_price.{name}", f"is not a price of this call; it can be {quoted(allowed)}")
        if not _is_amount(usd):
            where = f"max_price.{name}" if isinstance(value, dict) else "max_price"
            _refuse(where, f"must be dollars as a number from 0 to {MAX_USD}")
    return {name: Decimal(str(usd)) for name, usd in limits.items()}


def _is_amount(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= MAX_USD


def _refuse(name: str, rule: str) -> None:
    raise InvalidRequest(f"`{FIELD}.{name}` {rule}.", param=f"{FIELD}.{name}")
