"""What became of a request, and its reply's body read within limits."""

import errno
import hashlib
import inspect
import zlib
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

from pyreqwest.bytes import Bytes
from pyreqwest.exceptions import BuilderError, DetailedPyreqwestError, PoolTimeoutError, PyreqwestError
from pyreqwest.http import HeaderMap
from pyreqwest.response import Response, ResponseBodyReader

from penstock.net.guard import UNREACHABLE

STEP_BYTES = 64 * 2**10
LONG_STEP_BYTES = 256 * 2**10

# ------------------------------------------------------------------------------------------------------------ outcomes


class NotSent(Exception):
    """Proof that the other side received nothing, so that asking again, or elsewhere, cannot buy a thing twice."""

    def __init__(self, reason: str, *, local: bool = False) -> None:
        super().__init__(reason)
        self.local = local  # this machine ran out of something; says nothing about the other side


class Refused(NotSent):
    """The address is one that we do not reach for strangers."""

    def __init__(self) -> None:
        super().__init__(UNREACHABLE)


class Unknown(Exception):
    """Something may have been sent and acted upon, and no whole reply came back."""

    def __init__(self, reason: str, *, timeout: bool = False) -> None:
        super().__init__(reason)
        self.timeout = timeout


class TooLarge(Unknown):
    """The reply is longer than we are willing to read."""

    def __init__(self, most_bytes: int) -> None:
        super().__init__(f"the reply has more than {most_bytes} bytes")


def outcome(problem: PyreqwestError) -> NotSent | Unknown:
    """The client library's classes do not tell: it calls a read timeout a ConnectTimeoutError and a reset after sending
    a ConnectError. Only the text of a cause does, and only this one proves that no connection came about.
    """
    details = problem.details if isinstance(problem, DetailedPyreqwestError) else None
    causes = [cause["message"] for cause in (details and details["causes"]) or ()]
    # The first cause quotes the address, and with it credentials that some providers want in the query.
    reason = causes[-1] if len(causes) > 1 else type(problem).__name__
    if "client error (Connect)" in causes or isinstance(problem, PoolTimeoutError | BuilderError):
        return NotSent(reason, local=reason.endswith((f"(os error {errno.EMFILE})", f"(os error {errno.ENFILE})")))
    return Unknown(reason, timeout="timed out" in reason)


# --------------------------------------------------------------------------------------------------------------- reply


class Headers(Mapping[str, str]):
    """A reply's headers under lower-case names; of a repeated one the first, and none that is no text.

    They become Python text when somebody asks, because most replies are never asked for theirs.
    """

    __slots__ = ("_found", "_text")

    def __init__(self, found: HeaderMap) -> None:
        self._found = found
        self._text: dict[str, str] | None = None

    def _read(self) -> dict[str, str]:
        if self._text is None:
            self._text = {}
            for name in self._found:
                with suppress(ValueError):
                    self._text[name] = self._found[name]
        return self._text

    def __getitem__(self, name: str) -> str:
        return self._read()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._read())

    def __len__(self) -> int:
        return len(self._read())

    def __repr__(self) -> str:
        return f"Headers({list(self)})"  # values may be cookies or keys

    @property
    def encoding(self) -> str:
        """How the body is compressed, or nothing."""
        try:
            encoding = self._found.get("content-encoding")
        except ValueError:
            return "unreadable"
        return "" if encoding is None or encoding.lower() == "identity" else encoding.lower()


async def read(reader: ResponseBodyReader, headers: Headers, most_bytes: int) -> bytes:
    """The whole body, never more than `most_bytes` of it, whatever length was announced."""
    piece = await reader.read(STEP_BYTES)  # less than was asked for only at the end
    if piece is None:
        return b""
    if len(piece) < STEP_BYTES and len(piece) <= most_bytes and not headers.encoding:
        return piece.to_bytes()
    intake, whole = Intake(headers.encoding, headers.get("content-length", ""), most_bytes), list[Bytes | bytes]()
    while piece is not None:
        whole.extend(intake.take(piece))
        piece = await reader.read(LONG_STEP_BYTES)
    intake.finish()
    return b"".join(whole)


@dataclass(frozen=True, slots=True)
class Fetched:
    """What an address gave; `body` is empty where a sink took it."""

    status: int
    headers: Mapping[str, str]
    size_bytes: int
    sha256: str
    body: bytes = b""


class Chunks(Protocol):
    """A reply bit by bit; whoever closes it early hangs up on the provider."""

    async def __anext__(self) -> bytes: ...

    def __aiter__(self) -> AsyncIterator[bytes]: ...

    async def aclose(self) -> None: ...


class Sink(Protocol):
    """Where a long body goes: an open file, or anything whose `write` may be awaited."""

    def write(self, data: bytes, /) -> object: ...


async def keep(response: Response, most_bytes: int, sink: Sink | None) -> Fetched:
    """The body in the sink, if one is given and the reply is a success; otherwise in memory."""
    status, headers, reader = response.status, Headers(response.headers), response.body_reader
    if not 200 <= status < 300:
        excuse = await reader.read(STEP_BYTES)
        body = excuse.to_bytes() if excuse else b""
        return Fetched(status, headers, len(body), hashlib.sha256(body).hexdigest(), body)
    intake = Intake(headers.encoding, headers.get("content-length", ""), most_bytes)
    digest, size_bytes, whole = hashlib.sha256(), 0, list[Bytes | bytes]()
    while (piece := await reader.read(LONG_STEP_BYTES)) is not None:
        for data in intake.take(piece):
            size_bytes += len(data)
            digest.update(data)
            if sink is None:
                whole.append(data)
            elif inspect.isawaitable(written := sink.write(bytes(data))):
                await written
    intake.finish()
    return Fetched(status, headers, size_bytes, digest.hexdigest(), b"".join(whole))


class Intake:
    """Counts a body, and inflates one in small steps when a server compressed it although asked not to."""

    def __init__(self, encoding: str, announced: str, most_bytes: int) -> None:
        self._left = self._most_bytes = most_bytes
        if encoding not in ("", "gzip", "x-gzip", "deflate"):
            raise Unknown("the reply is compressed in a way that was not asked for")
        self._inflate = _decompressor() if encoding else None
        if announced.isdigit() and int(announced) > most_bytes:
            raise TooLarge(most_bytes)

    def take(self, piece: Bytes | bytes) -> Iterator[Bytes | bytes]:
        for data in self._inflated(bytes(piece)) if self._inflate else (piece,):
            self._left -= len(data)
            if self._left < 0:
                raise TooLarge(self._most_bytes)
            yield data

    def _inflated(self, piece: bytes) -> Iterator[bytes]:
        inflate = self._inflate or _decompressor()
        try:
            while piece:
                if inflate.eof:  # a body may consist of several compressed members
                    self._inflate = inflate = _decompressor()
                yield inflate.decompress(piece, STEP_BYTES)
                piece = inflate.unused_data if inflate.eof else inflate.unconsumed_tail
        except zlib.error:
            raise Unknown("the compressed reply is damaged") from None

    def finish(self) -> None:
        if self._inflate and not self._inflate.eof:
            raise Unknown("the compressed reply ends too early")


def _decompressor() -> "zlib._Decompress":
    return zlib.decompressobj(zlib.MAX_WBITS | 32)  # reads both gzip and deflate
