"""Decode large JSON in small steps, between which other threads run; refuse what takes long in one step."""

import re
from secrets import token_hex
from typing import Any

import msgspec

from penstock.long_bodies.base64_pieces import Base64Text
from penstock.long_bodies.buffers import Buffer
from penstock.long_bodies.long_texts import GO_BACK, SHORT_TEXT, STEP_BYTES, TakeText, TooComplex, take_texts

# Limits of what is decoded in one step, of which each means some milliseconds; one object of 50,000 names takes twenty.
MAX_COMMAS = 50_000  # outside of long texts: there is at most one value more than commas and brackets, and fewer names
MAX_BYTES_BESIDE_TEXTS = 4 * 1024**2  # without texts of more than `SHORT_TEXT` bytes
MAX_ESCAPES = 4_000_000
# Of a text that is not only ASCII: one such letter may make all of them four times as wide.
MAX_CHARACTERS = 4 * 1024**2
_LONG_BASE64 = 256 * 1024
_BASE64 = re.compile(rb"[A-Za-z0-9+/]{256}")
_DATA_URI = re.compile(rb"[Dd][Aa][Tt][Aa]:[A-Za-z0-9/+.;=-]{0,200},[A-Za-z0-9+/]{256}")
_ESCAPED_BYTES = 16 * 1024  # of a piece of a text with escapes, which take much longer than other letters

_decode = msgspec.json.Decoder().decode
_decode_object = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_decode_array = msgspec.json.Decoder(list[msgspec.Raw]).decode

# A part of a text that can be decoded by itself: it ends neither in an escape nor between the halves of a pair.
_PIECE = re.compile(
    rb'(?:[^"\\]++|\\[^u]|\\u(?![dD][89abAB])[^"\\]{4}|\\u[dD][89abAB][^"\\]{2}\\u[dD][c-fC-F][^"\\]{2}'
    + GO_BACK
    + rb")*+",
    re.DOTALL,
)
_LONGEST_LETTER = 4  # bytes in UTF-8


def decode(raw: bytes | bytearray, *, leaves_files: bool = False) -> Any:
    """Decode JSON. Raises TooComplex, and otherwise what `msgspec.json.decode` raises; but where its messages name a
    position, it may be that in a part of the JSON.

    With `leaves_files`, a file in a long data URI stays where it is: its value is a Base64Text.
    """
    if _exceeds(raw, b"\\", MAX_ESCAPES):
        raise TooComplex(f"may contain {MAX_ESCAPES} escapes at most")
    return _decode_large(raw, _leave_data_uri if leaves_files else _take_text)


def decode_beside_base64(raw: bytes | bytearray) -> Any:
    """Decode as `decode`, but leave a long text in base64 where it is: its value is a Base64Text.

    A file in base64 is a third longer than the file, and the text would be a copy of it.
    """
    return _decode_large(raw, _leave_base64) if len(raw) > _LONG_BASE64 else _decode(raw)


def _decode_large(raw: bytes | bytearray, take: TakeText[str | Base64Text]) -> Any:
    rest, texts = take_texts(raw, take, token_hex(16), MAX_BYTES_BESIDE_TEXTS)
    if _exceeds(rest, b",", MAX_COMMAS):
        raise TooComplex(f"may contain {MAX_COMMAS} commas outside of long texts at most")
    value = _decode_in_steps(rest)
    return _with_texts(value, texts) if texts else value


def _decode_in_steps(raw: Buffer) -> Any:
    """Decode JSON without long texts. A large object or array is taken apart first, which creates no value in it."""
    if len(raw) <= STEP_BYTES:
        return _decode(raw)
    first = bytes(memoryview(raw)[:STEP_BYTES]).lstrip()[:1]
    if first == b"{":
        return {name: _decode_in_steps(value) for name, value in _decode_object(raw).items()}
    if first == b"[":
        return [_decode_in_steps(value) for value in _decode_array(raw)]
    return _decode(raw)


