"""Take in headers and bodies from strangers: counted, timed and strictly read."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any

import msgspec

from penstock.api import multipart
from penstock.api.route import Takes
from penstock.errors import (
    AuthenticationFailed,
    HeadersTooLarge,
    InvalidRequest,
    PayloadTooLarge,
    RequestTimeout,
    UnsupportedMediaType,
)
from penstock.schema import UploadedFile
from penstock.settings import Settings

# Found in a scope whose body has arrived already: then nobody needs to watch how fast it comes.
WHOLE: dict[str, dict[object, object]] = {"penstock.whole": {}}

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]

HEADER_BYTES = 32 * 1024
HEADER_LINES = 100
_IDLE_BODY_BYTES = 64 * 1024  # what a call that takes no body may send all the same
_NOTE_BYTES = 1024 * 1024  # from somebody without a key
_DEEPEST = 64
# Brackets and commas: what decoding a body costs is counted in values, not bytes, and all callers share one loop.
_MOST_MARKS = 250_000
_LOWEST_WHOLE, _HIGHEST_WHOLE = -(2**63), 2**64 - 1


class Gone(Exception):
    """The caller hung up before its request was complete."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How much a caller may send, and how slowly."""

    json_bytes: int
    form_bytes: int
    seconds: float
    window_seconds: float = 10.0
    window_bytes: int = 10 * 1024

    @classmethod
    def of(cls, settings: Settings) -> "Limits":
        return cls(settings.json_bytes, settings.form_bytes, settings.body_seconds)


class Body(msgspec.Struct, frozen=True):
    """A body that has been read whole, and what it says."""

    raw: bytes = b""
    json: Any = None
    is_form: bool = False
    form: tuple[tuple[str, str | UploadedFile], ...] = ()
    size_bytes: int = 0


NO_BODY = Body()

# ------------------------------------------------------------------------------------------------------------- headers

_MULTIPLE = frozenset(("accept", "accept-encoding", "accept-language", "cache-control", "cookie", "forwarded", "via"))


def headers(raw: list[tuple[bytes, bytes]]) -> dict[str, str]:
    """Headers by lower-case name; of several with one name the last, until they have been checked."""
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in raw}


def check_headers(raw: list[tuple[bytes, bytes]], found: dict[str, str]) -> None:
    """Where a second header could be read in two ways, it is refused; where it could not, it is joined to the first."""
    if len(found) != len(raw):
        _join_repeated(raw, found)
    if "host" not in found:
        raise InvalidRequest("The Host header is missing.")
    size = sum(map(len, found)) + sum(map(len, found.values())) + 4 * len(raw)
    if len(raw) > HEADER_LINES or size > HEADER_BYTES:
        raise HeadersTooLarge(f"Headers may have {HEADER_LINES} lines and {HEADER_BYTES} bytes at most.")


def _join_repeated(raw: list[tuple[bytes, bytes]], found: dict[str, str]) -> None:
    values: dict[str, list[str]] = {}
    for line in raw:
        name, value = (part.decode("latin-1") for part in line)
        values.setdefault(name, []).append(value)
    for name, several in values.items():
        if len(several) == 1:
            continue
        if name == "authorization":
            raise AuthenticationFailed
        if name in _MULTIPLE or name.startswith("x-forwarded-"):
            found[name] = ", ".join(several)
        else:
            raise InvalidRequest(f"The header {name[:64]} was sent more than once.")


def has_body(headers: Mapping[str, str]) -> bool:
    """Whether a body is announced."""
    return headers.get("content-length", "0") != "0" or "transfer-encoding" in headers


# -------------------------------------------------------------------------------------------------------------- bodies


