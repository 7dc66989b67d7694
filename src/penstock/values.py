"""Small values: ids, times, money, frames, input files, retention and replay modes."""

import os
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import ROUND_CEILING, ROUND_HALF_UP, Decimal, InvalidOperation
from functools import lru_cache
from math import gcd
from typing import NewType

import msgspec

from penstock.long_bodies.buffers import Buffer

# ---------------------------------------------------------------------------------------------------------------- ids

OrgId = NewType("OrgId", str)
"""The id of an organization. It comes from a key, a row or an operator, and is never written in the code."""

# Six bytes of milliseconds and ten random bytes in hexadecimal, so that ids sort by time.
_RANDOM_BYTES = 10
_DIGITS = re.compile(r"[0-9a-f]{32}([0-9a-f]{2})?")  # two more in ids of outputs
_LAST_MS = 2**48 - 1


def new_id(prefix: str, at_ms: int) -> str:
    """A new id such as `req_…`, which begins with the time `at_ms`."""
    if not _suffixes:
        # Random bytes for many ids at once, because each call of the system costs more than the rest of an id.
        digits = os.urandom(_BATCH * _RANDOM_BYTES).hex()
        _suffixes.extend(digits[at : at + 2 * _RANDOM_BYTES] for at in range(0, len(digits), 2 * _RANDOM_BYTES))
    return f"{prefix}_{at_ms:012x}{_suffixes.pop()}"


_BATCH = 64
_suffixes: list[str] = []
os.register_at_fork(after_in_child=_suffixes.clear)  # or parent and child would give out the same ids


def first_id(prefix: str, at_ms: int) -> str:
    """The smallest id of a time, so that a filter by time is a range of ids."""
    return f"{prefix}_{min(max(at_ms, 0), _LAST_MS):012x}{bytes(_RANDOM_BYTES).hex()}"


def id_ms(text: str) -> int:
    """The time that an id begins with, in milliseconds."""
    return int(text.partition("_")[2][:12], 16)


def is_id(text: str, prefix: str) -> bool:
    """Whether a text has the form of an id with this prefix."""
    return text.startswith(f"{prefix}_") and _DIGITS.fullmatch(text, len(prefix) + 1) is not None


# -------------------------------------------------------------------------------------------------------------- times


DAY_MS = 86_400_000


