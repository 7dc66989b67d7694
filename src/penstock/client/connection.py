"""Send calls to a gateway with the standard library, and read its responses."""

import json
import ssl
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPException, HTTPResponse
from time import sleep
from typing import Any, cast
from urllib.error import HTTPError, URLError

from penstock import __version__
from penstock.client.calls import Call
from penstock.client.failures import CallFailed, NotConnected, refusal
from penstock.client.retries import retry_pause
from penstock.net.tls import tls_context

CHUNK_BYTES = 64 * 1024
LONGEST_CALL_SECONDS = 3600.0
_POLL_SECONDS = 1.0  # where the gateway does not say when to ask again


@dataclass(frozen=True, slots=True)
class Reply:
    """The JSON body of a successful response, and its headers."""

    body: Any
    headers: Mapping[str, str]

    @property
    def request_id(self) -> str:
        return self.headers.get("x-request-id", "")

    @property
    def poll_seconds(self) -> float:
        """How long to wait before an unfinished generation is asked for again."""
        milliseconds = self.headers.get("openai-poll-after-ms", "")
        return int(milliseconds) / 1000 if milliseconds.isdecimal() else _POLL_SECONDS


def check_url(url: str) -> str:
    """Return the URL of a gateway without a slash at its end. Raises ValueError unless it is one of HTTP."""
    if not url.startswith(("http://", "https://")):
        raise ValueError(f"the URL of the gateway must begin with http:// or https://: {url}")
    return url.rstrip("/")


def request_headers(call: Call, key: str, headers: Mapping[str, str]) -> dict[str, str]:
    """All headers of a call."""
    content = {} if call.body is None else {"Content-Type": "application/json"}
    ours = {"Authorization": f"Bearer {key}", "User-Agent": f"penstock-client/{__version__}"}
    return {**ours, **content, **headers, **call.headers}


def decoded(url: str, content: bytes | bytearray, headers: Mapping[str, str]) -> Reply:
    """The JSON of a response. Raises NotConnected if it has none."""
    try:
        return Reply(json.loads(content) if content else None, headers)
    except ValueError:
        raise NotConnected(f"what answers at {url} is not a Penstock gateway") from None


class Connection:
    """Sends the calls of one key to one gateway, each over a connection of its own."""

    def __init__(
        self, url: str, key: str, *, headers: Mapping[str, str] | None = None, timeout: float = LONGEST_CALL_SECONDS
    ) -> None:
        """`headers` go with every call; `timeout` is how many seconds may pass without a byte."""
        self.url = check_url(url)
        self._key = key
        self._headers = headers or {}
        self._timeout = timeout
        self._opener: urllib.request.OpenerDirector | None = None

    def send(self, call: Call, retries: int = 0) -> Reply:
        """Send a call, again if it may be repeated, and read the JSON of its response. Raises CallFailed."""
        tries = 0
        while True:
            try:
                return self._send_once(call)
            except CallFailed as failure:
                tries += 1
                pause = retry_pause(call, failure, tries, retries)
                if pause is None:
                    raise
            sleep(pause)

    def _send_once(self, call: Call) -> Reply:
        with self._open(self._request(call)) as response:
            content = b"".join(_chunks(response))
            return decoded(self.url, content, _headers(response))

    def stream(self, call: Call) -> Iterator[tuple[Mapping[str, str], bytes]]:
        """Send a call once, and yield its headers with the bytes of the body as they arrive. Raises CallFailed."""
        yield from self._stream(self._request(call))

    def stream_file(self, url: str) -> Iterator[tuple[Mapping[str, str], bytes]]:
        """The same for the file at a signed URL, which needs no key and gets none."""
        yield from self._stream(urllib.request.Request(check_url(url)))  # noqa: S310 - checked

    def _stream(self, request: urllib.request.Request) -> Iterator[tuple[Mapping[str, str], bytes]]:
        with self._open(request) as response:
            headers = _headers(response)
            for chunk in _chunks(response):
                yield headers, chunk

    def _request(self, call: Call) -> urllib.request.Request:
        data = call.form if call.body is None else json.dumps(call.body).encode()
        request = urllib.request.Request(self.url + call.path, data, method=call.method)  # noqa: S310 - it was checked
        for name, value in request_headers(call, self._key, self._headers).items():
            request.add_unredirected_header(name, value)
        return request

    @contextmanager
    def _open(self, request: urllib.request.Request) -> Iterator[HTTPResponse]:
        if self._opener is None:  # reading the certificates takes some milliseconds
            self._opener = urllib.request.build_opener(urllib.request.HTTPSHandler(context=tls_context()))
        try:
            with self._opener.open(request, timeout=self._timeout) as response:
                yield cast(HTTPResponse, response)
        except HTTPError as problem:
            raise refusal(problem.code, _error_body(problem), _headers(problem)) from None
        except URLError as problem:
            if not isinstance(problem.reason, OSError) or isinstance(problem.reason, ssl.SSLError):
                raise NotConnected(f"the call to {self.url} failed: {problem.reason}") from None
            raise NotConnected(
                f"no gateway answers at {self.url}: start one with `penstock serve`, or name another URL"
            ) from None
        except (OSError, HTTPException) as problem:
            raise NotConnected(f"the call to {self.url} failed: {problem}") from None


def _headers(response: HTTPResponse | HTTPError) -> dict[str, str]:
    return {name.lower(): value for name, value in response.headers.items()}


def _error_body(problem: HTTPError) -> bytes:
    try:
        with problem:
            return problem.read()
    except (OSError, HTTPException):
        return b""


def _chunks(response: HTTPResponse) -> Iterator[bytes]:
    """What has arrived, as it arrives. Raises NotConnected if the connection breaks before the end."""
    left = response.length  # None for a body in chunks, whose end http.client checks
    while chunk := response.read1(CHUNK_BYTES):
        yield chunk
        left = None if left is None else left - len(chunk)
    if left:
        raise NotConnected("the connection broke before the end of the response")
