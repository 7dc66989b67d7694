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
    assert max(map(len, body)) <= MAX_STEP_BYTES


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
