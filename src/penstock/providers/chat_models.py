"""Tables of chat models with an OpenAI-compatible API, and the rows for where a provider differs from it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

from penstock.providers.openai_compatible import CHAT
from penstock.providers.spec import OWN_HARDWARE, Model, Operation, Param, Price, Source, converted, renamed

RESPONSES = "POST /responses"  # of providers that have OpenAI's Responses API beside chat


def messages_param(*, drop: Sequence[str] = (), roles: Mapping[str, str] | None = None) -> Param:
    """The row for `messages`: without the fields in `drop`, and with the provider's names for `roles`."""
    new_roles = roles or {}

    def convert(messages: list[Any]) -> list[Any]:
        return [
            {
                name: new_roles.get(value, value) if name == "role" else value
                for name, value in message.items()
                if name not in drop
            }
            for message in messages
        ]

    return converted("messages", to="messages", convert=convert)


# For providers that do not have the role `developer`, or only the older of the two names of the limit of tokens.
DEVELOPER_AS_SYSTEM = messages_param(roles={"developer": "system"})
MAX_TOKENS = renamed("max_completion_tokens", to="max_tokens")


def chat_operation(
    *rows: Param, finish_reasons: Mapping[bytes, bytes] | None = None, takes_preferences: bool = False, **fields: Any
) -> Operation:
    """A provider's chat operation. The rows say where it differs from OpenAI's.

    `finish_reasons` maps the provider's own finish reasons to OpenAI's. With `takes_preferences`, the provider chooses
    among others itself, and gets the caller's field `provider`.
    """
    settings: dict[str, Any] = {"finish_reasons": finish_reasons} if finish_reasons else {}
    if takes_preferences:
        settings["takes_preferences"] = True
    return replace(CHAT, params=rows, settings=settings, **fields)


def any_model(slug: str, op: Operation) -> tuple[Model, ...]:
    """All models of a self-hosted server, under the names that they have there, at no cost."""
    free = Price(unit="token", usd="0", source=OWN_HARDWARE)
    return (Model(id=f"{slug}/*", upstream="*", op=replace(op, send="POST /v1/chat/completions"), prices=(free,)),)


def chat_models(
    owner: str, source: Source, table: str, op: Operation = CHAT, priority: int = 0, **fields: Any
) -> tuple[Model, ...]:
    """Chat models from a table with one model per line.

    A line has the model's name and its prices in dollars per million tokens: input, output and, if there is a discount,
    cached input. `sound` is followed by those of input and, if the model speaks, output that is sound. `name=other` is
    for models that the provider calls `other`. `>200000` is followed by the prices for calls with more than 200,000
    input tokens, `from 2026-12-01` by the prices from that day on, `until` by the day on which the model is shut down.
    The public id is `owner/name`, unless the name has a slash itself. `fields` are further fields of each Model, such
    as `max_image_tokens`.
    """
    lines = table.strip().splitlines()
    return tuple(replace(_chat_model(owner, source, line, op), priority=priority, **fields) for line in lines)


def _chat_model(owner: str, source: Source, line: str, op: Operation) -> Model:
    line, _, shutdown_date = line.partition(" until ")
    line, *changes = line.split(" from ")
    names, usd = line.split(maxsplit=1)
    name, _, upstream = names.partition("=")
    prices = _token_prices(source, usd)
    for from_date, changed_usd in (change.split(maxsplit=1) for change in changes):
        changed = [replace(price, from_date=from_date) for price in _token_prices(source, changed_usd)]
        prices = changed + prices
    model_id = name if "/" in name else f"{owner}/{name}"
    return Model(
        id=model_id, upstream=upstream or name, op=op, prices=tuple(prices), shutdown_date=shutdown_date.strip()
    )


def _token_prices(source: Source, usd: str) -> list[Price]:
    """Rows from the prices in a line, those for long inputs first."""
    usd, _, sound = usd.partition(" sound ")
    sound_usd = dict(zip(("audio_input", "audio_output"), map(_usd_per_token, sound.split()), strict=False))
    first, *long_inputs = usd.split(">")
    prices = [_token_price(source, *first.split())]
    for above, *usd_above in map(str.split, long_inputs):
        prices.insert(0, replace(_token_price(source, *usd_above), above=int(above)))
    return [replace(price, other_usd={**price.other_usd, **sound_usd}) for price in prices]


def _token_price(
    source: Source, per_million_input: str, per_million_output: str, per_million_cached: str = ""
) -> Price:
    return Price(
        unit="token",
        usd=_usd_per_token(per_million_output),
        input_usd=_usd_per_token(per_million_input),
        other_usd={"cached": _usd_per_token(per_million_cached)} if per_million_cached else {},
        source=source,
    )


def _usd_per_token(usd_per_million: str) -> str:
    return f"{Decimal(usd_per_million) / 1_000_000:f}"
