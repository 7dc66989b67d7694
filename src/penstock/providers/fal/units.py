"""fal's words for what it counts, as units of prices."""

import re
from decimal import Decimal, InvalidOperation
from typing import Any

from penstock.providers.spec import Price, Source, Task, Unit

IMAGE_COMPUTE_SECONDS = 300
VIDEO_COMPUTE_SECONDS = 1800
SOURCE = Source("fal's own catalogue; what fal reports as billed is charged")
# What the singular of a word counts, and how many of that unit it is. Whatever else fal counts is not known before the
# call: an amount of the operator's choice is held for it.
UNITS: dict[str, tuple[Unit, Decimal]] = {
    **dict.fromkeys(("image",), ("image", Decimal(1))),
    **dict.fromkeys(("megapixel", "processed megapixel"), ("started_megapixel", Decimal(1))),
    **dict.fromkeys(("second", "video second", "output second", "input second"), ("second", Decimal(1))),
    **dict.fromkeys(("minute", "video minute", "minute of video"), ("second", Decimal(60))),
    **dict.fromkeys(("video", "generation", "request", "call", "video segment"), ("call", Decimal(1))),
    **dict.fromkeys(("compute second", "gpu second"), ("compute_second", Decimal(1))),
}
# What else is counted of sounds. fal rounds minutes up.
SOUND_UNITS: dict[str, tuple[Unit, Decimal]] = {
    **dict.fromkeys(("minute", "audio minute", "minute of audio", "output minute"), ("minute_started", Decimal(1))),
    **dict.fromkeys(("audio second", "second of audio", "output audio second"), ("second", Decimal(1))),
    **dict.fromkeys(("character", "input character"), ("character", Decimal(1))),
    **dict.fromkeys(("audio", "song", "track", "music", "output audio"), ("call", Decimal(1))),
}
FRAMES_PER_SECOND = 30
PIXELS_PER_TOKEN = 1024  # of a video, in all its frames
FACTORS = {"": 1, "k": 1_000, "m": 1_000_000}
MEGA = 1_000_000
COUNTED = re.compile(r"(?:(\d+(?:\.\d+)?) ?([km]?) )?([a-z ]*?)s?")  # `5 seconds`, `1m tokens`
DECIMALS = Decimal("1e-15")


def price(row: Any, task: Task) -> Price | None:
    """A row of fal's price list as the price of a task; None if it names no amount of US dollars."""
    try:
        usd = Decimal(str(row["unit_price"]))
    except (InvalidOperation, KeyError):
        return None
    if not usd.is_finite() or usd < 0 or row.get("currency", "USD") != "USD":
        return None
    unit, size = unit_and_size(str(row.get("unit") or ""), task)
    return Price(
        unit=unit,
        usd=format((usd / size).quantize(DECIMALS).normalize(), "f"),
        billed_size=format(size, "f"),
        source=SOURCE,
        is_counted_by_provider=True,
        max_seconds=VIDEO_COMPUTE_SECONDS if task == "video" else IMAGE_COMPUTE_SECONDS,
    )


def unit_and_size(words: str, task: Task) -> tuple[Unit, Decimal]:
    """The unit of a price and how many of it fal's unit is: `5 seconds` are five times one second."""
    found = COUNTED.fullmatch(" ".join(words.lower().replace("_", " ").split()))
    count = Decimal(found[1] or 1) * FACTORS[found[2] or ""] if found else Decimal(0)
    noun = found[3].strip() if found else ""
    if not count:
        return "unit", Decimal(1)
    if task == "video" and noun == "megapixel":  # fal counts width x height x frames
        return "video_megapixel", count
    if task == "video" and noun == "token":
        return "video_megapixel", count * PIXELS_PER_TOKEN / MEGA
    if noun == "frame":
        return "second", count / FRAMES_PER_SECOND
    known = {**UNITS, **SOUND_UNITS} if task == "sound" else UNITS
    unit, size = known.get(noun, ("unit", Decimal(1)))
    return (unit, count * size) if unit != "unit" else (unit, Decimal(1))
