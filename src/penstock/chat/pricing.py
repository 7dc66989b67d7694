"""Compute what a chat call may cost at most and what it did cost."""

from decimal import Decimal
from math import ceil
from typing import Any

import msgspec

from penstock.accounts.prices import REPORTED, Line, quote_of
from penstock.chat.request import ChatRequest
from penstock.schema import CostLine, Quote
from penstock.upstream.token_prices import TokenPrices
from penstock.values import ZERO, Nanos, nanos

# Averages, for usage that a provider does not report.
_BYTES_PER_TOKEN = 4
_TOKENS_PER_IMAGE = 1000
_MAX_REPORTED_USD = 10**9
_MAX_REPORTED_TOKENS = 10**9  # a provider that reports more is wrong, and what it costs could not be stored
_XAI_TICKS_PER_USD = 10**10


class _PromptDetails(msgspec.Struct):
    cached_tokens: int | None = None
    audio_tokens: int | None = None


class _CompletionDetails(msgspec.Struct):
    reasoning_tokens: int | None = None
    audio_tokens: int | None = None


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
    def heard(self) -> int:
        """Prompt tokens of sounds, beside the cached ones."""
        details = self.prompt_tokens_details
        return min((_plausible(details.audio_tokens) or 0) if details else 0, self.input - self.cached)

    @property
    def spoken(self) -> int:
        """Completion tokens of speech."""
        details = self.completion_tokens_details
        return min((_plausible(details.audio_tokens) or 0) if details else 0, self.output)

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


def max_cost(prices: TokenPrices, chat: ChatRequest, default_output_tokens: int) -> Nanos:
    """Return the highest possible cost of a call; the default is for callers who set no limit of tokens."""
    input_tokens = _max_input_tokens(prices, chat)
    sound_tokens = max_sound_tokens(prices, chat)
    price = prices.row(input_tokens + sound_tokens)
    if price is None:
        return ZERO
    return price.nanos(input_tokens, chat.max_output_tokens(default_output_tokens), sound_tokens, speaks=chat.speaks)


def token_usd(prices: TokenPrices, chat: ChatRequest) -> tuple[Decimal, Decimal]:
    """Return what an input token and an output token of a call cost in dollars."""
    price = prices.row(_max_input_tokens(prices, chat))
    return (Decimal(price.usd[0]), Decimal(price.usd[1])) if price else (Decimal(0), Decimal(0))


def quote(prices: TokenPrices, chat: ChatRequest, default_output_tokens: int) -> Quote:
    """Return the highest possible cost of a call, line by line."""
    input_tokens = _max_input_tokens(prices, chat)
    sound_tokens = max_sound_tokens(prices, chat)
    price = prices.row(input_tokens + sound_tokens)
    if price is None:
        return Quote(components=())
    output_usd = max(price.usd[1], price.sound_usd[1], key=Decimal) if chat.speaks else price.usd[1]
    lines = [
        Line(price.usd[0], "token", Decimal(input_tokens), is_input=True),
        Line(output_usd, "token", Decimal(chat.max_output_tokens(default_output_tokens))),
    ]
    if sound_tokens:
        lines.insert(1, Line(price.sound_usd[0], "token", Decimal(sound_tokens), is_input=True))
    if price.each:
        lines.append(Line(price.each_usd, "output", Decimal(1)))
    return msgspec.structs.replace(quote_of(lines), total=max_cost(prices, chat, default_output_tokens))


class Bill(msgspec.Struct, frozen=True):
    """What a call has used and what that costs."""

    # By direction, as metrics and traces count them: `input`, of which `cached`, and `output`, and of both `heard` and
    # `spoken` tokens of sound, if there are any. Empty for calls that are not priced by the token.
    tokens: dict[str, int]
    lines: tuple[CostLine, ...]
    cost: Nanos  # the sum of the lines


def make_bill(prices: TokenPrices, usage: Usage, sound_tokens: int = 0) -> Bill:
    """Return the cost that the provider reports, otherwise the price of the tokens and of the call.

    The `sound_tokens` that the input has at most are charged as such where the provider does not say how many it has.
    """
    input_tokens = usage.input
    output_tokens = usage.output
    cached_tokens = usage.cached if usage.prompt_tokens_details else 0
    tokens = {"input": input_tokens, "cached": cached_tokens, "output": output_tokens}
    if (usage.cost is not None or usage.cost_in_usd_ticks is not None) and (usd := usage.cost_usd) is not None:
        cost = nanos(usd if prices.fee_percent is None else usd * prices.fee_percent / 100)
        return Bill(tokens, (CostLine(REPORTED, 1, None, cost),), cost)
    price = prices.row(input_tokens)
    if price is None:
        return Bill(tokens, (), ZERO)
    heard = usage.heard or min(sound_tokens, input_tokens - cached_tokens)
    spoken = usage.spoken
    if heard or spoken:
        tokens |= {"heard": heard, "spoken": spoken}
    lines, cost = price.lines(input_tokens, output_tokens, cached_tokens, (heard, spoken))
    return Bill(tokens, tuple(lines), cost)


def estimated_usage(
    chat: ChatRequest, prices: TokenPrices, *, output_tokens: int = 0, output_bytes: int = 0, spoken_seconds: float = 0
) -> Usage:
    """Return the usage of a call for which the provider reports none, from the sizes of its input and output."""
    text_tokens = max(1, chat.prompt_bytes // _BYTES_PER_TOKEN) + len(chat.images) * _TOKENS_PER_IMAGE
    heard = max_sound_tokens(prices, chat)
    spoken = int(spoken_seconds * prices.max_sound_tokens)
    return Usage(
        prompt_tokens=text_tokens + heard,
        completion_tokens=output_tokens + output_bytes // _BYTES_PER_TOKEN + spoken,
        prompt_tokens_details=_PromptDetails(audio_tokens=heard) if heard else None,
        completion_tokens_details=_CompletionDetails(audio_tokens=spoken) if spoken else None,
    )


def max_sound_tokens(prices: TokenPrices, chat: ChatRequest) -> int:
    """How many tokens the sounds of a call are at most."""
    return ceil(chat.sound_seconds * prices.max_sound_tokens)


def _max_input_tokens(prices: TokenPrices, chat: ChatRequest) -> int:
    return chat.max_text_tokens + len(chat.images) * prices.max_image_tokens