async def body(
    takes: Takes, headers: Mapping[str, str], receive: Receive, limits: Limits, *, is_here: bool = False
) -> Body:
    """Read and decode the body of a call that takes one in this form."""
    if "content-encoding" in headers and headers["content-encoding"].lower() != "identity":
        raise UnsupportedMediaType("Compressed bodies are not accepted; leave Content-Encoding away.")
    if takes == "nothing":
        if has_body(headers):
            await _whole(headers, receive, _IDLE_BODY_BYTES, limits)
        return NO_BODY
    if takes == "note":
        raw = await _whole(headers, receive, _NOTE_BYTES, limits)
        return Body(raw, size_bytes=len(raw))
    kind = headers.get("content-type", "application/json")
    name = kind.partition(";")[0].strip().lower()
    if name == "application/json" and "json" in takes:
        if name != kind:
            _check_charset(kind)
        if is_here:
            raw = _chunk(await receive(), 0, limits.json_bytes)
        else:
            raw = await _whole(headers, receive, limits.json_bytes, limits)
        return Body(raw, json_object(raw), size_bytes=len(raw))
    if name == "multipart/form-data" and "form" in takes:
        reader = multipart.Reader(kind)
        size = 0
        async for chunk in _chunks(headers, receive, limits.form_bytes, limits):
            size += len(chunk)
            reader.feed(chunk)
        return Body(is_form=True, form=reader.finish(), size_bytes=size)
    raise UnsupportedMediaType(f"Content-Type is {name[:80] or 'empty'} but must be {_ACCEPTED[takes]}.")


_ACCEPTED = {
    "json": "application/json",
    "form": "multipart/form-data",
    "json or form": "application/json or multipart/form-data",
}


def _check_charset(kind: str) -> None:
    for parameter in kind.lower().split(";")[1:]:
        name, _, value = parameter.strip().partition("=")
        if name == "charset" and value.strip('"') not in ("utf-8", "utf8", "us-ascii"):
            raise UnsupportedMediaType("JSON must be sent as UTF-8.")


async def _whole(headers: Mapping[str, str], receive: Receive, most_bytes: int, limits: Limits) -> bytes:
    parts = [chunk async for chunk in _chunks(headers, receive, most_bytes, limits)]
    return parts[0] if len(parts) == 1 else b"".join(parts)


async def _chunks(
    headers: Mapping[str, str], receive: Receive, most_bytes: int, limits: Limits
) -> AsyncIterator[bytes]:
    """The body as it comes: refused by its announced length before a byte is read, and by its real length after."""
    announced = headers.get("content-length", "0")
    if not (announced.isascii() and announced.isdigit()):
        raise InvalidRequest("Content-Length must be a number.")
    if len(announced) > 18 or int(announced) > most_bytes:
        raise _too_large(most_bytes)
    size = 0
    pace = _Pace(limits)
    more = True
    while more:
        message = await pace.wait(receive)
        chunk = _chunk(message, size, most_bytes)
        more = message.get("more_body", False)
        size += len(chunk)
        pace.count(len(chunk))
        if chunk:
            yield chunk


def _chunk(message: Mapping[str, Any], size: int, most_bytes: int) -> bytes:
    if message["type"] == "http.disconnect":
        raise Gone
    chunk: bytes = message.get("body", b"")
    if size + len(chunk) > most_bytes:
        raise _too_large(most_bytes)
    return chunk


def _too_large(most_bytes: int) -> PayloadTooLarge:
    return PayloadTooLarge(f"The body may have {most_bytes} bytes at most.")


