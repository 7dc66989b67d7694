"""What providers charge: price rows, and where each was found."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

# `started_megapixel` is for providers that round up: each output counts in whole steps of 1024 x 1024 pixels.
# `compute_second` counts the time that the provider's machine took. Of upscaled videos, `frame` counts the frames of
# the input, and `megapixel_second` multiplies the megapixels of the output with its seconds. `video_megapixel` counts
# the megapixels of all frames of a video together. `unit` is whatever the provider counts and reports. Of speech,
# `character` counts the code points of the text and `byte` its bytes in UTF-8. Of sounds, `minute_started` counts whole
# minutes, rounded up.
Unit = Literal[
    "image",
    "megapixel",
    "started_megapixel",
    "second",
    "token",
    "call",
    "compute_second",
    "frame",
    "megapixel_second",
    "video_megapixel",
    "unit",
    "character",
    "byte",
    "minute_started",
]

SENT = "sent."  # the prefix of names in conditions that are fields of the provider's body


@dataclass(frozen=True, slots=True)
class Source:
    """Where a price was found, and when."""

    name: str
    as_of: str = ""  # the date of what was read; empty: the operator's own price, or one that is asked for when used
    is_second_hand: bool = False  # what others recorded of the provider's prices, not the provider's own words


OWN_HARDWARE = Source("your own hardware")
LITELLM = Source("litellm 1.108.4's price table", "2026-11-15", is_second_hand=True)
COMFY = Source("Comfy's list of prices for partner nodes", "2026-08-21", is_second_hand=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """US dollars for a unit of output and, if it is charged, for a unit of input."""

    unit: Unit
    usd: str
    input_usd: str = "0"
    each_usd: str = "0"  # added once for every output
    prompt_usd: str = "0"  # for each token of the prompt, where the unit is another; held for each of its bytes
    # The row is for these values of fields of the request or, with the prefix `sent.`, of the provider's body.
    when: Mapping[str, Any] = field(default_factory=dict)
    max_tokens: int = 0  # images and videos priced by the token: the most tokens that one output can take
    max_input_tokens: int = 3000  # the same of one input image
    max_seconds: int = 300  # priced by the compute second: the most that one call can take
    # The unit's count is what the provider reports as `billed`. The hold is for so many times the requested count,
    # because one price stands for several resolutions, or for videos with and without sound.
    is_counted_by_provider: bool = False
    ceiling: str = "1"
    billed_size: str = "1"  # one that the provider reports is so many of the unit
    # Dollars that are held at least for each output, and for each second of an output video.
    least_usd: str = "0"
    least_second_usd: str = "0"
    is_guess: bool = False  # of a catalogue without prices; an operator's price for the whole catalogue replaces it
    # Dollars for other quantities in Result.usage, by their names. `cached` replaces the input price for chat tokens
    # that came from the provider's cache; `audio_input` and `audio_output` are the prices of tokens of sound in chats.
    other_usd: Mapping[str, str] = field(default_factory=dict)
    # Chat: this row applies to calls with more input tokens. Others: to outputs with more pixels. Such rows come first.
    above: int = 0
    # The first day, in UTC, on which the row applies, in place of the row with the same `when` and `above` and an
    # earlier date or none. Empty: it applies from the beginning.
    from_date: str = ""
    source: Source | None = None  # tables must have one

    @property
    def takes_reported_units(self) -> bool:
        """Whether the units that the provider reports as `billed` are charged."""
        return self.is_counted_by_provider or self.unit == "compute_second"


def prices_in_force(prices: tuple[Price, ...], day: str) -> tuple[Price, ...]:
    """The rows that apply on a day. A row with a date takes the place of the one with the same conditions."""
    if not any(price.from_date for price in prices):
        return prices
    rows = [price for price in prices if not price.from_date]
    changes = [price for price in prices if price.from_date and price.from_date <= day]
    for change in sorted(changes, key=lambda price: price.from_date):
        replaced = [place for place, row in enumerate(rows) if (row.when, row.above) == (change.when, change.above)]
        if replaced:
            rows[replaced[0]] = change
        else:
            rows.insert(0, change)
    return tuple(rows)


def announced_prices(prices: tuple[Price, ...], day: str) -> tuple[Price, ...]:
    """The rows that apply only after a day, the first to begin first."""
    return tuple(sorted((price for price in prices if price.from_date > day), key=lambda price: price.from_date))


def price_list(source: Source) -> Callable[..., Price]:
    """A function that makes Price rows of one source. Keywords name fields of the provider's body for `when`."""

    def price(usd: str, unit: Unit = "second", input_usd: str = "0", each_usd: str = "0", **sent: Any) -> Price:
        when = {f"{SENT}{name}": value for name, value in sent.items()}
        return Price(unit=unit, usd=usd, input_usd=input_usd, each_usd=each_usd, when=when, source=source)

    return price
