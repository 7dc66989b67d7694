"""Decode and encode long base64 in pieces, between which other tasks and threads run."""

import base64
from collections.abc import Iterator

import msgspec

from penstock.long_bodies.buffers import Buffer

STEP = 256 * 1024  # characters; takes less than a millisecond, and less memory than a small image
_DATA_URI_HEAD = 256  # characters
_ENCODED_AT_ONCE = 3 * 64 * 1024  # bytes: a multiple of three, so that there is padding only at the end
_ALPHABET = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=")
_OTHER_BYTES = bytes(set(range(256)) - _ALPHABET)


class Base64Text:
    """A file in long base64, perhaps as a data URI, where it is in the body that it came with.

    It is decoded there, if the body can be written to: the file takes the place of its text, so that there is only one
    of them in memory.
    """

    __slots__ = ("_file", "_view", "head", "is_clean")

    def __init__(self, view: memoryview) -> None:
        self._view = view
        self._file: memoryview | None = None
        self.head = str(view[:_DATA_URI_HEAD], "ascii")
        self.is_clean = True  # False after the text was decoded, if it had something else between the letters

    def __len__(self) -> int:
        return len(self._view)

    def __str__(self) -> str:
        """The text, as long as it is not decoded."""
        return str(self._view, "ascii")

    @property
    def file(self) -> memoryview:
        """The decoded file. Raises ValueError if the text could not be decoded."""
        if self._file is None:
            raise ValueError("not base64")
        return self._file

    def decode(self) -> Iterator[None]:
        """Decode the text, one step for each value that this yields. Raises ValueError.

        What is not base64, such as line breaks, is left out. To decode it again does nothing.
        """
        if self._file is not None:
            return
        start = data_uri_start(self)
        target = memoryview(bytearray(len(self._view))) if self._view.readonly else self._view
        size = 0
        for piece in self._pieces(start):
            target[start + size : start + size + len(piece)] = piece
            size += len(piece)
            yield
        self._file = target[start : start + size]

    def _pieces(self, start: int) -> Iterator[bytes]:
        at = start
        try:
            for piece in strict_pieces(self._view, start):
                yield piece
                at += STEP
        except ValueError:
            self.is_clean = False
            yield from tolerant_pieces(self._view, at)


class FileAsBase64:
    """A text that is a file in base64, encoded in pieces whenever it is sent."""

    __slots__ = ("_data", "_head")

    def __init__(self, data: Buffer, head: str = "") -> None:
        """`head` comes before the base64, as in a data URI."""
        self._data = memoryview(data)
        self._head = head.encode("ascii")

    def __len__(self) -> int:
        return len(self._head) + (len(self._data) + 2) // 3 * 4

    def __str__(self) -> str:
        text = ""
        for piece in self.pieces():
            # This makes a long text longer without a copy, as long as there is no other reference to it.
            text += str(piece, "ascii")
        return text

    def __deepcopy__(self, _: object) -> "FileAsBase64":
        return self  # it cannot change, like a text

    def pieces(self) -> Iterator[bytes]:
        if self._head:
            yield self._head
        for start in range(0, len(self._data), _ENCODED_AT_ONCE):
            yield base64.b64encode(self._data[start : start + _ENCODED_AT_ONCE])


def is_data_uri(text: object) -> bool:
    if isinstance(text, Base64Text):
        text = text.head
    return isinstance(text, str) and text[:5].lower() == "data:"


def data_uri_start(text: str | Base64Text) -> int:
    """Where the base64 of a data URI begins: behind its comma, or at its end if it has none near its beginning. In any
    other long base64 it is the start of the text.
    """
    if isinstance(text, Base64Text):
        return text.head.find(",") + 1
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
        end = rest.find(b"=") // 4 * 4 + 4  # behind the four letters with the padding; 0 as long as there is none
        if 0 < end <= len(rest):
            rest = rest[:end]
            break
        whole = len(rest) // 4 * 4
        yield base64.b64decode(rest[:whole])
        rest = rest[whole:]
    yield base64.b64decode(rest)
