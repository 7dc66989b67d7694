"""Read headers and bodies of requests, within limits of size, time and form."""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, MutableMapping
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from penstock.api import multipart
from penstock.api.route import Route, Takes
from penstock.errors import (
    AuthenticationFailed,
    HeadersTooLarge,
    InvalidRequest,
    PayloadTooLarge,
    RequestTimeout,
    UnsupportedMediaType,
)
from penstock.event_loop import LONG_BYTES, run_aside
from penstock.fields import UploadedFile
from penstock.http_server.request_head import HEADER_BYTES, HEADER_LINES
from penstock.long_bodies import json_decoding
from penstock.long_bodies.buffers import GrowingBuffer
from penstock.long_bodies.long_texts import TooComplex
from penstock.settings import Settings

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
RawHeaders = list[tuple[bytes, bytes]]
TakeBody = Callable[[], bytes | None]

_VOTE_BYTES = 4096
_RAW_BYTES = 1024 * 1024  # sent without a key, and therefore
_RAW_SECONDS = 10.0
_MAX_DEPTH = 64
_MIN_INTEGER = -(2**63)
_MAX_INTEGER = 2**64 - 1


class Disconnected(Exception):
    """The caller closed the connection before its request was complete."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How much a caller may send, and how slowly: each window of time must bring `window_bytes`."""

    json_bytes: int
    form_bytes: int
    file_bytes: int  # of one file in a form
    seconds: float
    window_seconds: float = 10.0
    window_bytes: int = 10 * 1024

    @classmethod
    def of(cls, settings: Settings) -> "Limits":
        return cls(settings.json_bytes, settings.form_bytes, settings.image_bytes, settings.body_seconds)

    def for_route(self, route: Route, settings: Settings) -> "Limits":
        """The limits of a route: that of files with rows or sounds is larger, and that of votes is small."""
        limits = replace(self, json_bytes=_VOTE_BYTES) if route.is_vote else self
        kind = route.larger_files
        return replace(limits, file_bytes=int(getattr(settings, f"{kind}_bytes"))) if kind else limits


class Body(msgspec.Struct, frozen=True):
    """A complete body: its bytes, and its JSON value or the fields of its form."""

    raw: bytes | bytearray = b""
    json: Any = None
    is_form: bool = False
    form: tuple[tuple[str, str | UploadedFile], ...] = ()
    size_bytes: int = 0


NO_BODY = Body()

# ------------------------------------------------------------------------------------------------------------- headers

_MULTIPLE = frozenset(("accept", "accept-encoding", "accept-language", "cache-control", "cookie", "forwarded", "via"))


def decode_headers(raw: RawHeaders) -> dict[str, str]:
    """Return headers by lower-case name; of repeated ones only the last, until `check_headers` was called."""
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in raw}


def check_headers(raw: RawHeaders, found: dict[str, str], version: str, single: Collection[str] = ()) -> None:
    """Check number, size and repetition of headers, and that there is a Host, which is empty if HTTP/1.0 has none.

    Repeated headers are joined in `found` where HTTP allows it. They are refused where two servers could read them
    differently, and if they are `single`.
    """
    if len(found) != len(raw):
        _join_repeated(raw, found, single)
    if version == "1.0":
        found.setdefault("host", "")
    if "host" not in found:
        raise InvalidRequest("The Host header is missing.")
    size = sum(map(len, found)) + sum(map(len, found.values())) + 4 * len(raw)
    if len(raw) > HEADER_LINES or size > HEADER_BYTES:
        raise HeadersTooLarge(f"The headers may have {HEADER_LINES} lines and {HEADER_BYTES} bytes at most.")


