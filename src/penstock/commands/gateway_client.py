"""Call a running gateway over HTTP, for the commands that any caller may use."""

import asyncio
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any

import typer
from pyreqwest.client import SyncClient, SyncClientBuilder
from pyreqwest.exceptions import ConnectError, JSONDecodeError, PyreqwestError
from pyreqwest.request import SyncRequestBuilder
from pyreqwest.response import SyncResponse

from penstock.commands.data_folder import URL_FILE, check_data
from penstock.commands.owner import as_owner
from penstock.environment import ENVIRONMENT
from penstock.net.event_stream import EventBuffer, data_of_events
from penstock.settings import Settings
from penstock.settings_loading import load
from penstock.values import is_id

_URL_VARIABLE = "PENSTOCK_URL"
_KEY_VARIABLE = "PENSTOCK_KEY"
_POLL_SECONDS = 1.0  # where the gateway does not say when to ask again
_LONGEST_CALL = timedelta(hours=1)

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
class VideoState:
    """A video, and how long to wait before it is asked for again; None when it has ended."""

    video: dict[str, Any]
    pause_seconds: float | None


class GatewayClient:
    """One caller's calls to a gateway."""

    def __init__(self, url: str, key: str) -> None:
        self.url = url.rstrip("/")
        self._key = key
        self._client: SyncClient = SyncClientBuilder().timeout(_LONGEST_CALL).build()

    def get(self, path: str, **query: Any) -> Reply:
        """Read a resource; a query parameter that is None is left out."""
        return self._send(self._client.get(self.url + path).query(_given(query)))

    def post(self, path: str, body: dict[str, Any], **query: Any) -> Reply:
        """Send a JSON body."""
        return self._send(self._client.post(self.url + path).query(_given(query)).body_json(body))

    def get_request(self, request_id: str) -> Reply:
        """Read the record of a request. Anything but an id is refused: with dots and slashes it would be the path of
        something else, and the id may come from an agent.
        """
        if not is_id(request_id, "req"):
            raise CallFailed("the id of a request is needed, such as that in the response to a call")
        return self.get(f"/v1/requests/{request_id}")

    def get_video(self, video_id: str) -> VideoState:
        """Read a video that may be unfinished; the gateway says when to ask again."""
        reply = self.get(f"/compat/v1/videos/{video_id}")
        if reply.body["status"] in ("completed", "failed"):
            return VideoState(reply.body, None)
        pause_ms = reply.headers.get("openai-poll-after-ms")
        return VideoState(reply.body, int(pause_ms) / 1000 if pause_ms else _POLL_SECONDS)

    def delete(self, path: str) -> Reply:
        """Delete or cancel a resource."""
        return self._send(self._client.delete(self.url + path))

    def stream_events(self, path: str, body: dict[str, Any]) -> Iterator[Reply]:
        """Send a JSON body and yield each server-sent event when it arrives, until `[DONE]`."""
        with self._open(self._client.post(self.url + path).body_json(body).bearer_auth(self._key)) as response:
            headers = dict(response.headers)
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
        request = self._client.get(path if is_signed else self.url + path)
        with self._open(request if is_signed else request.bearer_auth(self._key)) as response:
            length = response.get_header("content-length")
            for chunk in _chunks(response):
                yield int(length) if length else None, chunk

    def _send(self, request: SyncRequestBuilder) -> Reply:
        with self._explain_errors():
            response = request.bearer_auth(self._key).build().send()
            content = bytes(response.bytes())
        _check_status(response.status, content)
        try:
            return Reply(json.loads(content) if content else None, dict(response.headers))
        except ValueError:
            raise CallFailed(f"what answers at {self.url} is not a Penstock gateway") from None

    @contextmanager
    def _open(self, request: SyncRequestBuilder) -> Iterator[SyncResponse]:
        with self._explain_errors(), request.build_streamed() as response:
            if response.status >= 400:
                _check_status(response.status, bytes(response.bytes()))
            yield response

    @contextmanager
    def _explain_errors(self) -> Iterator[None]:
        """Turn errors of the connection into CallFailed."""
        try:
            yield
        except ConnectError:
            raise CallFailed(
                f"no gateway answers at {self.url}: start one with `penstock serve`, or name another one with "
                f"--url or {_URL_VARIABLE}"
            ) from None
        except (PyreqwestError, JSONDecodeError) as problem:
            raise CallFailed(f"the call to {self.url} failed: {problem}") from None


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


def _chunks(response: SyncResponse) -> Iterator[bytes]:
    while (chunk := response.body_reader.read_chunk()) is not None:
        yield bytes(chunk)


# ------------------------------------------------------------------------------------------------- which gateway to use


def find_gateway(
    url: str | None = None, key: str | None = None, data: Path | None = None, config: Path | None = None
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
    return GatewayClient(_url_of(settings), key or _key_of(settings))


def _url_of(settings: Settings) -> str:
    """Return where the gateway of a data folder listens: it wrote that down when it started."""
    file = settings.data / URL_FILE
    return file.read_text(encoding="utf-8").strip() if file.is_file() else settings.base_url


def _key_of(settings: Settings) -> str:
    """Return the key that the data folder's owner uses on the command line."""
    try:
        check_data(settings)
    except RuntimeError as problem:
        raise CallFailed(f"{problem}, or a running gateway with --url and --key") from None
    from penstock.app import ensure_terminal_key  # imported here because it is slow, and a given key needs none of it

    with as_owner(settings.data):
        return asyncio.run(ensure_terminal_key(settings))
