"""Compute what a chat call may cost at most and what it did cost."""

from decimal import Decimal
from functools import cache
from typing import Any

import msgspec

from penstock.accounts.prices import REPORTED, Line, quote_of
from penstock.chat.request import ChatRequest
from penstock.providers.spec import Model, Price
from penstock.schema import CostLine, Quote
from penstock.values import ZERO, Nanos, nanos

# Averages, for usage that a provider does not report.
_BYTES_PER_TOKEN = 4
_TOKENS_PER_IMAGE = 1000
_MAX_REPORTED_USD = 10**9
_MAX_REPORTED_TOKENS = 10**9  # a provider that reports more is wrong, and what it costs could not be stored
_XAI_TICKS_PER_USD = 10**10


class _PromptDetails(msgspec.Struct):
    cached_tokens: int | None = None


class _CompletionDetails(msgspec.Struct):
    reasoning_tokens: int | None = None


class Usage(msgspec.Struct):
    """The usage that a provider reports for a chat call.

    Numbers of prompt, completion and total tokens that cannot be true are replaced by the nearest ones that can. Costs
    of whatever type are read, because servers invent such fields; `cost_usd` is made of those that are numbers.
    """

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    total_tokens: int | None = None
    prompt_tokens_details: _PromptDetails | None = None
    completion_tokens_details: _CompletionDetails | None = None
    cost: Any = None  # in dollars
    cost_in_usd_ticks: Any = None  # reported by xAI
    is_byok: Any = None  # True: OpenRouter used the operator's key of the provider, and `cost` is only its own fee
    cost_details: Any = None  # `upstream_inference_cost` is what that provider bills

    def __post_init__(self) -> None:
        counts = (self.prompt_tokens or 0, self.completion_tokens or 0, self.total_tokens or 0)
        if min(counts) < 0 or max(counts) > _MAX_REPORTED_TOKENS:
            self.prompt_tokens = _plausible(self.prompt_tokens)
            self.completion_tokens = _plausible(self.completion_tokens)
            self.total_tokens = _plausible(self.total_tokens)

    @property
    def input(self) -> int:
        return self.prompt_tokens or 0

    @property
    def output(self) -> int:
        """Completion tokens with reasoning tokens, which Google and xAI count only in the total."""
        return max(self.completion_tokens or 0, (self.total_tokens or 0) - (self.prompt_tokens or 0))

    @property
    def cached(self) -> int:
        """Prompt tokens served from the provider's cache."""
        details = self.prompt_tokens_details
        return min(self.prompt_tokens or 0, _plausible(details.cached_tokens) or 0) if details else 0

    @property
    def reasoning(self) -> int:
        """Output tokens that the model used to think."""
        details = self.completion_tokens_details
        return (_plausible(details.reasoning_tokens) or 0) if details else 0

    @property
    def cost_usd(self) -> Decimal | None:
        """The cost in dollars as reported, with what the provider behind a router bills the operator itself; None if
        there is none or it is negative or absurdly high.
        """
        ticks = _number(self.cost_in_usd_ticks)
        usd = _number(self.cost) if ticks is None else ticks / _XAI_TICKS_PER_USD
        if usd is not None and self.is_byok is True and isinstance(self.cost_details, dict):
            usd += _number(self.cost_details.get("upstream_inference_cost")) or 0
        return usd if usd is not None and 0 <= usd < _MAX_REPORTED_USD else None


def without_usage(body: bytes) -> bytes:
    """The JSON of a response, or of an event with one, without its usage: for a malformed one, which must not hide what
    the model has written. Raises msgspec.DecodeError.
    """
    fields = msgspec.json.decode(body)
    for found in (fields, fields.get("response")) if isinstance(fields, dict) else ():
        if isinstance(found, dict):
            found.pop("usage", None)
    return msgspec.json.encode(fields)


def _number(value: Any) -> Decimal | None:
    """A number of JSON; None for anything else."""
    return Decimal(str(value)) if type(value) in (int, float) else None


def _plausible(tokens: int | None) -> int | None:
    return tokens if tokens is None else min(max(tokens, 0), _MAX_REPORTED_TOKENS)


def max_cost(model: Model, chat: ChatRequest, default_output_tokens: int) -> Nanos:
    """Return the highest possible cost of a call; the default is for callers who set no limit of tokens."""
    input_tokens = _max_input_tokens(model, chat)
    price = _price_for(model, input_tokens)
    if price is None:
        return ZERO
    tokens = _token_rate(price).nanos(input_tokens, chat.max_output_tokens(default_output_tokens))
    return tokens if price.each_usd == "0" else Nanos(tokens + nanos(price.each_usd))


def token_usd(model: Model, chat: ChatRequest) -> tuple[Decimal, Decimal]:
    """Return what an input token and an output token of a call cost in dollars."""
    price = _price_for(model, _max_input_tokens(model, chat))
    return (Decimal(price.input_usd), Decimal(price.usd)) if price else (Decimal(0), Decimal(0))


