"""Decode long base64 in pieces, between which other tasks and threads run."""

import base64
from collections.abc import Iterator

import msgspec

STEP = 1024 * 1024  # characters; takes a millisecond or two
_DATA_URI_HEAD = 256  # characters
_ALPHABET = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=")
_OTHER_BYTES = bytes(set(range(256)) - _ALPHABET)


def is_data_uri(text: object) -> bool:
    return isinstance(text, str) and text[:5].lower() == "data:"


def data_uri_start(text: str) -> int:
    """Where the base64 of a data URI begins: behind its comma, or at its end if it has none near its beginning."""
    return text.find(",", 0, _DATA_URI_HEAD) + 1 or len(text)


def strict_pieces(text: str | memoryview, start: int = 0) -> Iterator[bytes]:
    """Decode base64 with nothing else in it, by msgspec, which is three times as fast as the standard library.

    Raises ValueError, also for padding anywhere but at the end: each piece is decoded by itself, and would accept it.
    """
    for at in range(start, len(text), STEP):
        piece = text[at : at + STEP]
        letters = piece if isinstance(piece, str) else str(piece, "ascii")
        if at + STEP < len(text) and letters.endswith("="):
            raise ValueError("there is padding before the end")
        yield msgspec.convert(letters, bytes)


def tolerant_pieces(text: str | memoryview, start: int = 0) -> Iterator[bytes]:
    """Decode base64, and leave out whatever else is in it, such as line breaks. Raises ValueError."""
    rest = b""
    for at in range(start, len(text), STEP):
        piece = text[at : at + STEP]
        encoded = piece.encode("ascii") if isinstance(piece, str) else bytes(piece)
        rest += encoded.translate(None, _OTHER_BYTES)
        end = rest.find(b"=") // 4 * 4 + 4  # of the last four letters; 0 as long as there are others
        if 0 < end <= len(rest):
            rest = rest[:end]
            break
        whole = len(rest) // 4 * 4
        yield base64.b64decode(rest[:whole])
        rest = rest[whole:]
    yield base64.b64decode(rest)
