"""Large JSON is changed without decoding its long texts."""

from typing import Any

import msgspec
import pytest

from penstock.long_bodies import json_outline
from penstock.long_bodies.long_texts import STEP_BYTES, TooComplex
from tests.unit.long_bodies.large_values import LARGE


@pytest.mark.parametrize("value", LARGE.values(), ids=LARGE)
def test_an_outline_is_short_and_its_texts_come_back_where_their_marks_are(value: Any) -> None:
    raw = msgspec.json.encode({"first": value, "choices": [{"text": "a" * STEP_BYTES, "é" * 2000: "😀" * STEP_BYTES}]})
    raw = raw.replace(b"a" * 9, rb"\u0061\n" + b"a" * 8, 1)
    outline = json_outline.outline(raw)
    assert outline.fill(outline.json) is raw
    assert len(outline.json) < len(raw) - 4 * STEP_BYTES
    moved = msgspec.json.decode(outline.json)
    moved = {"moved": [moved["choices"], {"twice": moved["first"]}, moved["first"]]}
    expected = msgspec.json.decode(raw)
    expected = {"moved": [expected["choices"], {"twice": expected["first"]}, expected["first"]]}
    assert msgspec.json.decode(outline.fill(msgspec.json.encode(moved))) == expected


def test_the_outline_of_a_small_value_is_the_value() -> None:
    raw = b'{"a":"' + b"x" * 2000 + b'"}'
    outline = json_outline.outline(raw)
    assert outline.json is raw
    assert outline.fill(b"[]") == b"[]"


@pytest.mark.parametrize(
    "text", [b'"' + b"x" * STEP_BYTES, b'"\n' + b"x" * STEP_BYTES + b'"', rb'"\x' + b"x" * STEP_BYTES + b'"', b'"\\']
)
def test_a_malformed_long_text_has_no_outline(text: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        json_outline.outline(b"[0" + b" " * STEP_BYTES + b"," + text)


@pytest.mark.parametrize("before", [0, 600, STEP_BYTES - 3, 3 * STEP_BYTES])
def test_bytes_that_are_not_utf8_have_no_outline(before: int) -> None:
    """Also where a letter is cut off, or where half of a pair is written as a letter."""
    for letter in (b"\xff", "é".encode()[:1], "😀".encode()[:3], b"\xed\xa0\x80"):
        with pytest.raises(UnicodeDecodeError):
            json_outline.outline(b'{"a":"' + b"x" * before + letter + b'"}')
    letters = "é€😀".encode()
    for shift in range(len(letters)):  # so that a piece ends at each byte of them
        raw = b'{"a":"' + b"x" * (before + shift) + letters + b'"}'
        assert json_outline.outline(raw).fill(json_outline.outline(raw).json)


def test_an_outline_that_is_itself_long_is_refused() -> None:
    with pytest.raises(TooComplex, match="outside of long texts"):
        json_outline.outline(b"[" + b"0," * json_outline.MAX_OUTLINE_BYTES + b"0]")