def _join_repeated(raw: RawHeaders, found: dict[str, str], single: Collection[str]) -> None:
    values: dict[str, list[str]] = {}
    for each, value in raw:
        values.setdefault(each.decode("latin-1"), []).append(value.decode("latin-1"))
    for name, several in values.items():
        if len(several) == 1:
            continue
        if name == "authorization":
            raise AuthenticationFailed
        if name not in single and (name in _MULTIPLE or name.startswith("x-forwarded-")):
            found[name] = ", ".join(several)
        else:
            raise InvalidRequest(f"The header {name[:64]} was sent more than once.")


def has_body(headers: Mapping[str, str]) -> bool:
    """Return whether the headers announce a body."""
    return headers.get("content-length", "0") != "0" or "transfer-encoding" in headers


# -------------------------------------------------------------------------------------------------------------- bodies


async def read_body(
    takes: Takes,
    headers: Mapping[str, str],
    receive: Receive,
    limits: Limits,
    *,
    arrived: TakeBody | None = None,
    leaves_files: bool = False,
) -> Body:
    """Read and decode a body; `takes` says which types the endpoint accepts, `leaves_files` is that of `json_decoding`.

    JSON is taken from `arrived`, if that is given, instead of received.

    Raises a Problem for a body that is too large, too slow, of another type or malformed, and Disconnected when the
    caller closes the connection.
    """
    if "content-encoding" in headers and headers["content-encoding"].lower() != "identity":
        raise UnsupportedMediaType("Compressed bodies are not accepted; send none or `identity` as Content-Encoding.")
    if takes in ("nothing", "unread"):
        if takes == "nothing" and has_body(headers):
            await _check_empty(headers, receive, limits)
        return NO_BODY
    if takes == "raw":
        raw = await _read_all(headers, receive, _RAW_BYTES, replace(limits, seconds=min(limits.seconds, _RAW_SECONDS)))
        return Body(raw, size_bytes=len(raw))
    kind = headers.get("content-type", "application/json")
    name = kind.partition(";")[0].strip().lower()
    if name == "application/json" and "json" in takes:
        if name != kind:
            _check_charset(kind)
        raw = _taken(arrived, limits) if arrived else await _read_all(headers, receive, limits.json_bytes, limits)
        if len(raw) <= LONG_BYTES:
            value = decode_json_object(raw)
        else:
            value = await run_aside(len(raw), decode_json_object, raw, leaves_files=leaves_files)
        return Body(raw, value, size_bytes=len(raw))
    if name == "multipart/form-data" and "form" in takes:
        reader = multipart.FormReader(kind, limits.file_bytes)
        size = 0
        async for chunk in _chunks(headers, receive, limits.form_bytes, limits):
            size += len(chunk)
            reader.feed(chunk)
        return Body(is_form=True, form=reader.finish(), size_bytes=size)
    raise UnsupportedMediaType(f"Content-Type is {name[:80] or 'empty'} but must be {_ACCEPTED[takes]}.")


async def _check_empty(headers: Mapping[str, str], receive: Receive, limits: Limits) -> None:
    """Raise InvalidRequest unless the body is an empty object, which some clients send with every call."""
    is_short = headers.get("content-length") in _EMPTY_LENGTHS and "transfer-encoding" not in headers
    if is_short and (await _read_all(headers, receive, _EMPTY_BYTES, limits)).strip() in (b"", b"{}"):
        return
    raise InvalidRequest("This call takes no body.")


_EMPTY_LENGTHS = ("2", "3", "4")  # `{}`, and a line break
_EMPTY_BYTES = 4
_ACCEPTED = {
    "json": "application/json",
    "form": "multipart/form-data",
    "json or form": "application/json or multipart/form-data",
}


def _check_charset(kind: str) -> None:
    for parameter in kind.lower().split(";")[1:]:
        name, _, value = parameter.strip().partition("=")
        if name == "charset" and value.strip('"') not in ("utf-8", "utf8", "us-ascii"):
            raise UnsupportedMediaType(f"The charset of JSON must be utf-8, not {value[:40]}.")


