"""Read the files that arrive in a child process while its task runs, each in pieces."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO

from penstock.imaging import messages
from penstock.imaging.messages import NO_MORE_FILES

_SKIP_BYTES = 64 * 1024


class Pieces:
    """The files that a task takes while it runs, one after the other, each read from its beginning to its end."""

    def __init__(self, incoming: IO[bytes]) -> None:
        self._incoming = incoming
        self._is_over = False

    def files(self) -> Iterator[PieceFile]:
        """Each file; what a task leaves unread of one is skipped."""
        while (size := self.next_size()) is not None:
            file = PieceFile(self, size)
            yield file
            while file.read(_SKIP_BYTES):
                pass

    def next_size(self) -> int | None:
        """The size of the next piece; 0 at the end of a file, None after the last one."""
        if not self._is_over:
            size = int.from_bytes(self.read(messages.SIZE_BYTES), "big")
            self._is_over = size == NO_MORE_FILES
            if not self._is_over:
                return size
        return None

    def read(self, size: int) -> bytes:
        """Exactly so many bytes. Raises EOFError when the gateway sends no more."""
        data = self._incoming.read(size)
        if len(data) < size:
            raise EOFError
        return data


class PieceFile:
    """One file of a task, which can be read and not sought."""

    def __init__(self, pieces: Pieces, size: int) -> None:
        self._pieces = pieces
        self._left = size  # of the piece; 0 at the end of the file

    def read(self, size: int) -> bytes:
        """At most so many bytes, of one piece; nothing at the end."""
        if not self._left:
            return b""
        data = self._pieces.read(min(size, self._left))
        self._left -= len(data)
        if not self._left:
            self._left = self._pieces.next_size() or 0
        return data
