"""Read CBOR (RFC 8949) as far as statements of C2PA use it, to check what a library wrote without it."""

import struct
from typing import Any

_SIMPLE = {20: False, 21: True, 22: None, 23: None}


def decode(data: bytes) -> Any:
    """The first value."""
    return _value(data, 0)[0]


def _value(data: bytes, at: int) -> tuple[Any, int]:
    kind, short = data[at] >> 5, data[at] & 31
    at += 1
    number = short
    if 24 <= short <= 27:
        size = 1 << (short - 24)
        number = int.from_bytes(data[at : at + size], "big")
        at += size
    assert short < 28, "values of unknown length are not used"
    if kind in (0, 1):
        return (number if kind == 0 else -1 - number), at
    if kind in (2, 3):
        text = data[at : at + number]
        return (text if kind == 2 else text.decode()), at + number
    if kind == 4:
        return _items(data, at, number)
    if kind == 5:
        flat, at = _items(data, at, 2 * number)
        return dict(zip(flat[::2], flat[1::2], strict=True)), at
    if kind == 6:
        return _value(data, at)
    return (_SIMPLE[short] if short in _SIMPLE else struct.unpack(">d", data[at - 8 : at])[0]), at


def _items(data: bytes, at: int, count: int) -> tuple[list[Any], int]:
    items = []
    for _ in range(count):
        item, at = _value(data, at)
        items.append(item)
    return items, at