def _exceeds(raw: bytes | bytearray, character: bytes, most: int) -> bool:
    """Whether a character occurs more often than `most`."""
    left = most
    for start in range(0, len(raw), STEP_BYTES):
        left -= raw.count(character, start, start + STEP_BYTES)
        if left < 0:
            return True
    return False


# ---------------------------------------------------------------------------------------------------------- long texts


def _leave_base64(raw: bytes | bytearray, start: int) -> tuple[str | Base64Text, int]:
    return _find_base64(raw, start, _BASE64) or _take_text(raw, start)


def _leave_data_uri(raw: bytes | bytearray, start: int) -> tuple[str | Base64Text, int]:
    return _find_base64(raw, start, _DATA_URI) or _take_text(raw, start)


def _find_base64(raw: bytes | bytearray, start: int, file: re.Pattern[bytes]) -> tuple[Base64Text, int] | None:
    """The text whose opening quote is at `start`, and where it ends, if it is long base64 without escapes."""
    end = raw.find(b'"', start + 1) if file.match(raw, start + 1) else -1
    if end - start <= _LONG_BASE64 or raw.find(b"\\", start, end) >= 0:
        return None
    return Base64Text(memoryview(raw)[start + 1 : end]), end + 1


def _take_text(raw: bytes | bytearray, start: int) -> tuple[str, int]:
    """Decode the text whose opening quote is at `start`, in pieces. Returns it, and where it ends."""
    at = start + 1
    text = ""
    while True:
        end = _piece_end(raw, at)
        if end == at:
            break
        # This makes a long text longer without a copy, as long as there is no other reference to it.
        text += _decode(b'"' + raw[at:end] + b'"')
        if len(text) > MAX_CHARACTERS and not text.isascii():
            raise TooComplex(f"may contain texts of {MAX_CHARACTERS} characters at most, unless they are only ASCII")
        at = end
    if raw[at : at + 1] != b'"':
        _decode(b'"' + raw[at : at + 2 * SHORT_TEXT])  # says what is wrong with it
        raise msgspec.DecodeError("JSON is malformed: invalid character in a text")
    return text, at + 1


def _piece_end(raw: bytes | bytearray, start: int) -> int:
    """Return the end of a piece of a text that has one step at most: `start` if there is none."""
    limit = min(start + STEP_BYTES, len(raw))
    end = raw.find(b'"', start, limit)
    end = limit if end < 0 else end
    escape = raw.find(b"\\", start, end)
    if escape - start > SHORT_TEXT:
        end = escape  # without escapes it is simple
    elif escape >= 0:
        end = _PIECE.match(raw, start, start + _ESCAPED_BYTES).end()  # type: ignore[union-attr]  # matches anything
    for shorter in range(min(_LONGEST_LETTER, end - start)):
        if raw[end - shorter : end - shorter + 1] < b"\x80" or raw[end - shorter] >= 0xC0:
            return end - shorter
    return end


def _with_texts(value: Any, texts: dict[str, str | Base64Text]) -> Any:
    """Return a value with the long texts in the places of their marks."""
    if type(value) is str:
        return texts.get(value, value)
    level: list[dict[str, Any] | list[Any]] = [value] if type(value) in (dict, list) else []
    while level:
        inner: list[dict[str, Any] | list[Any]] = []
        for container in level:
            items = container.items() if isinstance(container, dict) else enumerate(container)
            for place, item in items:
                if place in texts:
                    raise TooComplex(f"may contain names of {SHORT_TEXT} bytes at most")
                kind = type(item)
                if kind is str:
                    if item in texts:
                        container[place] = texts[item]  # type: ignore[index]
                elif kind is dict or kind is list:
                    inner.append(item)
        level = inner
    return value


def with_plain_texts(value: Any) -> Any:
    """Return a value with a plain text in the place of each Base64Text."""
    if isinstance(value, Base64Text):
        return str(value)
    if isinstance(value, dict):
        return {name: with_plain_texts(item) for name, item in value.items()}
    if isinstance(value, list):
        return [with_plain_texts(item) for item in value]
    return value
