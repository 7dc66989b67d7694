"""Read the headers and the body of an HTTP response within a limit of bytes."""

import asyncio
import zlib
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Protocol, Self

from penstock.long_bodies.buffers import GrowingBuffer
from penstock.net.errors import MaybeSent, ResponseTooLarge

MAX_RESPONSE_BYTES = 64 * 2**20
DECOMPRESSED_BYTES = 64 * 2**10  # at most, in one step
_MAX_MEMBERS = 16
_STREAMED_BYTES = 16 * 2**10  # at most, in one piece of a stream
_UNPACKED_AT_ONCE = 2**18


class Headers(dict[str, str]):
    """The headers of a response, by lower-case name.

    Of a repeated header only the first value is kept. A value that is not text is left out.
    """

    def __repr__(self) -> str:
        return f"Headers({list(self)})"  # no values: they may be cookies or keys

    @property
    def encoding(self) -> str:
        """The content encoding in lower case; empty for an uncompressed body."""
        encoding = self.get("content-encoding", "").lower()
        return "" if encoding == "identity" else encoding


class ByteStream(Protocol):
    """A response body that arrives in chunks; closing it before its end closes the connection."""

    async def __anext__(self) -> bytes: ...

    def __aiter__(self) -> AsyncIterator[bytes]: ...

    async def aclose(self) -> None: ...


class Writer(Protocol):
    """Anything with a `write` method that takes bytes, such as an open file."""

    def write(self, data: bytes, /) -> object: ...


class OpenResponse(ABC):
    """A response whose body is read while it arrives.

    An async context manager, and an iterator over pieces of the body, between which other tasks run: a short piece may
    have thousands of events. Leaving the context before the end of the
    body closes the connection. Everything raises MaybeSent when the connection fails or the time is over.
    """

    def _begin(self, status: int, headers: Headers) -> None:
        self.status = status
        self.headers = headers
        self._rest = b""  # of what has arrived, and was not iterated over
        self._streamed_bytes = 0  # since other tasks could run
        self._is_compressed = "content-encoding" in headers and bool(headers.encoding)

    @abstractmethod
    async def __aenter__(self) -> Self:
        """Send the request, and wait until the status and the headers have arrived. Raises NotSent, too."""

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    @abstractmethod
    async def aclose(self) -> None:
        """Do what leaving the context does."""

    @abstractmethod
    def _read_chunk(self) -> Awaitable[bytes | None]:
        """Return the next bytes of the body as they were sent; None at its end."""

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        if self._is_compressed:
            raise MaybeSent("the stream is compressed, which was not asked for")
        if self._streamed_bytes >= _STREAMED_BYTES:
            self._streamed_bytes = 0
            await asyncio.sleep(0)
        chunk = self._rest or await self._read_chunk()
        if chunk is None:
            raise StopAsyncIteration
        self._rest = chunk[_STREAMED_BYTES:]
        piece = chunk[:_STREAMED_BYTES] if self._rest else chunk
        self._streamed_bytes += len(piece)
        return piece

    async def read(self, max_bytes: int = MAX_RESPONSE_BYTES) -> bytes | bytearray:
        """Read the whole body; raise ResponseTooLarge beyond `max_bytes`, whatever length the headers state."""
        decoder = self._decoder(max_bytes)
        chunk = await self._read_chunk()
        if chunk is not None and len(chunk) == decoder.stated_bytes:
            return chunk  # most bodies arrive as a whole
        body = GrowingBuffer(decoder.stated_bytes)
        await self._decode(chunk, decoder, body.write)
        return body.finish()

    async def write_to(self, writer: Writer, max_bytes: int) -> None:
        """Read the whole body into a writer, with the limit of `read`; the writer may get a part of a longer body."""
        decoder = self._decoder(max_bytes)
        await self._decode(await self._read_chunk(), decoder, writer.write)

    async def read_start(self, max_bytes: int) -> bytes:
        """Return the first bytes of the body as they were sent. If these are all, the connection is used again."""
        start = bytearray()
        while len(start) < max_bytes and (chunk := await self._read_chunk()) is not None:
            start += chunk
        return bytes(start[:max_bytes])

    def _decoder(self, max_bytes: int) -> "BodyDecoder":
        return BodyDecoder(self.headers.encoding, self.headers.get("content-length", ""), max_bytes)

    async def _decode(self, chunk: bytes | None, decoder: "BodyDecoder", write: Callable[[bytes], object]) -> None:
        """Write this chunk and all that follow it, decompressed."""
        while chunk is not None:
            for data in decoder.feed(chunk):
                write(data)
                await decoder.let_others_run(len(data))
            chunk = await self._read_chunk()
        decoder.finish()


class BodyDecoder:
    """Counts the bytes of a body, and decompresses gzip and deflate in small steps.

    Every request asks for an uncompressed body, but some servers compress all the same.
    """

    def __init__(self, encoding: str, content_length: str, max_bytes: int) -> None:
        self._bytes_left = max_bytes
        self._max_bytes = max_bytes
        if encoding not in ("", "gzip", "x-gzip", "deflate"):
            raise MaybeSent("the response is compressed in a way that was not asked for")
        self._decompressor = _new_decompressor() if encoding else None
        self._compressed_bytes_left = max_bytes + DECOMPRESSED_BYTES  # what cannot be compressed grows a little
        self._members = 1
        self._unpacked_bytes = 0  # since other tasks could run
        # How long the body will be, as far as the headers say.
        self.stated_bytes = int(content_length) if content_length.isdigit() and not encoding else 0
        if content_length.isdigit() and int(content_length) > max_bytes:
            raise ResponseTooLarge(max_bytes)

    def feed(self, piece: bytes) -> Iterator[bytes]:
        """Yield the decoded bytes of the next piece; raise ResponseTooLarge once they exceed the limit."""
        for data in self._decompress(piece) if self._decompressor else (piece,):
            self._bytes_left -= len(data)
            if self._bytes_left < 0:
                raise ResponseTooLarge(self._max_bytes)
            yield data

    async def let_others_run(self, size_bytes: int) -> None:
        """Let other tasks run again and again while bytes are decompressed: a small piece may become a large one."""
        if self._decompressor:
            self._unpacked_bytes += size_bytes
            if self._unpacked_bytes >= _UNPACKED_AT_ONCE:
                self._unpacked_bytes = 0
                await asyncio.sleep(0)

    def _decompress(self, piece: bytes) -> Iterator[bytes]:
        decompressor = self._decompressor or _new_decompressor()
        self._compressed_bytes_left -= len(piece)
        if self._compressed_bytes_left < 0:
            raise ResponseTooLarge(self._max_bytes)
        try:
            while piece:
                if decompressor.eof:  # a body may consist of several compressed members
                    self._members += 1
                    if self._members > _MAX_MEMBERS:  # empty ones would cost much time and count as no bytes
                        raise MaybeSent("the compressed response has too many members")
                    self._decompressor = decompressor = _new_decompressor()
                yield decompressor.decompress(piece, DECOMPRESSED_BYTES)
                piece = decompressor.unused_data if decompressor.eof else decompressor.unconsumed_tail
        except zlib.error:
            raise MaybeSent("the compressed response is damaged") from None

    def finish(self) -> None:
        """Raise MaybeSent when the compressed data is not complete."""
        if self._decompressor and not self._decompressor.eof:
            raise MaybeSent("the compressed response ends too early")


def _new_decompressor() -> "zlib._Decompress":
    return zlib.decompressobj(zlib.MAX_WBITS | 32)  # reads both gzip and deflate
