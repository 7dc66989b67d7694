"""Read the headers and the body of an HTTP response within a limit of bytes."""

import asyncio
import hashlib
import zlib
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol, Self

from pyreqwest.bytes import Bytes
from pyreqwest.exceptions import PyreqwestError
from pyreqwest.http import HeaderMap
from pyreqwest.request import StreamRequest
from pyreqwest.response import Response, ResponseBodyReader

from penstock.buffers import GrowingBuffer
from penstock.net.errors import MaybeSent, ResponseTooLarge, classify

MAX_RESPONSE_BYTES = 64 * 2**20
SMALL_READ_BYTES = 64 * 2**10
LARGE_READ_BYTES = 256 * 2**10
_MAX_MEMBERS = 16
_UNPACKED_AT_ONCE = 2**18


class Headers(Mapping[str, str]):
    """The headers of a response, by lower-case name.

    Of a repeated header only the first value is kept. A value that is not text is left out. The values are converted to
    Python strings at the first access, because the headers of most responses are never read.
    """

    __slots__ = ("_raw", "_values")

    def __init__(self, raw: HeaderMap | dict[str, str]) -> None:
        self._raw = raw
        self._values: dict[str, str] | None = raw if isinstance(raw, dict) else None

    def _read(self) -> dict[str, str]:
        if self._values is None:
            self._values = {}
            for name in self._raw:
                with suppress(ValueError):
                    self._values[name] = self._raw[name]
        return self._values

    def __getitem__(self, name: str) -> str:
        return self._read()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._read())

    def __len__(self) -> int:
        return len(self._read())

    def __repr__(self) -> str:
        return f"Headers({list(self)})"  # no values: they may be cookies or keys

    @property
    def encoding(self) -> str:
        """The content encoding in lower case; empty for an uncompressed body."""
        try:
            encoding = self._raw.get("content-encoding")
        except ValueError:
            return "unreadable"
        return "" if encoding is None or encoding.lower() == "identity" else encoding.lower()


class ByteStream(Protocol):
    """A response body that arrives in chunks; closing it before its end closes the connection."""

    async def __anext__(self) -> bytes: ...

    def __aiter__(self) -> AsyncIterator[bytes]: ...

    async def aclose(self) -> None: ...


class Writer(Protocol):
    """Anything with a `write` method that takes bytes, such as an open file."""

    def write(self, data: bytes, /) -> object: ...


@dataclass(frozen=True, slots=True)
class FetchedResponse:
    """A response to `fetch`; `body` is empty when the body went to a writer."""

    status: int
    headers: Mapping[str, str]
    size_bytes: int
    sha256: str
    body: bytes | bytearray = b""


async def read_body(reader: ResponseBodyReader, headers: Headers, max_bytes: int) -> bytes | bytearray:
    """Read the whole body; raise ResponseTooLarge beyond `max_bytes`, whatever length the headers state."""
    piece = await reader.read(SMALL_READ_BYTES)  # returns fewer bytes only at the end of the body
    if piece is None:
        return b""
    if len(piece) < SMALL_READ_BYTES and len(piece) <= max_bytes and not headers.encoding:
        return piece.to_bytes()
    decoder = BodyDecoder(headers.encoding, headers.get("content-length", ""), max_bytes)
    body = GrowingBuffer(decoder.stated_bytes)
    while piece is not None:
        for data in decoder.feed(piece):
            body.write(data)
            await decoder.let_others_run(len(data))
        piece = await reader.read(LARGE_READ_BYTES)
    decoder.finish()
    return body.finish()


async def read_fetched(response: Response, max_bytes: int, writer: Writer | None) -> FetchedResponse:
    """Read a response to `fetch`: a 2xx body into the writer if there is one, any other body into memory.

    Of a body that is not 2xx at most 64 KiB are read.
    """
    headers = Headers(response.headers)
    reader = response.body_reader
    if not 200 <= response.status < 300:
        error = await reader.read(SMALL_READ_BYTES)
        body = error.to_bytes() if error else b""
        return FetchedResponse(response.status, headers, len(body), hashlib.sha256(body).hexdigest(), body)
    decoder = BodyDecoder(headers.encoding, headers.get("content-length", ""), max_bytes)
    digest = hashlib.sha256()
    size_bytes = 0
    in_memory = GrowingBuffer(decoder.stated_bytes if writer is None else 0)
    while (piece := await reader.read(LARGE_READ_BYTES)) is not None:
        for data in decoder.feed(piece):
            size_bytes += len(data)
            digest.update(data)
            if writer is None:
                in_memory.write(data)
            else:
                writer.write(bytes(data))
            await decoder.let_others_run(len(data))
    decoder.finish()
    return FetchedResponse(response.status, headers, size_bytes, digest.hexdigest(), in_memory.finish())


class StreamingResponse:
    """A response whose body is read while it arrives.

    An async context manager, and an iterator over the chunks of the body. Leaving the context closes the connection,
    also before the end of the body.
    """

    status: int
    headers: Headers

    def __init__(self, request: StreamRequest) -> None:
        self._request = request

    async def __aenter__(self) -> Self:
        try:
            response = await self._request.__aenter__()
        except PyreqwestError as error:
            raise classify(error) from None
        if _is_cancelled():
            await self.aclose()
            raise asyncio.CancelledError
        self.status = response.status
        self.headers = Headers(response.headers)
        self._reader = response.body_reader
        self._compressed = bool(self.headers.encoding)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        await self._request.__aexit__(None, None, None)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        if self._compressed:
            raise MaybeSent("the stream is compressed, which was not asked for")
        try:
            chunk = await self._reader.read_chunk()
        except PyreqwestError as error:
            raise classify(error) from None
        if _is_cancelled():
            raise asyncio.CancelledError
        if chunk is None:
            raise StopAsyncIteration
        return chunk.to_bytes()

    async def read(self, max_bytes: int = MAX_RESPONSE_BYTES) -> bytes | bytearray:
        """Read the rest of the body at once, for example of an error response."""
        try:
            return await read_body(self._reader, self.headers, max_bytes)
        except PyreqwestError as error:
            raise classify(error) from None


def _is_cancelled() -> bool:
    """Whether this task was cancelled in the moment in which the library had a result, which it then returns."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


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
        self._compressed_bytes_left = max_bytes + SMALL_READ_BYTES  # what cannot be compressed grows a little
        self._members = 1
        self._unpacked_bytes = 0  # since other tasks could run
        # How long the body will be, as far as the headers say.
        self.stated_bytes = int(content_length) if content_length.isdigit() and not encoding else 0
        if content_length.isdigit() and int(content_length) > max_bytes:
            raise ResponseTooLarge(max_bytes)

    def feed(self, piece: Bytes | bytes) -> Iterator[memoryview | bytes]:
        """Yield the decoded bytes of the next piece; raise ResponseTooLarge once they exceed the limit."""
        for data in self._decompress(bytes(piece)) if self._decompressor else (memoryview(piece),):
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
                yield decompressor.decompress(piece, SMALL_READ_BYTES)
                piece = decompressor.unused_data if decompressor.eof else decompressor.unconsumed_tail
        except zlib.error:
            raise MaybeSent("the compressed response is damaged") from None

    def finish(self) -> None:
        """Raise MaybeSent when the compressed data is not complete."""
        if self._decompressor and not self._decompressor.eof:
            raise MaybeSent("the compressed response ends too early")


def _new_decompressor() -> "zlib._Decompress":
    return zlib.decompressobj(zlib.MAX_WBITS | 32)  # reads both gzip and deflate
