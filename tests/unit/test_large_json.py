"""Large JSON is decoded in steps, to the same values; what a single step would take long for is refused."""

import json
from typing import Any

import msgspec
import pytest

from penstock import large_json


class Steps:
    """Notes how many bytes each step of the decoder works on, without those that only find where values end."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.sizes: list[int] = []
        decode = large_json._decode

        def note(raw: bytes) -> Any:
            self.sizes.append(len(raw))
            return decode(raw)

        monkeypatch.setattr(large_json, "_decode", note)


def test_values_are_the_same_and_steps_are_small(monkeypatch: pytest.MonkeyPatch) -> None:
    messages = [{"role": "user", "content": [{"type": "text", "text": "é" * 50}] * 20, "n": [1, 2.5, None]}] * 500
    deep: Any = "x"
    for _ in range(50):
        deep = [deep, {"a": deep if len(str(deep)) < 100 else 1}]
    value = {"messages": messages, "": {"deep": deep, "empty": [{}, [], ""]}, "text": "\n" * 1000}
    steps = Steps(monkeypatch)
    for indent in (None, 1):
        raw = json.dumps(value, ensure_ascii=False, indent=indent).encode()
        assert large_json.decode(raw) == value
    assert max(steps.sizes) <= large_json._STEP_BYTES
    assert sum(steps.sizes) > 10 * large_json._STEP_BYTES


def test_a_long_text_is_one_step(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "data:image/png;base64," + "A" * 20_000_000
    assert large_json.decode(json.dumps({"image": text, "prompt": "é"}).encode()) == {"image": text, "prompt": "é"}


REFUSED = {
    "values": b"[" + b"0," * 250_001 + b"0]",
    "escapes": b'{"a":"' + rb"\n" * 4_000_001 + b'"}',
    "one letter outside of ASCII": '["é'.encode() + b"a" * large_json.MAX_TEXT_BYTES + b'"]',
}


@pytest.mark.parametrize("raw", REFUSED.values(), ids=REFUSED)
def test_what_takes_long_is_refused_before_it_is_decoded(raw: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = Steps(monkeypatch)
    with pytest.raises(large_json.TooComplex):
        large_json.decode(raw)
    assert steps.sizes == []


def test_the_limits_themselves_are_accepted() -> None:
    assert len(large_json.decode(b"[" + b"0," * 249_999 + b"0]")) == 250_000
    assert len(large_json.decode(b'"' + rb"\n" * 1_000_000 + b'"')) == 1_000_000


@pytest.mark.parametrize("raw", [b"[" * 200_000, b'{"a":"' + b"a" * 200_000, b'["' + b"a" * 200_000 + b'",\xff]'])
def test_malformed_json_is_refused(raw: bytes) -> None:
    with pytest.raises((msgspec.DecodeError, RecursionError)):
        large_json.decode(raw)


def test_bytes_that_are_not_utf8_are_refused() -> None:
    with pytest.raises((msgspec.DecodeError, UnicodeDecodeError)):
        large_json.decode(b'{"a":"' + b"a" * 200_000 + b'\xff"}')


def test_where_marks_are_rare_or_many_they_are_counted_alike() -> None:
    for count in (0, 1, 999, 1000, 1001, 5000):
        raw = (b"x" * 700 + b",") * count
        assert large_json._exceeds(raw, b",", max(1000, count)) is False
        if count > 1000:
            assert large_json._exceeds(raw, b",", count - 1) is True
