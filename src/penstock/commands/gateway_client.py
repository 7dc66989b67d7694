"""Call a running gateway over HTTP, for the commands that any caller may use."""

import asyncio
import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Annotated, Any
from uuid import uuid4

import typer

from penstock.client import calls
from penstock.client.calls import Call
from penstock.client.connection import Connection, Reply
from penstock.client.failures import CallFailed
from penstock.client.results import Kind, generation_path
from penstock.client.retries import RETRIES
from penstock.commands.data_folder import URL_FILE, check_data
from penstock.commands.output import say
from penstock.commands.owner import as_owner
from penstock.environment import ENVIRONMENT
from penstock.net.event_stream import EventBuffer, data_of_events
from penstock.settings import Settings
from penstock.settings.loading import load
from penstock.values import is_id

_URL_VARIABLE = "PENSTOCK_URL"
_KEY_VARIABLE = "PENSTOCK_KEY"

Url = Annotated[
    str | None,
    typer.Option("--url", help="URL of the gateway. Default: PENSTOCK_URL, or the gateway of the data folder."),
]
Key = Annotated[
    str | None, typer.Option("--key", help="API key. Default: PENSTOCK_KEY, or a key created for the data folder.")
]


@dataclass(frozen=True, slots=True)
class JobState:
    """A video or a sound, and how long to wait before it is asked for again; None when it has ended."""

    job: dict[str, Any]
    pause_seconds: float | None


class GatewayClient(Connection):
    """One caller's calls to a gateway."""

    def get(self, path: str, **query: Any) -> Reply:
        """Read a resource; a query parameter that is None is left out."""
        return self.send(calls.get(path, query))

    def post(self, path: str, body: dict[str, Any] | None, **query: Any) -> Reply:
        """Send a JSON body, or none."""
        return self.send(Call("POST", calls.with_query(path, query), body))

    def post_file(
        self, path: str, name: str, data: bytes, fields: Mapping[str, Any], *, key: str | None = None, **query: Any
    ) -> Reply:
        """Send a file and fields as a form; `key` is an idempotency key."""
        return self.send(_form_call(calls.with_query(path, query), fields, name, data, key))

    def post_form(self, path: str, fields: Mapping[str, Any], name: str | None, data: bytes, **query: Any) -> Reply:
        """Send fields as a form, with a file if that has a name."""
        return self.send(_form_call(calls.with_query(path, query), fields, name, data))

    def stream_form(
        self, path: str, fields: Mapping[str, Any], name: str | None, data: bytes
    ) -> tuple[Mapping[str, str], Iterator[bytes]]:
        """As `post_form`; return the headers of the response, and its bytes as they arrive."""
        parts = self.stream(_form_call(path, fields, name, data))
        headers, first = next(parts)
        return headers, chain([first], (chunk for _, chunk in parts))

    def start(self, path: str, body: dict[str, Any]) -> Reply:
        """Send a JSON body to an endpoint that otherwise waits for its result, and do not wait."""
        return self.send(calls.started(Call("POST", path, body)))

    def stream_bytes(self, path: str, body: dict[str, Any]) -> Iterator[tuple[str, bytes]]:
        """Send a JSON body and yield the bytes of the response when they arrive, with the id of the request."""
        for headers, chunk in self.stream(Call("POST", path, body)):
            yield headers.get("x-request-id", ""), chunk

    def get_request(self, request_id: str) -> Reply:
        """Read the record of a request. Anything but an id is refused: with dots and slashes it would be the path of
        something else, and the id may come from an agent.
        """
        if not is_id(request_id, "req"):
            raise CallFailed("the id of a request is needed, such as that in the response to a call")
        return self.get(f"/v1/requests/{request_id}")

    def get_job(self, job_id: str, kind: Kind) -> JobState:
        """Read a job that may be unfinished; the gateway says when to ask again."""
        reply = self.send(calls.get(generation_path(job_id, kind)), RETRIES)
        return JobState(reply.body, None if reply.body["status"] in ("completed", "failed") else reply.poll_seconds)

    def delete(self, path: str) -> Reply:
        """Delete or cancel a resource."""
        return self.send(Call("DELETE", path))

    def stream_events(self, path: str, body: dict[str, Any]) -> Iterator[Reply]:
        """Send a JSON body and yield each server-sent event when it arrives, until `[DONE]`."""
        buffer = EventBuffer(sys.maxsize)  # the gateway is trusted
        for headers, chunk in self.stream(Call("POST", path, body)):
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
        for headers, chunk in self.stream_file(path) if "://" in path else self.stream(calls.get(path)):
            length = headers.get("content-length")
            yield int(length) if length else None, chunk


def _form_call(path: str, fields: Mapping[str, Any], name: str | None, data: bytes, key: str | None = None) -> Call:
    """A call with a form: fields, and a file if that has a name."""
    edge = uuid4().hex
    head = f'--{edge}\r\nContent-Disposition: form-data; name="'
    parts = [f'{head}{field}"\r\n\r\n{value}\r\n'.encode() for field, value in fields.items()]
    if name is not None:
        plain_name = "".join(char if (char.isascii() and char.isalnum()) or char in "._-" else "_" for char in name)
        parts += [f'{head}file"; filename="{plain_name}"\r\n\r\n'.encode(), data, b"\r\n"]
    headers = {"Content-Type": f"multipart/form-data; boundary={edge}"}
    if key:
        headers["Idempotency-Key"] = key
    return Call("POST", path, None, headers, b"".join([*parts, f"--{edge}--\r\n".encode()]))


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
    from penstock.app.first_start import (
        ensure_terminal_key,  # imported here because it is slow, and a given key needs none of it
    )

    with as_owner(settings.data):
        return asyncio.run(ensure_terminal_key(settings, is_operator=is_operator))
