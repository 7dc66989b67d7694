"""Long texts are taken out of JSON, and a mark is left for each."""

import msgspec
import pytest

from penstock.long_bodies.long_texts import SHORT_TEXT, TooComplex, take_texts

SECRET = "0" * 32


def take(raw: bytes | bytearray, start: int) -> tuple[bytes, int]:
    """Take a text without escaped quotes as it is written."""
    end = raw.index(b'"', start + 1) + 1
    return bytes(raw[start:end]), end


def test_only_texts_that_are_longer_than_short_ones_are_taken_out() -> None:
    short = "s" * SHORT_TEXT
    value = {"a": short, "b": "l" * 2 * SHORT_TEXT, "c": ["x\\y", "m" * 3 * SHORT_TEXT]}
    rest, texts = take_texts(msgspec.json.encode(value), take, SECRET, 9 * SHORT_TEXT)
    marks = [f"{SECRET} 0", f"{SECRET} 1"]
    assert msgspec.json.decode(rest) == {"a": short, "b": marks[0], "c": ["x\\y", marks[1]]}
    assert texts == {marks[0]: b'"%s"' % (b"l" * 2 * SHORT_TEXT), marks[1]: b'"%s"' % (b"m" * 3 * SHORT_TEXT)}


def test_what_is_beside_the_texts_is_limited() -> None:
    raw = msgspec.json.encode([1, "l" * 2 * SHORT_TEXT, 2])
    assert len(take_texts(raw, take, SECRET, 6)[1]) == 1
    with pytest.raises(TooComplex, match="5 bytes outside of long texts"):
        take_texts(raw, take, SECRET, 5)
