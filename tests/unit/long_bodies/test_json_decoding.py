"""Large JSON is decoded in steps, to the same values; what a single step would take long for is refused."""

import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from penstock.long_bodies import json_decoding
from penstock.long_bodies.base64_pieces import Base64Text
from penstock.long_bodies.long_texts import STEP_BYTES, TooComplex
from tests.unit.long_bodies.large_values import LARGE


class Steps:
    """Notes how many bytes each call of the decoder works on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.sizes: list[int] = []
        for name in ("_decode", "_decode_object", "_decode_array"):
            monkeypatch.setattr(json_decoding, name, self._noting(getattr(json_decoding, name)))

    def _noting(self, function: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def note(value: Any) -> Any:
            result = function(value)
            self.sizes.append(len(value))
            return result

        return note


@pytest.mark.parametrize("value", LARGE.values(), ids=LARGE)
def test_values_are_the_same_and_steps_are_small(value: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = Steps(monkeypatch)
    for options in ({"ensure_ascii": False}, {"ensure_ascii": True}, {"ensure_ascii": False, "indent": 1}):
        assert json_decoding.decode(json.dumps(value, **options).encode()) == value
    assert max(steps.sizes) <= json_decoding.MAX_BYTES_BESIDE_TEXTS
    assert sum(size > STEP_BYTES + 2 for size in steps.sizes) <= 3 * 4, "only those that find where values end"


REFUSED = {
    "values": b"[" + b"0," * (json_decoding.MAX_COMMAS + 1) + b"0]",
    "blanks": b"[" + b" " * (json_decoding.MAX_BYTES_BESIDE_TEXTS + 1) + b"]",
    "escapes": b'{"a":"' + rb"\n" * (json_decoding.MAX_ESCAPES + 1) + b'"}',
    "one letter outside of ASCII": '["é'.encode() + b"a" * json_decoding.MAX_CHARACTERS + b'"]',
    "the same at the end": b'["' + b"a" * json_decoding.MAX_CHARACTERS + 'é"]'.encode(),
    "a long name": b'{"' + b"a" * STEP_BYTES + b'":0}',
}


@pytest.mark.parametrize("raw", REFUSED.values(), ids=REFUSED)
def test_what_takes_long_is_refused(raw: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = Steps(monkeypatch)
    with pytest.raises(TooComplex):
        json_decoding.decode(raw)
    assert max(steps.sizes, default=0) <= STEP_BYTES + 2


def test_the_limits_themselves_are_accepted() -> None:
    commas = json_decoding.MAX_COMMAS
    assert len(json_decoding.decode(b"[" + b"0," * commas + b"0]")) == commas + 1
    assert len(json_decoding.decode(b'"' + b"," * (commas + 1) + b'"')) == commas + 1  # a text is one value
    names = {str(number): ": a:" for number in range(commas)}
    assert json_decoding.decode(msgspec.json.encode(names)) == names
    longest = "é" + "a" * (json_decoding.MAX_CHARACTERS - 1)
    assert json_decoding.decode(f'"{longest}"'.encode()) == longest


MALFORMED = {
    "only brackets": b"[" * 200_000,
    "a text without an end": b'{"a":"' + b"a" * 200_000,
    "a text that ends in a backslash": b'{"a":"' + b"a" * 200_000 + b"\\",
    "an unknown escape": b'{"a":"' + b"a" * 200_000 + b'\\x"}',
    "a short escape": b'{"a":"' + b"a" * 200_000 + b'\\u12"}',
    "half of a pair": b'{"a":"' + b"a" * 200_000 + b'\\ud83d"}',
    "half of a pair, then another letter": b'{"a":"' + b"a" * 200_000 + b'\\ud83d\\u0041"}',
    "a control character": b'{"a":"' + b"a" * 200_000 + b'\n"}',
    "a byte beside a text": b'["' + b"a" * 200_000 + b'",\xff]',
    "no UTF-8": b'{"a":"' + b"a" * 200_000 + b'\xff"}',
    "half of a letter at the end of a step": b'"' + b"a" * (STEP_BYTES - 1) + b"\xc3" + b"a" * STEP_BYTES + b'"',
    "many bytes that go on with a letter": b'"' + b"\x80" * (2 * STEP_BYTES) + b'"',
    "many names, and a text without an end": b'["' + b"a" * 600 + b'",{' + b'"a":0,' * 10_001 + b'"' + rb"\"" * 100_000,
    "many names, and brackets that close nothing": b"[" + b'{"a":0},' * 20_000 + b"}" * 200_000,
    "something after the value": b'["' + b"a" * 200_000 + b'"] "x"',
}


@pytest.mark.parametrize("raw", MALFORMED.values(), ids=MALFORMED)
def test_malformed_json_is_refused(raw: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = Steps(monkeypatch)
    with pytest.raises((msgspec.DecodeError, UnicodeDecodeError, RecursionError)):
        json_decoding.decode(raw)
    assert max(steps.sizes, default=0) <= max(STEP_BYTES + 2, 200_000)


def test_where_marks_are_rare_or_many_they_are_counted_alike() -> None:
    for count in (0, 1, 999, 5000):
        raw = (b"x" * 700 + b",") * count
        assert json_decoding._exceeds(raw, b",", count) is False
        if count:
            assert json_decoding._exceeds(raw, b",", count - 1) is True


@pytest.mark.parametrize(
    ("text", "is_left"),
    [
        ("iVBORw0K" * 50_000, True),
        ("iVBORw0K" * 50_000 + "==", True),
        ("iVBORw0K" * 10_000, False),  # not long enough to matter
        ("data:image/png;base64," + "iVBORw0K" * 50_000, False),
        ("a pear on a table " * 50_000, False),
        ("iVBORw0K" * 50_000 + "\n", False),  # an escape in JSON
    ],
)
def test_a_long_text_in_base64_can_be_left_where_it_is(text: str, is_left: bool) -> None:
    for raw in (json.dumps({"data": [{"b64_json": text}, 1]}).encode(), json.dumps([text, "x" * 300_000]).encode()):
        value = json_decoding.decode_beside_base64(raw)
        found = value["data"][0]["b64_json"] if isinstance(value, dict) else value[0]
        assert isinstance(found, Base64Text) is is_left
        assert str(found) == text


def test_escaped_slashes_in_base64_are_decoded() -> None:
    text = "iVBORw0K" * 50_000 + "/"
    raw = json.dumps([text]).replace("/", "\\/").encode()
    assert json_decoding.decode_beside_base64(raw) == [text]


def test_base64_that_does_not_end_is_no_json() -> None:
    with pytest.raises(msgspec.DecodeError):
        json_decoding.decode_beside_base64(b'["' + b"iVBORw0K" * 50_000)