def quote(model: Model, chat: ChatRequest, default_output_tokens: int) -> Quote:
    """Return the highest possible cost of a call, line by line."""
    input_tokens = _max_input_tokens(model, chat)
    price = _price_for(model, input_tokens)
    if price is None:
        return Quote(components=())
    lines = [
        Line(price.input_usd, "token", Decimal(input_tokens), is_input=True),
        Line(price.usd, "token", Decimal(chat.max_output_tokens(default_output_tokens))),
    ]
    if price.each_usd != "0":
        lines.append(Line(price.each_usd, "output", Decimal(1)))
    return msgspec.structs.replace(quote_of(lines), total=max_cost(model, chat, default_output_tokens))


class Bill(msgspec.Struct, frozen=True):
    """What a call has used and what that costs."""

    # By direction, as metrics and traces count them: `input`, of which `cached`, and `output`. Empty for calls that are
    # not priced by the token.
    tokens: dict[str, int]
    lines: tuple[CostLine, ...]
    cost: Nanos  # the sum of the lines


def make_bill(model: Model, usage: Usage) -> Bill:
    """Return the cost that the provider reports, otherwise the price of the tokens and of the call."""
    input_tokens = usage.input
    output_tokens = usage.output
    cached_tokens = usage.cached
    tokens = {"input": input_tokens, "cached": cached_tokens, "output": output_tokens}
    if (usd := usage.cost_usd) is not None:
        cost = nanos(usd)
        return Bill(tokens, (CostLine(REPORTED, 1, None, cost),), cost)
    price = _price_for(model, input_tokens)
    if price is None:
        return Bill(tokens, (), ZERO)
    lines, cost = _token_rate(price).lines(input_tokens, output_tokens, cached_tokens)
    if price.each_usd != "0":
        each = nanos(price.each_usd)
        lines.append(CostLine("output", 1, price.each_usd, each))
        cost = Nanos(cost + each)
    return Bill(tokens, tuple(lines), cost)


def estimated_usage(chat: ChatRequest, *, output_tokens: int = 0, output_bytes: int = 0) -> Usage:
    """Return the usage of a call for which the provider reports none, from the sizes of its input and output."""
    return Usage(
        prompt_tokens=max(1, chat.prompt_bytes // _BYTES_PER_TOKEN) + len(chat.images) * _TOKENS_PER_IMAGE,
        completion_tokens=output_tokens + output_bytes // _BYTES_PER_TOKEN,
    )


def _max_input_tokens(model: Model, chat: ChatRequest) -> int:
    return chat.max_text_tokens + len(chat.images) * model.max_image_tokens


def _price_for(model: Model, input_tokens: int) -> Price | None:
    """Return the price row for an input of this length; a row with `above` is for longer inputs only."""
    prices = model.prices
    if len(prices) == 1:
        return prices[0]
    return next((price for price in prices if input_tokens > price.above or not price.above), None)


# --------------------------------------------------------------------------------------------------------- token rates

# Prices in integers of a very small unit make sums exact and faster than decimals.
_UNITS_PER_NANO = 10**12
_HALF_NANO = _UNITS_PER_NANO // 2
_UNITS_PER_USD = _UNITS_PER_NANO * 10**9


class _TokenRate(msgspec.Struct, frozen=True):
    """Prices per token, in units of 10^-21 dollars."""

    input: int
    output: int
    cached: int
    usd: tuple[str, str, str]  # the same prices in dollars

    def lines(self, input_tokens: int, output_tokens: int, cached_tokens: int) -> tuple[list[CostLine], Nanos]:
        """Return what each kind of token costs, and the sum. Fractions of nano-dollars are carried over to the next
        line.
        """
        found = []
        total = ZERO
        units = _HALF_NANO
        for metric, count, rate, usd in (
            ("input_token", input_tokens - cached_tokens, self.input, self.usd[0]),
            ("output_token", output_tokens, self.output, self.usd[1]),
            ("cached_token", cached_tokens, self.cached, self.usd[2]),
        ):
            if count:
                units += rate * count
                total_before = total
                total = Nanos(max(0, units // _UNITS_PER_NANO))
                found.append(CostLine(metric, count, usd, Nanos(total - total_before)))
        return found, total

    def nanos(self, input_tokens: int, output_tokens: int, cached_tokens: int = 0) -> Nanos:
        """Return the price of tokens, of which the cached ones are part of the input; rounded once, half up."""
        uncached = self.input * (input_tokens - cached_tokens) + self.output * output_tokens
        return Nanos((uncached + self.cached * cached_tokens + _HALF_NANO) // _UNITS_PER_NANO)


def _token_rate(price: Price) -> _TokenRate:
    return _parsed_rate(price.input_usd, price.usd, price.other_usd.get("cached", price.input_usd))


@cache
def _parsed_rate(input_usd: str, output_usd: str, cached_usd: str) -> _TokenRate:
    usd = (input_usd, output_usd, cached_usd)
    per_input, per_output, per_cached = (int(Decimal(price) * _UNITS_PER_USD) for price in usd)
    return _TokenRate(per_input, per_output, per_cached, usd)
