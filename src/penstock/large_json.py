"""Decode large JSON in small steps, between which other threads run; refuse what takes long in a single step."""

from typing import Any

import msgspec

# Python runs no other thread while a value is decoded in one step. How long that takes grows with the number of values
# and escapes, and with the length of a text that is not only ASCII; other bytes, such as base64, are cheap.
MAX_COMMAS = 250_000  # there is at most one value more than commas and brackets
MAX_ESCAPES = 4_000_000
MAX_TEXT_BYTES = 8 * 1024**2  # of a text that is not only ASCII
_STEP_BYTES = 128 * 1024
_SEARCHED = 1000
_COUNTED_BYTES = 1024**2

_decode = msgspec.json.Decoder().decode
_decode_object = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_decode_array = msgspec.json.Decoder(list[msgspec.Raw]).decode


class TooComplex(ValueError):
    """The JSON has too many values or escapes, or too long a text; the message says what is allowed."""


def decode(raw: bytes) -> Any:
    """Decode JSON. Raises TooComplex, and otherwise what `msgspec.json.decode` raises; but where its messages name a
    position, it may be that in a part of the JSON.
    """
    check_values(raw)
    if _exceeds(raw, b"\\", MAX_ESCAPES):
        raise TooComplex(f"may contain {MAX_ESCAPES} escapes at most")
    return _decode_in_steps(raw, raw.isascii())


def check_values(raw: bytes) -> None:
    """Raise TooComplex if there are too many values."""
    if _exceeds(raw, b",", MAX_COMMAS):
        raise TooComplex(f"may contain {MAX_COMMAS} commas at most")


def _exceeds(raw: bytes, mark: bytes, most: int) -> bool:
    """Whether a mark occurs more often than `most`. Where it is rare, searching is much faster than counting."""
    at = -1
    for _ in range(_SEARCHED):
        at = raw.find(mark, at + 1)
        if at < 0:
            return False
    left = most - _SEARCHED
    for start in range(at + 1, len(raw), _COUNTED_BYTES):
        left -= raw.count(mark, start, start + _COUNTED_BYTES)
        if left < 0:
            return True
    return False


def _decode_in_steps(raw: bytes, is_ascii: bool) -> Any:
    """Decode a value. A large object or array is taken apart first, which creates none of the values in it.

    `is_ascii` says whether the JSON that this value is in is only ASCII.
    """
    if len(raw) <= _STEP_BYTES:
        return _decode(raw)
    first = bytes(memoryview(raw)[:_STEP_BYTES]).lstrip()[:1]
    if first == b"{":
        return {name: _decode_in_steps(value, is_ascii) for name, value in _decode_object(raw).items()}
    if first == b"[":
        return [_decode_in_steps(value, is_ascii) for value in _decode_array(raw)]
    if len(raw) > MAX_TEXT_BYTES and not is_ascii and not bytes(raw).isascii():
        raise TooComplex(f"may contain texts of {MAX_TEXT_BYTES} bytes at most, unless they are only ASCII")
    return _decode(raw)