class _Pace:
    """Ends a body that trickles: each window must bring its share, and the whole has one deadline."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._now = asyncio.get_running_loop().time
        self._deadline = self._now() + limits.seconds
        self._window_end = self._now() + limits.window_seconds
        self._bytes = 0

    def count(self, size: int) -> None:
        self._bytes += size

    async def wait(self, receive: Receive) -> MutableMapping[str, Any]:
        while True:
            if self._now() >= self._window_end:
                self._next_window()
            try:
                async with asyncio.timeout_at(min(self._window_end, self._deadline)):
                    return await receive()
            except TimeoutError:
                if self._now() >= self._deadline:
                    raise RequestTimeout(f"The body took longer than {self._limits.seconds:g} seconds.") from None

    def _next_window(self) -> None:
        if self._bytes < self._limits.window_bytes:
            raise RequestTimeout("The body came too slowly.")
        self._bytes = 0
        self._window_end = self._now() + self._limits.window_seconds


async def discard(receive: Receive, seconds: float, most_bytes: int) -> None:
    """Read on for a moment after a refusal.

    Closing a connection with unread bytes in it resets it, and the caller would lose the answer that says why.
    """
    try:
        async with asyncio.timeout(seconds):
            while most_bytes > 0:
                message = await receive()
                if message["type"] != "http.request" or not message.get("more_body", False):
                    return
                most_bytes -= len(message.get("body", b""))
    except TimeoutError:
        return


# ---------------------------------------------------------------------------------------------------------------- JSON

_decode = msgspec.json.Decoder().decode
_SMALL_BYTES = 64 * 1024
_NUMBERS_ALIKE = bytes.maketrans(b"0123456789E", b"0000000000e")
_LONG_NUMBER = b"0" * 19


def json_object(raw: bytes) -> dict[str, Any]:
    """A JSON object out of a stranger's bytes, or a sentence about what is wrong with them."""
    if len(raw) > _MOST_MARKS and raw.count(b",") + raw.count(b"[") + raw.count(b"{") > _MOST_MARKS:
        raise InvalidRequest(f"The body may hold {_MOST_MARKS} brackets and commas at most.")
    try:
        value = _decode(raw)
    except RecursionError:
        raise InvalidRequest(f"The body is nested more than {_DEEPEST} levels deep.") from None
    except UnicodeDecodeError:
        raise InvalidRequest("The body is not valid UTF-8.") from None
    except msgspec.ValidationError:
        raise InvalidRequest("The body holds a number that is out of range.") from None
    except msgspec.DecodeError as problem:
        raise InvalidRequest(_malformed(raw, str(problem))) from None
    if not isinstance(value, dict):
        raise InvalidRequest("The body must be a JSON object.")
    if _needs_a_look(raw):
        _check_values(value)
    return value


def _needs_a_look(raw: bytes) -> bool:
    """Whether the values could hold what the decoder lets through: a NUL is always escaped, deep nests have as many
    brackets, and a number that nobody can hold is a long one. In a large body, looking at the values is quicker.
    """
    if len(raw) > _SMALL_BYTES:
        return True
    if b"\\u0000" in raw or raw.count(b"{") + raw.count(b"[") > _DEEPEST:
        return True
    alike = raw.translate(_NUMBERS_ALIKE)  # several times as quick as a pattern
    return _LONG_NUMBER in alike or b"0e" in alike


def _malformed(raw: bytes, found: str) -> str:
    if not raw.strip():
        return "The body is empty but must be a JSON object."
    # The decoder reports an unpaired surrogate near the end as missing input.
    if "utf-16" in found or ("truncated" in found and b"\\ud" in raw.lower() and raw.rstrip().endswith(b"}")):
        return "The body holds half of a UTF-16 surrogate pair."
    return f"The body is not valid JSON: {found.removeprefix('JSON is malformed: ')}."


def _check_values(value: dict[str, Any]) -> None:
    """What the decoder lets through and nobody behind us can store or send on; level by level, so never too deep."""
    level: list[Any] = [value]
    depth = 0
    while level:
        depth += 1
        if depth > _DEEPEST:
            raise InvalidRequest(f"The body is nested more than {_DEEPEST} levels deep.")
        items: list[Any] = []
        for one in level:
            if type(one) is dict:
                items.extend(one)
                items.extend(one.values())
            else:
                items.extend(one)
        level = []
        for item in items:
            kind = type(item)
            if kind is str:
                if "\0" in item:
                    raise InvalidRequest("The body holds a NUL character.")
            elif kind is dict or kind is list:
                level.append(item)
            elif kind is int and not _LOWEST_WHOLE <= item <= _HIGHEST_WHOLE:
                raise InvalidRequest("The body holds a number that is out of range.")
