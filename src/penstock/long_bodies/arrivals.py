"""Collect the chunks of a body that a parser finds in what has arrived, and tell when they are absurdly small."""

STEP_BYTES = 16 * 1024  # of what has arrived, so many are parsed before the chunks are counted
_FREE_CHUNKS = 4096
_FEW_CHUNKS = 16


class Arrivals:
    """The chunks of a body that were parsed since the last `take`.

    Each chunk costs a call of the parser, however few bytes it has: a sender of chunks of one byte would have the
    processor to itself. So the chunks are collected by `add`, which is the method of a list and runs no Python, and are
    taken together. Chunks that arrive one at a time are not counted: each has a packet of its own.
    """

    __slots__ = ("_chunk_bytes", "_chunks", "_least_average", "add", "pieces")

    def __init__(self, least_average: int) -> None:
        """`least_average` is how many bytes a chunk must have on average, after the first thousands."""
        self._least_average = least_average
        self.pieces: list[bytes] = []  # what was added since the last `take`
        self.add = self.pieces.append
        self.restart()

    def restart(self) -> None:
        """Count the chunks of another body."""
        self._chunks = 0
        self._chunk_bytes = 0

    def take(self) -> bytes:
        """Return what has arrived, as one piece."""
        pieces = self.pieces
        count = len(pieces)
        data = pieces[0] if count == 1 else b"".join(pieces)
        self._forget(len(data))
        return data

    def take_few(self) -> list[bytes]:
        """Return what has arrived: each chunk by itself, if there are few, or all of them as one piece."""
        if len(self.pieces) > _FEW_CHUNKS:
            return [self.take()]
        pieces = self.pieces.copy()
        self._forget(sum(map(len, pieces)))
        return pieces

    def _forget(self, size_bytes: int) -> None:
        if self.pieces:
            self._chunks += len(self.pieces) - 1
            self._chunk_bytes += size_bytes
            self.pieces.clear()

    @property
    def are_too_small(self) -> bool:
        """Whether the chunks of this body, with those that were not taken yet, have fewer bytes than they must have."""
        chunks = self._chunks + len(self.pieces)
        if chunks <= _FREE_CHUNKS:
            return False
        return self._chunk_bytes + sum(map(len, self.pieces)) < chunks * self._least_average