def month_text(at_ms: int) -> str:
    """The month (UTC) of a time, such as `2026-11`."""
    return _month_of_day(at_ms // DAY_MS)


@lru_cache(maxsize=64)
def _month_of_day(day: int) -> str:
    return datetime.fromtimestamp(day * (DAY_MS // 1000), UTC).strftime("%Y-%m")


def iso(at_ms: int) -> str:
    """A time in ISO 8601, as responses show it."""
    return datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


# -------------------------------------------------------------------------------------------------------------- money

Nanos = NewType("Nanos", int)
"""An amount of money in billionths of a US dollar. Never a float."""

ZERO = Nanos(0)
NANOS_PER_USD = 1_000_000_000


def nanos(usd: Decimal | str | int) -> Nanos:
    """Dollars to nano-dollars, rounded half up. Raises ValueError for a text that is not an amount."""
    try:
        return _rounded_nanos(Decimal(usd))
    except (InvalidOperation, ValueError, TypeError) as problem:  # a signaling NaN cannot be looked up
        raise ValueError(f"not an amount of money: {usd!r}") from problem


def nanos_up(usd: Decimal) -> Nanos:
    """Dollars to nano-dollars, rounded up, for the most that something may cost."""
    return Nanos(int((usd * NANOS_PER_USD).to_integral_value(ROUND_CEILING)))


@lru_cache(1024)  # most calls cost one of a few amounts
def _rounded_nanos(usd: Decimal) -> Nanos:
    return Nanos(int((usd * NANOS_PER_USD).quantize(Decimal(1), rounding=ROUND_HALF_UP)))


@lru_cache(1024)
def dollars(amount: Nanos) -> Decimal:
    """Nano-dollars to dollars, exactly and without trailing zeros."""
    exact = Decimal(amount) / NANOS_PER_USD
    return Decimal(0) if not exact else Decimal(f"{exact.normalize():f}")


def micros(amount: Nanos) -> int:
    """Whole micro-dollars, rounded half up, for estimates."""
    return int((Decimal(amount) / 1000).quantize(Decimal(1), rounding=ROUND_HALF_UP))


# ------------------------------------------------------------------------------------------------------------- frames

_SIZE = re.compile(r"([1-9][0-9]{0,4})x([1-9][0-9]{0,4})")
_RATIO = re.compile(r"([1-9][0-9]{0,3}):([1-9][0-9]{0,3})")
# The short side of each `resolution` in pixels; of images, that of a square.
SHORT_SIDES = {
    "360p": 360, "480p": 480, "540p": 540, "720p": 720, "768p": 768, "1080p": 1080, "1440p": 1440, "2160p": 2160,
    "1K": 1024, "2K": 2048, "4K": 4096,
}  # fmt: skip
_LONGEST_SIDE = 16_384
# What the words for squares mean for videos.
VIDEO_RESOLUTIONS = {"1K": "1080p", "2K": "1440p", "4K": "2160p"}


class Frame(msgspec.Struct, frozen=True):
    """The shape of an image or video that a caller asked for by `size`, `aspect_ratio` or `resolution`.

    The sides of an `exact` frame are pixels. Those of another frame are a ratio, perhaps with a resolution.
    """

    width: int
    height: int
    exact: bool = True
    resolution: str | None = None
    from_input: bool = False  # the shape of the first input image: the caller asked for no other

    @classmethod
    def parse(cls, text: str) -> "Frame":
        """Parse `1280x720` or `16:9`. Raises ValueError for anything else."""
        return _parse_frame(text)

    @property
    def ratio(self) -> str:
        common = gcd(self.width, self.height)
        return f"{self.width // common}:{self.height // common}"

    @property
    def short_ratio(self) -> str:
        """The ratio in numbers of four digits at most, which `parse` can read; one of larger numbers is rounded."""
        scale = max(1.0, max(self.sides) / 9999)
        return Frame(max(1, int(self.width / scale)), max(1, int(self.height / scale))).ratio

    @property
    def size(self) -> str:
        return f"{self.width}x{self.height}" if self.exact else self.ratio

    @property
    def short_side(self) -> int | None:
        """The short side in pixels; None if only the ratio is known."""
        return SHORT_SIDES[self.resolution] if self.resolution else min(self.sides) if self.exact else None

    def enlarged(self, factor: float) -> "Frame":
        """An exact frame whose sides are so many times as long, and even, as videos need it; no side is longer than any
        provider makes one.
        """
        factor = min(factor, _LONGEST_SIDE / max(self.sides))
        width, height = (max(2, round(side * factor / 2) * 2) for side in self.sides)
        return Frame(width, height)

    def scaled(self, short_side: int, multiple: int = 2) -> "Frame":
        """An exact frame with the same ratio; both sides are multiples of `multiple`. An exact frame stays as it is."""
        if self.exact:
            return self
        side = SHORT_SIDES.get(self.resolution or "", short_side)
        factor = Decimal(side) / min(self.width, self.height)
        width, height = (max(multiple, round(factor * length / multiple) * multiple) for length in self.sides)
        return Frame(width, height)

    @property
    def sides(self) -> tuple[int, int]:
        return self.width, self.height


@lru_cache(maxsize=256)  # a call asks for its frame several times, and callers for the same few
def _parse_frame(text: str) -> Frame:
    if match := _SIZE.fullmatch(text):
        return Frame(int(match[1]), int(match[2]))
    if match := _RATIO.fullmatch(text):
        return Frame(int(match[1]), int(match[2]), exact=False)
    raise ValueError(text)


# -------------------------------------------------------------------------------------------- input files, retention


FIRST_FRAME, LAST_FRAME, REFERENCE_IMAGE = "first_frame", "last_frame", "reference_image"
FRAME_ROLES = (FIRST_FRAME, LAST_FRAME)
VIDEO_ROLES = (*FRAME_ROLES, REFERENCE_IMAGE)  # of input images of videos, in the order in which they are sent
# The roles of an input video: it is changed, or it goes on. They are also its names in provider tables.
EDIT_VIDEO, EXTEND_VIDEO = "edit_video", "extend_video"
INPUT_VIDEOS = (EDIT_VIDEO, EXTEND_VIDEO)


@dataclass(frozen=True, slots=True)
class InputFile:
    """An image or a video that the caller supplied, fetched and checked; an image is cleaned, too."""

    data: Buffer
    content_type: str
    width: int
    height: int
    # `image`, `mask`, `reference`, `sound`, or one of VIDEO_ROLES and INPUT_VIDEOS; a video's table gets only those of
    # the last two lists
    role: str = "image"
    seconds: float = 0.0  # of a video or a sound
    frames: int = 0  # of a video
    uploaded_name: str = ""  # the provider's name for it, after an upload
    url: str = ""  # where a provider that takes only URLs can fetch it; `data` is then empty
    credentials: bytes | None = None  # what its Content Credentials say; empty: they do not hold, or are too large
    received: bytes = b""  # the SHA-256 of the file as it came, before it was cleaned


class Retention(msgspec.Struct, frozen=True):
    """How long outputs are kept, such as `12h` or `7d`."""

    seconds: int

    @classmethod
    def parse(cls, text: str) -> "Retention":
        """Parse a number of hours or days. Raises ValueError for anything else."""
        return _parse_retention(text)


@lru_cache(maxsize=64)  # it is parsed with each call
def _parse_retention(text: str) -> Retention:
    match = re.fullmatch(r"([1-9][0-9]{0,5})([hd])", text)
    if not match:
        raise ValueError(text)
    return Retention(int(match[1]) * (3600 if match[2] == "h" else 86_400))


# -------------------------------------------------------------------------------------------------------------- replay

IMAGE_FORMS = ("url", "b64_json")  # how images are returned
REPLAY_MODES = ("record", "replay-or-mock", "replay-or-error", "replay-or-live", "replay-or-record", "mock", "off")
REPLAY_MATCHES = ("standard", "strict", "exact", "specific", "pinned")
