"""Compute what a transcript may cost at most and what it did cost."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from math import ceil

from penstock.accounts.prices import Line, cost_lines, quote_of
from penstock.chat.pricing import Bill
from penstock.providers.spec import Model, Price
from penstock.schema import Quote
from penstock.transcription.plan import transcription_of
from penstock.values import Nanos, nanos

_MOST_OUTPUT_TOKENS_PER_SECOND = 12  # fast speech in a script whose letters are tokens of their own
_PROMPT_TOKENS = 64  # that a provider may add to the caller's prompt
_BYTES_PER_TOKEN = 4


def quote(model: Model, seconds: Sequence[float], prompt: str = "") -> Quote:
    """The highest possible cost of a sound whose parts have so many seconds, line by line."""
    price = _price(model)
    if price is None:
        return quote_of([])
    total = _billed_seconds(model, seconds)
    if price.unit == "token":
        heard = ceil(total * Decimal(str(transcription_of(model).tokens_per_second)))
        said = (len(prompt.encode()) + _PROMPT_TOKENS) * len(seconds)
        lines = [
            Line(price.input_usd, "token", Decimal(heard + said), is_input=True),
            Line(price.usd, "token", Decimal(ceil(total * _MOST_OUTPUT_TOKENS_PER_SECOND))),
        ]
    else:
        most = _quantity(price, total, len(seconds)) * Decimal(price.ceiling)
        lines = [Line(price.usd, price.unit, most, is_input=True)]
    return quote_of(lines)


def max_cost(model: Model, seconds: Sequence[float], prompt: str = "") -> Nanos:
    """The total of `quote`."""
    return quote(model, seconds, prompt).total


def make_bill(model: Model, seconds: Sequence[float], usage: Mapping[str, int | float], text: str) -> Bill:
    """What the provider bills for parts with so many seconds; `usage` is what it reported, `text` what it understood.

    Of a call that ended early, only the parts that the provider was sent count.
    """
    lines, tokens = _bill_lines(model, seconds, usage, text)
    cost = nanos(sum((line.cost_usd for line in lines), Decimal(0)))
    return Bill(tokens, cost_lines(lines, cost), cost)


def bill_lines(model: Model, seconds: Sequence[float], usage: Mapping[str, int | float], text: str) -> tuple[Line, ...]:
    """The lines of `make_bill`, not yet rounded."""
    return tuple(_bill_lines(model, seconds, usage, text)[0])


def _bill_lines(
    model: Model, seconds: Sequence[float], usage: Mapping[str, int | float], text: str
) -> tuple[list[Line], dict[str, int]]:
    """The lines of a bill, and the tokens that were used."""
    price = _price(model)
    if price is None or not seconds:
        return [], {}
    tokens: dict[str, int] = {}
    total = _billed_seconds(model, seconds)
    if price.unit == "token":
        tokens = _tokens(model, total, usage, text)
        lines = [
            Line(price.input_usd, "token", Decimal(tokens["input"]), is_input=True),
            Line(price.usd, "token", Decimal(tokens["output"])),
        ]
    elif price.is_counted_by_provider and "billed" in usage:
        lines = [Line(price.usd, price.unit, Decimal(str(usage["billed"])), is_input=True)]
    else:
        lines = [Line(price.usd, price.unit, _quantity(price, total, len(seconds)), is_input=True)]
    return [line for line in lines if line.quantity], tokens


def billed_seconds(model: Model, seconds: Sequence[float]) -> float:
    """The seconds that are charged: a sound may count as one that is a little longer."""
    return float(_billed_seconds(model, seconds))


def _billed_seconds(model: Model, seconds: Sequence[float]) -> Decimal:
    least = transcription_of(model).least_seconds
    return sum((Decimal(str(round(max(each, least), 3))) for each in seconds), Decimal(0))


def _price(model: Model) -> Price | None:
    return next(iter(model.prices), None)


def _quantity(price: Price, seconds: Decimal, calls: int) -> Decimal:
    return seconds if price.unit == "second" else Decimal(calls)


def _tokens(model: Model, seconds: Decimal, usage: Mapping[str, int | float], text: str) -> dict[str, int]:
    """The tokens that the provider reports, or about as many as it would."""
    if "input" in usage and "output" in usage:
        return {name: int(usage[name]) for name in ("input", "output")}
    heard = ceil(seconds * Decimal(str(transcription_of(model).tokens_per_second)))
    return {"input": heard, "output": -(-len(text.encode()) // _BYTES_PER_TOKEN)}
