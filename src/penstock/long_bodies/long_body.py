"""The body of a long request or response, which is sent in pieces."""

from collections.abc import AsyncGenerator, Iterator, Sequence

from penstock.long_bodies.base64_pieces import FileAsBase64
from penstock.long_bodies.buffers import Buffer, GrowingBuffer

_PIECE_BYTES = 256 * 1024


class LongBody:
    """A body in parts, of which no long one is copied as a whole; files in base64 are encoded while it is sent."""

    __slots__ = ("_parts",)

    def __init__(self, parts: Sequence[Buffer | FileAsBase64]) -> None:
        self._parts = parts

    def between(self, head: bytes, tail: bytes) -> "LongBody":
        """Return the same body with these bytes before and after it."""
        return LongBody([head, *self._parts, tail])

    @staticmethod
    def of(bodies: Sequence["bytes | LongBody"]) -> "LongBody":
        """Return one body of several, in this order."""
        parts: list[Buffer | FileAsBase64] = []
        for body in bodies:
            parts += body._parts if isinstance(body, LongBody) else (body,)
        return LongBody(parts)

    def __len__(self) -> int:
        return sum(map(len, self._parts))

    def __iter__(self) -> Iterator[bytes]:
        for part in self._parts:
            if isinstance(part, FileAsBase64):
                yield from part.pieces()
            elif isinstance(part, bytes) and len(part) <= _PIECE_BYTES:
                yield part
            else:
                view = memoryview(part)
                for start in range(0, len(view), _PIECE_BYTES):
                    yield bytes(view[start : start + _PIECE_BYTES])

    def __bytes__(self) -> bytes:
        return b"".join(self)

    def joined(self) -> bytearray:
        """The whole body, copied piece by piece: `bytes` of a long one lets no other thread run meanwhile."""
        whole = GrowingBuffer(len(self))
        for piece in self:
            whole.write(piece)
        return whole.finish()


class StreamedBody:
    """A body that is read while it is sent, so that it is never as a whole in memory. It can be sent once."""

    __slots__ = ("_length", "chunks")

    def __init__(self, chunks: AsyncGenerator[bytes], length: int) -> None:
        self.chunks = chunks
        self._length = length

    def __len__(self) -> int:
        return self._length


def whole(body: bytes | LongBody) -> bytes | bytearray:
    """A body as one piece."""
    return body.joined() if isinstance(body, LongBody) else body


def pieces_of(body: bytes | LongBody) -> Iterator[bytes]:
    """The pieces in which a body is sent; bytes are one piece."""
    return iter(body) if isinstance(body, LongBody) else iter((body,))
