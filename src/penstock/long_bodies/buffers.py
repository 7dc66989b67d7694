"""Collect bytes without holding them twice."""

Buffer = bytes | bytearray | memoryview

# More is not asked for before it is filled: the room is filled with zeros, and a larger buffer grows without a copy,
# because the system moves it (see `event_loop.configure_process`).
_FIRST_BYTES = 4 * 1024**2


class GrowingBuffer:
    """Bytes that arrive in pieces. If their number is known, the buffer has room for them from the start.

    One that grows from nothing is moved again and again, and what it leaves behind stays with the process.
    """

    __slots__ = ("_data", "_size")

    def __init__(self, expected_bytes: int = 0) -> None:
        self._data = bytearray(min(expected_bytes, _FIRST_BYTES))
        self._size = 0

    def write(self, piece: Buffer) -> None:
        end = self._size + len(piece)
        if end <= len(self._data):
            memoryview(self._data)[self._size : end] = piece
        else:
            del self._data[self._size :]
            self._data += piece
        self._size = end

    def finish(self) -> bytearray:
        """What was written, without a copy; nothing may be written afterwards."""
        del self._data[self._size :]
        return self._data
