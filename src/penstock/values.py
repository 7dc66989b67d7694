"""Small values: ids, replay modes, moments, money, frames, references, durations."""

import os
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from math import gcd
from typing import NewType

# ---------------------------------------------------------------------------------------------------------------- ids

# Six bytes of milliseconds and ten of chance, in hexadecimal: sorts by time, and is made without a line of Python.
_RANDOM_BYTES = 10
_ID = re.compile(r"[a-z]+_[0-9a-f]{32}")
_LAST_MS = 2**48 - 1


def new_id(prefix: str, at_ms: int) -> str:
    """A time-sortable id such as `req_…`; the time it carries is also the row's `created_at`."""
    if not _chances:
        # One question to the system answers many, because each costs more than the rest of the id.
        drawn = os.urandom(_DRAWN * _RANDOM_BYTES).hex()
        _chances.extend(drawn[at : at + 2 * _RANDOM_BYTES] for at in range(0, len(drawn), 2 * _RANDOM_BYTES))
    return f"{prefix}_{at_ms:012x}{_chances.pop()}"


_DRAWN = 64
_chances: list[str] = []
os.register_at_fork(after_in_child=_chances.clear)  # what parent and child share, both would give out


def first_id(prefix: str, at_ms: int) -> str:
    """The smallest id that a moment can have, so that a time filter is a range of ids."""
    return f"{prefix}_{min(max(at_ms, 0), _LAST_MS):012x}{bytes(_RANDOM_BYTES).hex()}"


def is_id(text: str, prefix: str) -> bool:
    return text.startswith(f"{prefix}_") and _ID.fullmatch(text) is not None


# ------------------------------------------------------------------------------------------------------------ moments


def iso(at_ms: int) -> str:
    """A moment as answers show it."""
    return datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


# -------------------------------------------------------------------------------------------------------------- money

Nanos = NewType("Nanos", int)
"""Money: billionths of a US dollar. Never a float."""

ZERO = Nanos(0)
_NANOS_PER_USD = 1_000_000_000


def nanos(usd: Decimal | str | int) -> Nanos:
    """Dollars to nano-dollars, rounded half up: the one place where an amount is rounded."""
    try:
        amount = Decimal(usd) * _NANOS_PER_USD
        return Nanos(int(amount.quantize(Decimal(1), rounding=ROUND_HALF_UP)))
    except (InvalidOperation, ValueError) as problem:
        raise ValueError(f"not an amount of money: {usd!r}") from problem


def dollars(amount: Nanos) -> Decimal:
    """Nano-dollars to the shortest decimal that says the same; encoded as a JSON number."""
    exact = Decimal(amount) / _NANOS_PER_USD
    return Decimal(0) if not exact else Decimal(f"{exact.normalize():f}")


def micros(amount: Nanos) -> int:
    """Whole micro-dollars, rounded half up, for estimates."""
    return int((Decimal(amount) / 1000).quantize(Decimal(1), rounding=ROUND_HALF_UP))


# ------------------------------------------------------------------------------------------------------------- frames

_SIZE = re.compile(r"([1-9][0-9]{0,4})x([1-9][0-9]{0,4})")
_RATIO = re.compile(r"([1-9][0-9]{0,3}):([1-9][0-9]{0,3})")
SHORT_SIDES = {"480p": 480, "540p": 540, "720p": 720, "1080p": 1080, "1440p": 1440, "2160p": 2160}


@dataclass(frozen=True, slots=True)
class Frame:
    """The picture shape a caller asked for, whichever of `size`, `aspect_ratio` and `resolution` said it.

    `exact` frames count pixels. The others know only the proportion, and perhaps the resolution.
    """

    width: int
    height: int
    exact: bool = True
    resolution: str | None = None

    @classmethod
    def parse(cls, text: str) -> "Frame":
        """`1280x720` or `16:9`; raises ValueError for anything else."""
        if match := _SIZE.fullmatch(text):
            return cls(int(match[1]), int(match[2]))
        if match := _RATIO.fullmatch(text):
            return cls(int(match[1]), int(match[2]), exact=False)
        raise ValueError(text)

    @property
    def ratio(self) -> str:
        common = gcd(self.width, self.height)
        return f"{self.width // common}:{self.height // common}"

    @property
    def size(self) -> str:
        return f"{self.width}x{self.height}" if self.exact else self.ratio

    def scaled(self, short_side: int, multiple: int = 2) -> "Frame":
        """Pixels for a frame that has only a proportion; an exact frame stays as it is."""
        if self.exact:
            return self
        side = SHORT_SIDES.get(self.resolution or "", short_side)
        factor = Decimal(side) / min(self.width, self.height)
        width, height = (max(multiple, round(factor * length / multiple) * multiple) for length in self.sides)
        return Frame(width, height)

    @property
    def sides(self) -> tuple[int, int]:
        return self.width, self.height


# --------------------------------------------------------------------------------------------------------- references


@dataclass(frozen=True, slots=True)
class InputImage:
    """A picture that the caller supplied, already fetched, checked and kept: what a provider file may hand on."""

    data: bytes
    content_type: str
    width: int
    height: int
    name: str = "image"


@dataclass(frozen=True, slots=True)
class Retention:
    """How long produced media is kept: `12h`, `7d`."""

    seconds: int

    @classmethod
    def parse(cls, text: str) -> "Retention":
        match = re.fullmatch(r"([1-9][0-9]{0,5})([hd])", text)
        if not match:
            raise ValueError(text)
        return cls(int(match[1]) * (3600 if match[2] == "h" else 86_400))


# -------------------------------------------------------------------------------------------------------------- replay

REPLAY_MODES = ("record", "replay-or-mock", "replay-or-error", "replay-or-live", "replay-or-record", "mock", "off")
REPLAY_MATCHES = ("standard", "strict", "specific", "pinned")
