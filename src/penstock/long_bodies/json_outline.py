"""Change large JSON without decoding the long texts in it."""

import re
from codecs import utf_8_decode
from collections.abc import Sequence
from secrets import token_hex

import msgspec

from penstock.long_bodies.buffers import GrowingBuffer
from penstock.long_bodies.long_texts import GO_BACK, STEP_BYTES, take_texts

MAX_OUTLINE_BYTES = 8 * 1024**2
_COPIED_AT_ONCE = 1024**2
_PART_OF_TEXT = re.compile(rb'(?:[^"\\\x00-\x1f]++|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4}' + GO_BACK + rb")*+")


class Outline:
    """JSON in which a mark stands for each long text, so that little is left to decode.

    The texts are not decoded at all: they stay in the bytes that they came in, until they are copied to where their
    marks have come to be.
    """

    def __init__(
        self, raw: bytes | bytearray, json: bytes, texts: Sequence[memoryview] = (), mark: bytes = b""
    ) -> None:
        """Each mark consists of the same bytes and the number of a text, followed by a quote."""
        self.json = json
        self._raw = raw
        self._texts = texts
        self._mark = mark

    def fill(self, encoded: bytes) -> bytes | bytearray:
        """Return JSON that was made from `json`, with the long texts in the places of their marks: `json` itself as the
        bytes that it is the outline of.
        """
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
        return whole.finish()


def outline(raw: bytes | bytearray) -> Outline:
    """Return the outline of JSON that has many bytes, which must not change afterwards; of others the JSON as it is.

    Raises TooComplex if it is itself too long, msgspec.DecodeError for a text that is malformed or has no end, and
    UnicodeDecodeError for bytes that are not UTF-8, which msgspec does not look for in a text that it does not decode.
    """
    if len(raw) > STEP_BYTES or not raw.isascii():
        _check_utf8(raw)
    if len(raw) <= STEP_BYTES:
        short = bytes(raw)
        return Outline(short, short)
    secret = token_hex(16)
    json, texts = take_texts(raw, _find_text, secret, MAX_OUTLINE_BYTES)
    return Outline(raw, json, tuple(texts.values()), f'"{secret} '.encode())


def _check_utf8(raw: bytes | bytearray) -> None:
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
