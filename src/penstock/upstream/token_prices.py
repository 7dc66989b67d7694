"""What the tokens of a chat model cost: its prices as integers, computed once for all of its calls."""

from decimal import Decimal

import msgspec

from penstock.providers.spec import Model, Price
from penstock.schema import CostLine
from penstock.values import ZERO, Nanos, nanos

# Prices in integers of a very small unit make sums exact and faster than decimals.
_UNITS_PER_NANO = 10**12
_HALF_NANO = _UNITS_PER_NANO // 2
_UNITS_PER_USD = _UNITS_PER_NANO * 10**9


def _units(usd: str) -> int:
    return int(Decimal(usd) * _UNITS_PER_USD)


class TokenPrice(msgspec.Struct, frozen=True):
    """One row of a model's prices: per token in units of 10^-21 dollars, and per call."""

    above: int  # for inputs with more tokens; 0: for all
    input: int
    output: int
    cached: int
    usd: tuple[str, str, str]  # the same three in dollars
    sound: tuple[int, int]  # of input and output that is sound
    sound_usd: tuple[str, str]
    each: Nanos
    each_usd: str

    @classmethod
    def of(cls, price: Price) -> "TokenPrice":
        usd = (price.input_usd, price.usd, price.other_usd.get("cached", price.input_usd))
        per_input, per_output, per_cached = map(_units, usd)
        sound_usd = (price.other_usd.get("audio_input", usd[0]), price.other_usd.get("audio_output", usd[1]))
        sound = (_units(sound_usd[0]), _units(sound_usd[1]))
        each = nanos(price.each_usd)
        return cls(price.above, per_input, per_output, per_cached, usd, sound, sound_usd, each, price.each_usd)

    def lines(
        self, input_tokens: int, output_tokens: int, cached_tokens: int, sound_tokens: tuple[int, int] = (0, 0)
    ) -> tuple[list[CostLine], Nanos]:
        """Return what each kind of token and the call cost, and the sum. The cached tokens and the first of the sound
        tokens are part of the input, the second are part of the output. Fractions of nano-dollars are carried over to
        the next line.
        """
        heard, spoken = sound_tokens
        found: list[CostLine] = []
        total = ZERO
        units = _HALF_NANO
        for metric, count, rate, usd in (
            ("input_token", input_tokens - cached_tokens - heard, self.input, self.usd[0]),
            ("output_token", output_tokens - spoken, self.output, self.usd[1]),
            ("cached_token", cached_tokens, self.cached, self.usd[2]),
            ("audio_input_token", heard, self.sound[0], self.sound_usd[0]),
            ("audio_output_token", spoken, self.sound[1], self.sound_usd[1]),
        ):
            if count:
                units += rate * count
                total_before = total
                total = Nanos(units // _UNITS_PER_NANO) if units > 0 else ZERO
                found.append(CostLine(metric, count, usd, Nanos(total - total_before)))
        if self.each:
            found.append(CostLine("output", 1, self.each_usd, self.each))
            total = Nanos(total + self.each)
        return found, total

    def nanos(self, input_tokens: int, output_tokens: int, sound_tokens: int = 0, *, speaks: bool = False) -> Nanos:
        """Return the price of a call without cached tokens; that of the tokens is rounded once, half up.

        The sound tokens come to those of the input. With `speaks`, each token of the output may be one of speech.
        """
        output = max(self.output, self.sound[1]) if speaks else self.output
        units = self.input * input_tokens + self.sound[0] * sound_tokens + output * output_tokens + _HALF_NANO
        return Nanos(units // _UNITS_PER_NANO + self.each)


class TokenPrices(msgspec.Struct, frozen=True):
    """What the chat calls of a model cost."""

    rows: tuple[TokenPrice, ...]
    max_image_tokens: int  # of one input image
    max_sound_tokens: int  # of one second of an input sound
    fee_percent: int | None = None  # the part of a cost that the provider reports which is charged; None: all

    @classmethod
    def of(cls, model: Model, fee_percent: int | None = None) -> "TokenPrices":
        return cls(tuple(map(TokenPrice.of, model.prices)), model.max_image_tokens, model.max_sound_tokens, fee_percent)

    def row(self, input_tokens: int) -> TokenPrice | None:
        """The row for an input of this length; None if the model has no price."""
        rows = self.rows
        if len(rows) == 1:
            return rows[0]
        return next((row for row in rows if input_tokens > row.above or not row.above), None)
