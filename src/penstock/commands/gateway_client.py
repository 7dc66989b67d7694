"""Call a running gateway over HTTP, for the commands that any caller may use."""

import asyncio
import json
import ssl
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from typing import Annotated, Any, cast
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode

import typer

from penstock.commands.data_folder import URL_FILE, check_data
from penstock.commands.output import say
from penstock.commands.owner import as_owner
from penstock.environment import ENVIRONMENT
from penstock.net.event_stream import EventBuffer, data_of_events
from penstock.net.tls import tls_context
from penstock.settings import Settings
from penstock.settings_loading import load
from penstock.values import is_id

_URL_VARIABLE = "PENSTOCK_URL"
_KEY_VARIABLE = "PENSTOCK_KEY"
_POLL_SECONDS = 1.0  # where the gateway does not say when to ask again
_LONGEST_CALL_SECONDS = 3600.0
_CHUNK_BYTES = 64 * 1024

Url = Annotated[
    str | None, typer.Option("--url", help="URL of the gateway. Default: PENSTOCK_URL, else that of the data folder.")
]
Key = Annotated[
    str | None, typer.Option("--key", help="API key. Default: PENSTOCK_KEY, else a key made for the data folder.")
]


class CallFailed(RuntimeError):
    """The gateway refused a call, or there is no gateway; the message says why."""


@dataclass(frozen=True, slots=True)
class Reply:
    """The JSON body of a successful response, and its headers."""

    body: Any
    headers: dict[str, str]

    @property
    def request_id(self) -> str:
        return self.headers.get("x-request-id", "")


@dataclass(frozen=True, slots=True)
class JobState:
    """A video or a sound, and how long to wait before it is asked for again; None when it has ended."""

    job: dict[str, Any]
    pause_seconds: float | None


class GatewayClient:
    """One caller's calls to a gateway."""

    def __init__(self, url: str, key: str) -> None:
        self.url = url.rstrip("/")
        self._key = key
        self._opener: urllib.request.OpenerDirector | None = None

    def get(self, path: str, **query: Any) -> Reply:
        """Read a resource; a query parameter that is None is left out."""
        return self._send("GET", path, query)

    def post(self, path: str, body: dict[str, Any], **query: Any) -> Reply:
        """Send a JSON body."""
        return self._send("POST", path, query, body)

    def start(self, path: str, body: dict[str, Any]) -> Reply:
        """Send a JSON body to an endpoint that otherwise waits for its result, and do not wait."""
        return self._send("POST", path, {}, body, prefer="respond-async")

    def stream_bytes(self, path: str, body: dict[str, Any]) -> Iterator[tuple[str, bytes]]:
        """Send a JSON body and yield the bytes of the response when they arrive, with the id of the request."""
        with self._open(self._request("POST", self.url + path, body)) as response:
            request_id = _headers(response).get("x-request-id", "")
            for chunk in _chunks(response):
                yield request_id, chunk

    def get_request(self, request_id: str) -> Reply:
        """Read the record of a request. Anything but an id is refused: with dots and slashes it would be the path of
        something else, and the id may come from an agent.
        """
        if not is_id(request_id, "req"):
            raise CallFailed("the id of a request is needed, such as that in the response to a call")
        return self.get(f"/v1/requests/{request_id}")

    def get_video(self, video_id: str) -> JobState:
        """Read a video that may be unfinished; the gateway says when to ask again."""
        return self._get_job(f"/compat/v1/videos/{video_id}")

    def get_sound(self, sound_id: str) -> JobState:
        """Read a sound that may be unfinished; the gateway says when to ask again."""
        return self._get_job(f"/compat/v1/audio/generations/{sound_id}")

    def _get_job(self, path: str) -> JobState:
        reply = self.get(path)
        if reply.body["status"] in ("completed", "failed"):
            return JobState(reply.body, None)
        pause_ms = reply.headers.get("openai-poll-after-ms")
        return JobState(reply.body, int(pause_ms) / 1000 if pause_ms else _POLL_SECONDS)

    def delete(self, path: str) -> Reply:
        """Delete or cancel a resource."""
        return self._send("DELETE", path, {})

    def stream_events(self, path: str, body: dict[str, Any]) -> Iterator[Reply]:
        """Send a JSON body and yield each server-sent event when it arrives, until `[DONE]`."""
        with self._open(self._request("POST", self.url + path, body)) as response:
            headers = _headers(response)
            buffer = EventBuffer(sys.maxsize)  # the gateway is trusted
            for chunk in _chunks(response):
                for data in data_of_events(buffer.feed(chunk)):
                    if data == b"[DONE]":
                        return
                    event = json.loads(data)
                    if "error" in event:
                        raise CallFailed(event["error"]["message"])
                    yield Reply(event, headers)

    def download(self, path: str) -> Iterator[tuple[int | None, bytes]]:
        """Yield the parts of a file, each with the size of the whole file if the gateway says it.

        `path` is a path of the gateway or a signed URL. A signed URL needs no key and gets none.
        """
        is_signed = "://" in path
        request = urllib.request.Request(path) if is_signed else self._request("GET", self.url + path)  # noqa: S310
        with self._open(request) as response:
            length = response.headers.get("content-length")
            for chunk in _chunks(response):
                yield int(length) if length else None, chunk

    def _request(self, method: str, url: str, body: dict[str, Any] | None = None) -> urllib.request.Request:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(url, data, method=method)  # noqa: S310 - `find_gateway` checks the scheme
        if data is not None:
            request.add_header("content-type", "application/json")
        request.add_unredirected_header("authorization", f"Bearer {self._key}")
        return request

    def _send(
        self, method: str, path: str, query: dict[str, Any], body: dict[str, Any] | None = None, *, prefer: str = ""
    ) -> Reply:
        given = urlencode(_given(query))
        request = self._request(method, f"{self.url}{path}?{given}" if given else self.url + path, body)
        if prefer:
            request.add_header("prefer", prefer)
        with self._open(request) as response:
            content = b"".join(_chunks(response))
        try:
            return Reply(json.loads(content) if content else None, _headers(response))
        except ValueError:
            raise CallFailed(f"what answers at {self.url} is not a Penstock gateway") from None

    @contextmanager
    def _open(self, request: urllib.request.Request) -> Iterator[HTTPResponse]:
        """Send a request; raise CallFailed for an error of the gateway, or of the connection."""
        if self._opener is None:  # reading the certificates takes some milliseconds
            self._opener = urllib.request.build_opener(urllib.request.HTTPSHandler(context=tls_context()))
        try:
            with self._opener.open(request, timeout=_LONGEST_CALL_SECONDS) as response:
                yield cast(HTTPResponse, response)
        except HTTPError as problem:
            with problem:
                _check_status(problem.code, problem.read())
            raise CallFailed(f"the gateway answered with status {problem.code}") from None
        except URLError as problem:
            if not isinstance(problem.reason, OSError) or isinstance(problem.reason, ssl.SSLError):
                raise CallFailed(f"the call to {self.url} failed: {problem.reason}") from None
            raise CallFailed(
                f"no gateway answers at {self.url}: start one with `penstock serve`, or name another one with "
                f"--url or {_URL_VARIABLE}"
            ) from None
        except (OSError, HTTPException) as problem:
            raise CallFailed(f"the call to {self.url} failed: {problem}") from None


