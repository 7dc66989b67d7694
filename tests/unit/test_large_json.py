"""Large JSON is decoded in steps, to the same values; what a single step would take long for is refused."""

import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from penstock import large_json
from penstock.base64_pieces import Base64Text

MIB = 1024**2
STEP = large_json.STEP_BYTES


class Steps:
    """Notes how many bytes each call of the decoder works on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.sizes: list[int] = []
        for name in ("_decode", "_decode_object", "_decode_array"):
            monkeypatch.setattr(large_json, name, self._noting(getattr(large_json, name)))

    def _noting(self, function: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def note(value: Any) -> Any:
            result = function(value)
            self.sizes.append(len(value))
            return result

        return note


def nested() -> Any:
    deep: Any = "x"
    for _ in range(50):
        deep = [deep, {"a": deep if len(str(deep)) < 100 else 1}]
    return deep


LARGE: dict[str, Any] = {
    "an image in base64": {"image": "data:image/png;base64," + "A" * (6 * MIB), "prompt": "é"},
    "many messages": {
        "messages": [{"role": "user", "content": [{"type": "text", "text": "é" * 50}] * 20, "n": [1, 2.5, None]}] * 500,
        "": {"deep": nested(), "empty": [{}, [], ""]},
    },
    "long messages": [{"role": "user", "content": f'{number} "é\\\n' * 9000} for number in range(20)],
    "short texts with escapes": ['\\"\n\t\0é', '"', "\\", "\\\\"] * 9000,
    "line ends": "\n" * MIB,
    "quotes and backslashes": '\\"' * (MIB // 4),
    "letters beside the ends of steps": [
        "a" * (STEP - offset) + "é😀\\\n" * 9 + "b" * STEP for offset in range(-2, 20)
    ],
    "letters of every width": "é😀a" * 100_000,
    "texts that look like marks": {"a": "a" * STEP, "b": ["0", "1", " 0"]},
}


@pytest.mark.parametrize("value", LARGE.values(), ids=LARGE)
def test_values_are_the_same_and_steps_are_small(value: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = Steps(monkeypatch)
    for options in ({"ensure_ascii": False}, {"ensure_ascii": True}, {"ensure_ascii": False, "indent": 1}):
        assert large_json.decode(json.dumps(value, **options).encode()) == value
    assert max(steps.sizes) <= large_json.MAX_BYTES_BESIDE_TEXTS
    assert sum(size > STEP + 2 for size in steps.sizes) <= 3 * 4, "only those that find where values end"


REFUSED = {
    "values": b"[" + b"0," * (large_json.MAX_COMMAS + 1) + b"0]",
    "names": b"{" + b",".join(b'"%d":0' % number for number in range(large_json.MAX_NAMES + 9)) + b"}",
    "names with blanks and texts": b'[{"a":{},"b":[{"c":"}"}],'
    + b",".join(b'"%d\\\\" \r\n\t : "\\"{"' % number for number in range(large_json.MAX_NAMES))
    + b"}]",
    "blanks": b"[" + b" " * (large_json.MAX_BYTES_BESIDE_TEXTS + 1) + b"]",
    "escapes": b'{"a":"' + rb"\n" * (large_json.MAX_ESCAPES + 1) + b'"}',
    "one letter outside of ASCII": '["é'.encode() + b"a" * large_json.MAX_CHARACTERS + b'"]',
    "the same at the end": b'["' + b"a" * large_json.MAX_CHARACTERS + 'é"]'.encode(),
    "a long name": b'{"' + b"a" * STEP + b'":0}',
}


@pytest.mark.parametrize("raw", REFUSED.values(), ids=REFUSED)
def test_what_takes_long_is_refused(raw: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = Steps(monkeypatch)
    with pytest.raises(large_json.TooComplex):
        large_json.decode(raw)
    assert max(steps.sizes, default=0) <= STEP + 2


def test_the_limits_themselves_are_accepted() -> None:
    commas = large_json.MAX_COMMAS
    assert len(large_json.decode(b"[" + b"0," * commas + b"0]")) == commas + 1
    assert len(large_json.decode(b'"' + b"," * (commas + 1) + b'"')) == commas + 1  # a text is one value
    names = {str(number): ": a:" for number in range(large_json.MAX_NAMES)}
    assert large_json.decode(msgspec.json.encode(names)) == names
    longest = "é" + "a" * (large_json.MAX_CHARACTERS - 1)
    assert large_json.decode(f'"{longest}"'.encode()) == longest


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
    "half of a letter at the end of a step": b'"' + b"a" * (STEP - 1) + b"\xc3" + b"a" * STEP + b'"',
    "many bytes that go on with a letter": b'"' + b"\x80" * (2 * STEP) + b'"',
    "many names, and a text without an end": b'["' + b"a" * 600 + b'",{' + b'"a":0,' * 10_001 + b'"' + rb"\"" * 100_000,
    "many names, and brackets that close nothing": b"[" + b'{"a":0},' * 20_000 + b"}" * 200_000,
    "something after the value": b'["' + b"a" * 200_000 + b'"] "x"',
}


@pytest.mark.parametrize("raw", MALFORMED.values(), ids=MALFORMED)
def test_malformed_json_is_refused(raw: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = Steps(monkeypatch)
    with pytest.raises((msgspec.DecodeError, UnicodeDecodeError, RecursionError)):
        large_json.decode(raw)
    assert max(steps.sizes, default=0) <= max(STEP + 2, 200_000)


def test_where_marks_are_rare_or_many_they_are_counted_alike() -> None:
    for count in (0, 1, 999, 5000):
        raw = (b"x" * 700 + b",") * count
        assert large_json._exceeds(raw, b",", count) is False
        if count:
            assert large_json._exceeds(raw, b",", count - 1) is True


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
        value = large_json.decode_beside_base64(raw)
        found = value["data"][0]["b64_json"] if isinstance(value, dict) else value[0]
        assert isinstance(found, Base64Text) is is_left
        assert str(found) == text


def test_escaped_slashes_in_base64_are_decoded() -> None:
    text = "iVBORw0K" * 50_000 + "/"
    raw = json.dumps([text]).replace("/", "\\/").encode()
    assert large_json.decode_beside_base64(raw) == [text]


def test_base64_that_does_not_end_is_no_json() -> None:
    with pytest.raises(msgspec.DecodeError):
        large_json.decode_beside_base64(b'["' + b"iVBORw0K" * 50_000)


# ------------------------------------------------------------------------------------------------------------- outlines


@pytest.mark.parametrize("value", LARGE.values(), ids=LARGE)
def test_an_outline_is_short_and_its_texts_come_back_where_their_marks_are(value: Any) -> None:
    raw = msgspec.json.encode({"first": value, "choices": [{"text": "a" * STEP, "é" * 2000: "😀" * STEP}]})
    raw = raw.replace(b"a" * 9, rb"\u0061\n" + b"a" * 8, 1)
    outline = large_json.outline(raw)
    assert outline.fill(outline.json) is raw
    assert len(outline.json) < len(raw) - 4 * STEP
    moved = msgspec.json.decode(outline.json)
    moved = {"moved": [moved["choices"], {"twice": moved["first"]}, moved["first"]]}
    expected = msgspec.json.decode(raw)
    expected = {"moved": [expected["choices"], {"twice": expected["first"]}, expected["first"]]}
    assert msgspec.json.decode(outline.fill(msgspec.json.encode(moved))) == expected


def test_the_outline_of_a_small_value_is_the_value() -> None:
    raw = b'{"a":"' + b"x" * 2000 + b'"}'
    outline = large_json.outline(raw)
    assert outline.json is raw
    assert outline.fill(b"[]") == b"[]"


@pytest.mark.parametrize(
    "text", [b'"' + b"x" * STEP, b'"\n' + b"x" * STEP + b'"', rb'"\x' + b"x" * STEP + b'"', b'"\\']
)
def test_a_malformed_long_text_has_no_outline(text: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        large_json.outline(b"[0" + b" " * STEP + b"," + text)


@pytest.mark.parametrize("before", [0, 600, STEP - 3, 3 * STEP])
def test_bytes_that_are_not_utf8_have_no_outline(before: int) -> None:
    """Also where a letter is cut off, or where half of a pair is written as a letter."""
    for letter in (b"\xff", "é".encode()[:1], "😀".encode()[:3], b"\xed\xa0\x80"):
        with pytest.raises(UnicodeDecodeError):
            large_json.outline(b'{"a":"' + b"x" * before + letter + b'"}')
    letters = "é€😀".encode()
    for shift in range(len(letters)):  # so that a piece ends at each byte of them
        raw = b'{"a":"' + b"x" * (before + shift) + letters + b'"}'
        assert large_json.outline(raw).fill(large_json.outline(raw).json)


def test_an_outline_that_is_itself_long_is_refused() -> None:
    with pytest.raises(large_json.TooComplex, match="outside of long texts"):
        large_json.outline(b"[" + b"0," * large_json.MAX_OUTLINE_BYTES + b"0]")
