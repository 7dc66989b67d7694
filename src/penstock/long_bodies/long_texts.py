"""Take the long texts out of JSON, so that little is left to decode in one step."""

import re
from collections.abc import Callable
from typing import TypeVar

from penstock.long_bodies.buffers import Buffer

Text = TypeVar("Text")

# Python runs no other thread while it is inside of a single step, such as a search or the decoding of a value. How long
# that takes grows with the number of bytes and values. So long texts, which are nearly all of a large body, are taken
# out, and decoded or copied in pieces.
STEP_BYTES = 128 * 1024
SHORT_TEXT = 512  # bytes; longer ones are taken out
# The last alternative of a possessive group, which never matches: until Python 3.11.4, such a group does not go back to
# where its last alternative began when that fails.
GO_BACK = rb"|(?!)"
_BETWEEN_LONG_TEXTS = re.compile(rb'(?:[^"]++|"[^"\\]{0,%d}+"%b)*+' % (SHORT_TEXT, GO_BACK))


class TooComplex(ValueError):
    """The JSON has too many values or escapes, or too long a text; the message says what is allowed."""


# Takes the text whose opening quote is at a position. Returns it, and where it ends.
TakeText = Callable[[bytes | bytearray, int], tuple[Text, int]]


def take_texts(
    raw: bytes | bytearray, take: TakeText[Text], secret: str, max_bytes: int
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
            if end - at > SHORT_TEXT:
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
