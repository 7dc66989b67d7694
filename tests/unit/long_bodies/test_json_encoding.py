"""Large JSON is encoded in steps, to the same bytes, and files in it only when it is sent."""

import base64
import tracemalloc
from decimal import Decimal
from typing import Any

import msgspec
import pytest

from penstock.long_bodies import json_encoding
from penstock.long_bodies.base64_pieces import FileAsBase64
from tests.unit.long_bodies.large_values import LARGE

MAX_STEP_BYTES = 4 * 1024**2


@pytest.mark.parametrize("value", LARGE.values(), ids=LARGE)
def test_what_is_encoded_is_what_msgspec_encodes(value: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = msgspec.json.encode(value)
    sizes: list[int] = []

    def encode(value: Any) -> bytes:
        encoded = msgspec.json.encode(value)
        sizes.append(len(encoded))
        return encoded

    monkeypatch.setattr(json_encoding, "_encode", encode)
    assert bytes(json_encoding.encode(value, len(expected))) == expected
    assert max(sizes, default=0) <= MAX_STEP_BYTES
    body = json_encoding.encode_with_files(json_encoding._with_texts_to_encode(value))
    assert (b"".join(body), len(body)) == (expected, len(expected))
    assert max(map(len, body._parts)) <= MAX_STEP_BYTES
    assert len(body._parts) <= 2 + len(expected) / 50_000, "it is sent in too many pieces"


@pytest.mark.parametrize("value", LARGE.values(), ids=LARGE)
def test_sizes_are_found_without_encoding_a_large_value_as_a_whole(value: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = len(msgspec.json.encode(value))
    is_whole: list[bool] = []

    def encode(value: Any) -> bytes:
        encoded = msgspec.json.encode(value)
        is_whole.append(len(encoded) > MAX_STEP_BYTES)
        return encoded

    monkeypatch.setattr(json_encoding, "_encode", encode)
    assert json_encoding.encoded_size(value, expected) == expected
    assert json_encoding.exceeds(value, 64 * 1024, expected)
    assert not any(is_whole)
    monkeypatch.undo()
    assert json_encoding.encoded_size(value, 0) == expected
    assert not json_encoding.exceeds(value, expected, expected)
    assert json_encoding.exceeds(value, expected - 1, expected)


SMALL = ["", "é\n😀", 0, -1.5, None, True, [], {}, [[]], {"": {}}, [1, 2, 3], {"é": ["\0", {"b": 1}]}, ("a", [2])]


@pytest.mark.parametrize("value", SMALL, ids=repr)
def test_the_size_of_a_small_value_is_exact(value: Any) -> None:
    size = len(msgspec.json.encode(value))
    assert json_encoding.encoded_size(value, size) == json_encoding.encoded_size(value, 10**9) == size
    for body_bytes in (size, 10**9):
        found = [json_encoding.exceeds(value, most, body_bytes) for most in (0, size - 1, size, size + 1)]
        assert found == [True, True, False, False]


def test_a_file_is_encoded_when_its_json_is_sent() -> None:
    data = bytes(800_000)
    value = {"data": [FileAsBase64(data, "data:image/png;base64,"), "é", Decimal("0.5")], "more": FileAsBase64(b"")}
    tracemalloc.start()
    try:
        body = json_encoding.encode_with_files(value, decimal_format="number")
        assert max(map(len, body)) < 300_000
        assert tracemalloc.get_traced_memory()[1] < 600_000, "it was encoded as a whole"
    finally:
        tracemalloc.stop()
    text = "data:image/png;base64," + base64.b64encode(data).decode()
    expected = {"data": [text, "é", Decimal("0.5")], "more": ""}
    assert bytes(body) == msgspec.json.Encoder(decimal_format="number").encode(expected)
    assert len(body) == len(bytes(body))
    with pytest.raises(TypeError, match="object cannot be encoded as JSON"):
        json_encoding.encode_with_files([object()])
