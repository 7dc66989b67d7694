"""Decode large JSON in small steps, between which other threads run; refuse what takes long in one step."""

import re
from codecs import utf_8_decode
from collections.abc import Callable, Mapping
from secrets import token_hex
from typing import Any, TypeVar

import msgspec

from penstock.base64_pieces import Base64Text
from penstock.buffers import Buffer, GrowingBuffer

Text = TypeVar("Text")

# Python runs no other thread while it is inside of a single step, such as a search or the decoding of a value. How long
# that takes grows with the number of bytes and values. So long texts, which are nearly all of a large body, are taken
# out, decoded in pieces and put in their places; the rest has limits, of which each means a few milliseconds.
STEP_BYTES = 128 * 1024
MAX_COMMAS = 50_000  # outside of long texts: there is at most one value more than commas and brackets
MAX_NAMES = 10_000  # of one object, which is decoded in one step: each takes ten times as long as another value
_MAX_DEPTH = 1000  # no decoder goes deeper
MAX_BYTES_BESIDE_TEXTS = 4 * 1024**2  # without texts of more than `_SHORT_TEXT` bytes
MAX_ESCAPES = 4_000_000
# Of a text that is not only ASCII: one such letter may make all of them four times as wide.
MAX_CHARACTERS = 4 * 1024**2
_SHORT_TEXT = 512
_LONG_BASE64 = 256 * 1024
_NAME_END = re.compile(rb'"[ \t\r\n]*+:')
# A text, which may have no end, and whether it is a name; a bracket; or some of what is between these.
_TEXT_OR_BRACKET = re.compile(
    rb'"(?:[^"\\]++|\\.)*+(?:"(?=([ \t\r\n]*+:)?)|\\?\Z)|[{}\[\]]|[^"{}\[\]]{1,65536}+', re.DOTALL
)
_BASE64 = re.compile(rb"[A-Za-z0-9+/]{256}")
_DATA_URI = re.compile(rb"[Dd][Aa][Tt][Aa]:[A-Za-z0-9/+.;=-]{0,200},[A-Za-z0-9+/]{256}")
_ESCAPED_BYTES = 16 * 1024  # of a piece of a text with escapes, which take much longer than other letters

_decode = msgspec.json.Decoder().decode
_decode_object = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_decode_array = msgspec.json.Decoder(list[msgspec.Raw]).decode

_BETWEEN_LONG_TEXTS = re.compile(rb'(?:[^"]++|"[^"\\]{0,%d}+")*+' % _SHORT_TEXT)
# A part of a text that can be decoded by itself: it ends neither in an escape nor between the halves of a pair.
_PIECE = re.compile(
    rb'(?:[^"\\]++|(?:\\[^u])++|\\u(?![dD][89abAB])[^"\\]{4}|\\u[dD][89abAB][^"\\]{2}\\u[dD][c-fC-F][^"\\]{2})*+',
    re.DOTALL,
)
_LONGEST_LETTER = 4  # bytes in UTF-8


class TooComplex(ValueError):
    """The JSON has too many values or escapes, or too long a text; the message says what is allowed."""


def decode(raw: bytes | bytearray, *, leaves_files: bool = False) -> Any:
    """Decode JSON. Raises TooComplex, and otherwise what `msgspec.json.decode` raises; but where its messages name a
    position, it may be that in a part of the JSON.

    With `leaves_files`, a file in a long data URI stays where it is: its value is a Base64Text.
    """
    if _exceeds(raw, b"\\", MAX_ESCAPES):
        raise TooComplex(f"may contain {MAX_ESCAPES} escapes at most")
    return _decode_large(raw, _leave_data_uri if leaves_files else _take_text)


def check_names(raw: bytes | bytearray) -> None:
    """Raise TooComplex if one of the objects has too many names.

    Where there are many names in all, also raises RecursionError for JSON that is nested too deeply to be decoded.
    """
    names = 0
    for start in range(0, len(raw), STEP_BYTES):
        names += sum(1 for _ in _NAME_END.finditer(raw, start, start + STEP_BYTES))
    if names > MAX_NAMES:
        _check_names_of_each_object(raw)


def _check_names_of_each_object(raw: bytes | bytearray) -> None:
    names = [0]  # of the object or array at each level
    for match in _TEXT_OR_BRACKET.finditer(raw):
        character = raw[match.start()]
        if character in b"{[":
            names.append(0)
            if len(names) > _MAX_DEPTH:
                raise RecursionError
        elif character in b"}]":
            names.pop()
            names = names or [0]  # there are more closing brackets than opening ones
        elif match[1] is not None:
            names[-1] += 1
            if names[-1] > MAX_NAMES:
                raise TooComplex(f"may contain objects of {MAX_NAMES} names at most")


def decode_beside_base64(raw: bytes | bytearray) -> Any:
    """Decode as `decode`, but leave a long text in base64 where it is: its value is a Base64Text.

    A file in base64 is a third longer than the file, and the text would be a copy of it.
    """
    return _decode_large(raw, _leave_base64) if len(raw) > _LONG_BASE64 else _decode(raw)