async def _read_all(headers: Mapping[str, str], receive: Receive, max_bytes: int, limits: Limits) -> bytes | bytearray:
    whole = GrowingBuffer()
    async for chunk in _chunks(headers, receive, max_bytes, limits):
        whole.write(chunk)
    return whole.finish()


async def _chunks(headers: Mapping[str, str], receive: Receive, max_bytes: int, limits: Limits) -> AsyncIterator[bytes]:
    """Yield the body as it arrives.

    A body that announces more than `max_bytes` is refused before a byte is read, any other as soon as it has more.
    """
    announced = headers.get("content-length", "0")
    if not (announced.isascii() and announced.isdigit()):
        raise InvalidRequest("Content-Length must be a whole number.")
    if len(announced) > 18 or int(announced) > max_bytes:
        raise _too_large(max_bytes)
    size = 0
    speed = _SpeedCheck(limits)
    more = True
    while more:
        message = await speed.next_message(receive)
        chunk = _chunk(message, size, max_bytes)
        more = message.get("more_body", False)
        size += len(chunk)
        speed.count(len(chunk))
        if chunk:
            yield chunk


def _chunk(message: Mapping[str, Any], size: int, max_bytes: int) -> bytes:
    if message["type"] == "http.disconnect":
        raise Disconnected
    chunk: bytes = message.get("body", b"")
    if size + len(chunk) > max_bytes:
        raise _too_large(max_bytes)
    return chunk


def _taken(arrived: TakeBody, limits: Limits) -> bytes:
    body = arrived()
    if body is None:
        raise Disconnected
    if len(body) > limits.json_bytes:
        raise _too_large(limits.json_bytes)
    return body


def _too_large(max_bytes: int) -> PayloadTooLarge:
    return PayloadTooLarge(f"The body may have {max_bytes} bytes at most.")