def _headers(response: HTTPResponse) -> dict[str, str]:
    return {name.lower(): value for name, value in response.headers.items()}


def _given(query: dict[str, Any]) -> dict[str, str]:
    return {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in query.items()
        if value is not None
    }


def _check_status(status: int, content: bytes) -> None:
    """Raise CallFailed with the message of the error envelope."""
    if status < 400:
        return
    try:
        error = json.loads(content)["error"]
        raise CallFailed(f"{error['message']} ({error['code']})")
    except (ValueError, KeyError, TypeError):
        raise CallFailed(f"the gateway answered with status {status}, and not as a Penstock gateway does") from None


def _chunks(response: HTTPResponse) -> Iterator[bytes]:
    """What has arrived, as it arrives."""
    while chunk := response.read1(_CHUNK_BYTES):
        yield chunk


# ------------------------------------------------------------------------------------------------- which gateway to use


def find_gateway(
    url: str | None = None,
    key: str | None = None,
    data: Path | None = None,
    config: Path | None = None,
    *,
    is_operator: bool = False,
) -> GatewayClient:
    """Return the gateway that the options, the environment or the data folder name, in this order."""
    url = url or ENVIRONMENT.get(_URL_VARIABLE)
    key = key or ENVIRONMENT.get(_KEY_VARIABLE)
    if url and not key:
        raise CallFailed(f"a key is needed for {url}: give --key, or set {_KEY_VARIABLE}")
    if url and key:
        if not url.startswith(("http://", "https://")):
            raise CallFailed(f"the URL of the gateway must begin with http:// or https://: {url}")
        return GatewayClient(url, key)
    settings = load({"data": data, "config": config})
    return GatewayClient(_url_of(settings), key or _key_of(settings, is_operator))


def running_gateway(
    url: str | None = None,
    key: str | None = None,
    data: Path | None = None,
    config: Path | None = None,
    *,
    is_operator: bool = False,
) -> GatewayClient | None:
    """Return the gateway that the options or the environment name, else the one that runs on the data folder."""
    if url or ENVIRONMENT.get(_URL_VARIABLE):
        return find_gateway(url, key, data, config)
    settings = load({"data": data, "config": config})
    if not (settings.data / URL_FILE).is_file():
        return None
    try:
        GatewayClient(_url_of(settings), "none").get("/readyz")
    except CallFailed:
        return None
    return find_gateway(None, key, data, config, is_operator=is_operator)


def say_that_none_runs() -> None:
    """What is listed without a gateway says nothing about one that was started in another environment."""
    say("No gateway is running on this data folder. This is what one started from this shell would have.")


def _url_of(settings: Settings) -> str:
    """Return where the gateway of a data folder listens: it wrote that down when it started."""
    file = settings.data / URL_FILE
    return file.read_text(encoding="utf-8").strip() if file.is_file() else settings.base_url


def _key_of(settings: Settings, is_operator: bool) -> str:
    """Return the key that the data folder's owner uses on the command line."""
    try:
        check_data(settings)
    except RuntimeError as problem:
        raise CallFailed(f"{problem}, or a running gateway with --url and --key") from None
    from penstock.app import ensure_terminal_key  # imported here because it is slow, and a given key needs none of it

    with as_owner(settings.data):
        return asyncio.run(ensure_terminal_key(settings, is_operator=is_operator))