def _decode_large(raw: bytes | bytearray, take: "_TakeText[str | Base64Text]") -> Any:
    rest, texts = _take_texts(raw, take, token_hex(16), MAX_BYTES_BESIDE_TEXTS)
    if _exceeds(rest, b",", MAX_COMMAS):
        raise TooComplex(f"may contain {MAX_COMMAS} commas outside of long texts at most")
    check_names(rest)
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


# Takes the text whose opening quote is at a position. Returns it, and where it ends.
_TakeText = Callable[[bytes | bytearray, int], tuple[Text, int]]


def _take_texts(
    raw: bytes | bytearray, take: _TakeText[Text], secret: str, max_bytes: int
) -> tuple[bytes, dict[str, Text]]:
    """Return the JSON with a mark in the place of each long text, and the texts by their marks.

    Each mark begins with the secret, so that no text of a caller is one. Raises TooComplex if what is beside the texts
    has more than `max_bytes`.
    """
    texts: dict[str, Text] = {}
    parts: list[Buffer] = []
    size = 0
    at = 0
    while at < len(raw):
        end = _BETWEEN_LONG_TEXTS.match(raw, at, at + STEP_BYTES).end()  # type: ignore[union-attr]  # matches anything
        if end == at:  # here begins a text that is long, has escapes, or both
            text, end = take(raw, at)
            if end - at > _SHORT_TEXT:
                mark = f"{secret} {len(texts)}"
                texts[mark] = text
                parts.append(f'"{mark}"'.encode())
                at = end
                continue
        size += end - at
        if size > max_bytes:
            raise TooComplex(f"may contain {max_bytes} bytes outside of long texts at most")
        parts.append(raw[at:end])
        at = end
    return b"".join(parts), texts


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
        _decode(b'"' + raw[at : at + 2 * _SHORT_TEXT])  # says what is wrong with it
        raise msgspec.DecodeError("JSON is malformed: invalid character in a text")
    return text, at + 1


def _piece_end(raw: bytes | bytearray, start: int) -> int:
    """Return the end of a piece of a text that has one step at most: `start` if there is none."""
    limit = min(start + STEP_BYTES, len(raw))
    end = raw.find(b'"', start, limit)
    end = limit if end < 0 else end
    escape = raw.find(b"\\", start, end)
    if escape - start > _SHORT_TEXT:
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
                    raise TooComplex(f"may contain names of {_SHORT_TEXT} bytes at most")
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


# ------------------------------------------------------------------------------------------------------------- outlines

MAX_OUTLINE_BYTES = 8 * 1024**2
_COPIED_AT_ONCE = 1024**2
_PART_OF_TEXT = re.compile(rb'(?:[^"\\\x00-\x1f]++|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*+')


class Outline:
    """JSON in which a mark stands for each long text, so that little is left to decode.

    The texts are not decoded at all: they stay in the bytes that they came in, until they are copied to where their
    marks have come to be.
    """

    def __init__(self, raw: bytes, json: bytes, texts: Mapping[str, memoryview], secret: str) -> None:
        self.json = json
        self._raw = raw
        self._texts = tuple(texts.values())
        self._mark = f'"{secret} '.encode()

    def fill(self, encoded: bytes) -> bytes:
        """Return JSON that was made from `json`, with the long texts in the places of their marks."""
        if encoded is self.json:
            return self._raw
        if not self._texts:
            return encoded
        first, *others = encoded.split(self._mark)
        whole = GrowingBuffer(len(encoded) + sum(map(len, self._texts)))
        whole.write(first)
        for part in others:
            number, _, following = part.partition(b'"')
            text = self._texts[int(number)]
            for start in range(0, len(text), _COPIED_AT_ONCE):
                whole.write(text[start : start + _COPIED_AT_ONCE])
            whole.write(following)
        return bytes(whole.finish())


def outline(raw: bytes) -> Outline:
    """Return the outline of JSON that has many bytes; of others the JSON as it is.

    Raises TooComplex if it is itself too long, msgspec.DecodeError for a text that is malformed or has no end, and
    UnicodeDecodeError for bytes that are not UTF-8, which msgspec does not look for in a text that it does not decode.
    """
    _check_utf8(raw)
    if len(raw) <= STEP_BYTES:
        return Outline(raw, raw, {}, "")
    secret = token_hex(16)
    return Outline(raw, *_take_texts(raw, _find_text, secret, MAX_OUTLINE_BYTES), secret)


def _check_utf8(raw: bytes) -> None:
    """Raise UnicodeDecodeError if the bytes are not UTF-8."""
    at = 0
    while at < len(raw):
        piece = raw[at : at + STEP_BYTES]
        is_last = at + STEP_BYTES >= len(raw)  # another piece may end inside of a letter, which the next begins with
        at += len(piece) if piece.isascii() else utf_8_decode(piece, "strict", is_last)[1]


def _find_text(raw: bytes | bytearray, start: int) -> tuple[memoryview, int]:
    """The text whose opening quote is at `start`, with its quotes, as it is written; and where it ends."""
    at = start + 1
    while True:
        end = _PART_OF_TEXT.match(raw, at, at + STEP_BYTES).end()  # type: ignore[union-attr]  # matches anything
        if raw[end : end + 1] == b'"':
            return memoryview(raw)[start : end + 1], end + 1
        if end == at:
            raise msgspec.DecodeError("JSON is malformed: invalid character in a text")
        at = end