class _SpeedCheck:
    """Ends a slow body: each window of time must bring enough bytes, and the whole body has a deadline."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._now = asyncio.get_running_loop().time
        self._deadline = self._now() + limits.seconds
        self._window_end = self._now() + limits.window_seconds
        self._bytes = 0

    def count(self, size: int) -> None:
        self._bytes += size

    async def next_message(self, receive: Receive) -> MutableMapping[str, Any]:
        """Return the next ASGI message; raise RequestTimeout when it comes too late."""
        while True:
            if self._now() >= self._window_end:
                self._start_window()
            try:
                async with asyncio.timeout_at(min(self._window_end, self._deadline)):
                    return await receive()
            except TimeoutError:
                if self._now() >= self._deadline:
                    message = f"The body took longer than {self._limits.seconds:g} seconds to arrive."
                    raise RequestTimeout(message) from None

    def _start_window(self) -> None:
        if self._bytes < self._limits.window_bytes:
            speed = f"{self._limits.window_bytes} bytes in {self._limits.window_seconds:g} seconds"
            raise RequestTimeout(f"The body arrived too slowly: less than {speed}.")
        self._bytes = 0
        self._window_end = self._now() + self._limits.window_seconds


async def discard(receive: Receive, seconds: float, max_bytes: int) -> None:
    """Read and drop what the caller still sends after a refusal, up to these limits.

    Closing a connection with unread bytes in it resets it, and the caller could lose the response.
    """
    try:
        async with asyncio.timeout(seconds):
            while max_bytes > 0:
                message = await receive()
                if message["type"] != "http.request" or not message.get("more_body", False):
                    return
                max_bytes -= len(message.get("body", b""))
    except TimeoutError:
        return


# ---------------------------------------------------------------------------------------------------------------- JSON

_decode = msgspec.json.Decoder().decode
_SMALL_BYTES = 64 * 1024
_AT_ONCE_BYTES = 256 * 1024  # a larger body is decoded in steps
_DIGITS_AS_ZEROS = bytes.maketrans(b"0123456789E", b"0000000000e")
_LONG_NUMBER = b"0" * 19
_POSITION = re.compile(r" \(byte \d+\)")


def decode_json_object(raw: bytes | bytearray, *, leaves_files: bool = False) -> dict[str, Any]:
    """Decode a JSON object; raise InvalidRequest that says what is wrong with it."""
    try:
        value = _decode_value(raw, leaves_files)
    except TooComplex as problem:
        raise InvalidRequest(f"The body {problem}.") from None
    except RecursionError:
        raise InvalidRequest(f"The body is nested more than {_MAX_DEPTH} levels deep.") from None
    except UnicodeDecodeError:
        raise InvalidRequest("The body is not valid UTF-8.") from None
    except msgspec.ValidationError:
        raise InvalidRequest("The body contains a number that is out of range.") from None
    except msgspec.DecodeError as problem:
        raise InvalidRequest(_malformed_message(raw, str(problem))) from None
    if not isinstance(value, dict):
        raise InvalidRequest("The body must be a JSON object.")
    if _may_hide_bad_values(raw):
        _check_values(value)
    return value


def _decode_value(raw: bytes | bytearray, leaves_files: bool) -> Any:
    if len(raw) > _AT_ONCE_BYTES:
        return json_decoding.decode(raw, leaves_files=leaves_files)
    return _decode(raw)


def _may_hide_bad_values(raw: bytes | bytearray) -> bool:
    """Return False when these bytes cannot contain a value that `_check_values` refuses.

    A NUL is always escaped, a deep value has as many brackets, and a number that is out of range is long. This search
    is quicker than `_check_values` for a small body only, so for a large one the result is True.
    """
    if len(raw) > _SMALL_BYTES:
        return True
    if b"\\u0000" in raw or raw.count(b"{") + raw.count(b"[") > _MAX_DEPTH:
        return True
    zeros = raw.translate(_DIGITS_AS_ZEROS)  # several times as fast as a regular expression
    return _LONG_NUMBER in zeros or b"0e" in zeros


def _malformed_message(raw: bytes | bytearray, found: str) -> str:
    """Return the message for bytes that the decoder refused with the message `found`."""
    if not raw.strip():
        return "The body is empty but must be a JSON object."
    # The decoder reports an unpaired surrogate near the end as missing input.
    if "utf-16" in found or ("truncated" in found and b"\\ud" in raw.lower() and raw.rstrip().endswith(b"}")):
        return "The body contains half of a UTF-16 surrogate pair."
    if len(raw) > _AT_ONCE_BYTES:
        found = _POSITION.sub("", found)  # it is that in a part of the body
    return f"The body is not valid JSON: {found.removeprefix('JSON is malformed: ')}."


def _check_values(value: dict[str, Any]) -> None:
    """Refuse values that the decoder accepts but that databases or providers do not: NUL, depth, large integers.

    It goes level by level instead of recursively, so that a deep value cannot exhaust the stack. Fields of the body
    itself are named.
    """
    for name, item in value.items():
        if fault := _fault(item):
            raise InvalidRequest(f"`{name}` contains {fault}.", param=name)
    level: list[Any] = [value]
    depth = 0
    while level:
        depth += 1
        if depth > _MAX_DEPTH:
            raise InvalidRequest(f"The body is nested more than {_MAX_DEPTH} levels deep.")
        items: list[Any] = []
        for container in level:
            items.extend(container)
            if type(container) is dict:
                items.extend(container.values())
        level = []
        for item in items:
            kind = type(item)
            if kind is dict or kind is list:
                level.append(item)
            elif fault := _fault(item):
                raise InvalidRequest(f"The body contains {fault}.")


def _fault(item: Any) -> str | None:
    """Return what databases or providers do not accept in a text or a number."""
    kind = type(item)
    if kind is str and "\0" in item:
        return "a NUL character"
    if kind is int and not _MIN_INTEGER <= item <= _MAX_INTEGER:
        return "a number that is out of range"
    return None
