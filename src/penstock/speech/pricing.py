"""Compute what speech may cost at most and what it did cost."""

import re
from collections.abc import Mapping
from decimal import Decimal
from math import ceil

from penstock.accounts.prices import Line, cost_lines, quote_of
from penstock.chat.pricing import Bill
from penstock.providers.spec import Model, Price
from penstock.schema import Quote
from penstock.speech.plan import SpeechPlan
from penstock.speech.voices import speech_of
from penstock.values import Nanos, nanos

# Speech at the usual speed has about 15 characters a second. The most that it may take is held: ten, and three where
# one character is a syllable.
_MOST_CHARACTERS_PER_SECOND = Decimal(10)
_SYLLABLES_PER_SECOND = Decimal(3)
_USUAL_CHARACTERS_PER_SECOND = Decimal(15)
# Scripts in which a character is a syllable or a word: kana, CJK, hangul, and those of South-East Asia without spaces.
_SYLLABLES = re.compile(
    r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]"
)
_MIN_SECONDS = Decimal(2)
_BYTES_PER_TOKEN = 4
_PROMPT_TOKENS = 32  # that a provider may add to those of the text


def longest_seconds(text: str, speed: float = 1) -> Decimal:
    """How long the speech of a text can be: what is held for."""
    syllables = len(_SYLLABLES.findall(text))
    seconds = syllables / _SYLLABLES_PER_SECOND + (len(text) - syllables) / _MOST_CHARACTERS_PER_SECOND
    return max(_MIN_SECONDS, seconds) / Decimal(str(speed))


def _usual_seconds(text: str) -> Decimal:
    return longest_seconds(text) * _MOST_CHARACTERS_PER_SECOND / _USUAL_CHARACTERS_PER_SECOND


def quote(plan: SpeechPlan, speed: float) -> Quote:
    """The highest possible cost, line by line; `speed` is the caller's."""
    return quote_of(_most_lines(plan, speed))


def max_cost(plan: SpeechPlan, speed: float) -> Nanos:
    """The total of `quote`."""
    return quote(plan, speed).total


def _most_lines(plan: SpeechPlan, speed: float) -> list[Line]:
    price = _price(plan.model)
    if price is None:
        return []
    text = "".join(plan.parts)
    native = speed / plan.tempo
    seconds = longest_seconds(text, min(native, 1))
    if price.unit == "token":
        said = len(text.encode()) + plan.instructions_bytes(len(plan.parts))
        most = ceil(seconds * Decimal(str(speech_of(plan.model).tokens_per_second)))
        lines = [
            Line(price.input_usd, "token", Decimal(said + _PROMPT_TOKENS * len(plan.parts)), is_input=True),
            Line(price.usd, "token", Decimal(most or price.max_tokens * len(plan.parts))),
        ]
    else:
        quantity = _quantity(price, plan.parts, float(seconds)) * Decimal(price.ceiling)
        lines = [Line(price.usd, price.unit, quantity)]
    return lines + _each(price, len(plan.parts))


def make_bill(
    plan: SpeechPlan, begun: int, usage: Mapping[str, int | float], seconds: float | None, *, is_whole: bool
) -> Bill:
    """What a call has used and what that costs.

    `begun` counts the parts of the text that the provider was sent, `usage` is what it reported, and `seconds` how much
    sound it sent, if that could be measured. Of a call that ended early, only what came is counted where the price
    depends on the sound.
    """
    lines, tokens = _bill_lines(plan, begun, usage, seconds, is_whole=is_whole)
    cost = nanos(sum((line.cost_usd for line in lines), Decimal(0)))
    return Bill(tokens, cost_lines(lines, cost), cost)


def bill_lines(
    plan: SpeechPlan, begun: int, usage: Mapping[str, int | float], seconds: float | None, *, is_whole: bool
) -> tuple[Line, ...]:
    """The lines of `make_bill`, not yet rounded."""
    return tuple(_bill_lines(plan, begun, usage, seconds, is_whole=is_whole)[0])


def _bill_lines(
    plan: SpeechPlan, begun: int, usage: Mapping[str, int | float], seconds: float | None, *, is_whole: bool
) -> tuple[list[Line], dict[str, int]]:
    """The lines of a bill, and the tokens that were used."""
    price = _price(plan.model)
    parts = plan.parts[:begun]
    if price is None or not parts:
        return [], _tokens(usage)
    text = "".join(parts)
    heard = seconds if seconds is not None else float(_usual_seconds(text))
    tokens: dict[str, int] = {}
    if price.unit == "token":
        tokens = _tokens(usage) if is_whole and usage.get("output") else _estimated_tokens(plan, parts, heard)
        lines = [
            Line(price.input_usd, "token", Decimal(tokens["input"]), is_input=True),
            Line(price.usd, "token", Decimal(tokens["output"])),
        ]
    else:
        billed = usage.get("billed") if price.is_counted_by_provider and is_whole else None
        quantity = Decimal(str(billed)) if billed is not None else _quantity(price, parts, heard)
        lines = [Line(price.usd, price.unit, quantity)]
    return [line for line in lines + _each(price, len(parts)) if line.quantity], tokens


def depends_on_text_only(model: Model) -> bool:
    """Whether the cost is known before the call."""
    price = _price(model)
    return price is None or (price.unit in ("character", "byte", "call") and not price.is_counted_by_provider)


def _each(price: Price, calls: int) -> list[Line]:
    return [Line(price.each_usd, "output", Decimal(calls))] if Decimal(price.each_usd) else []


def _price(model: Model) -> Price | None:
    return next(iter(model.prices), None)


def _quantity(price: Price, parts: tuple[str, ...], seconds: float) -> Decimal:
    if price.unit == "byte":
        return Decimal(sum(len(part.encode()) for part in parts))
    if price.unit == "second":
        return Decimal(str(round(seconds, 3)))
    if price.unit == "character":
        return Decimal(sum(map(len, parts)))
    return Decimal(len(parts))


def _tokens(usage: Mapping[str, int | float]) -> dict[str, int]:
    return {name: int(usage.get(name, 0)) for name in ("input", "output")} if "output" in usage else {}


def _estimated_tokens(plan: SpeechPlan, parts: tuple[str, ...], seconds: float) -> dict[str, int]:
    said = sum(len(part.encode()) for part in parts) + plan.instructions_bytes(len(parts))
    return {
        "input": max(1, said // _BYTES_PER_TOKEN),
        "output": ceil(seconds * speech_of(plan.model).tokens_per_second),
    }
