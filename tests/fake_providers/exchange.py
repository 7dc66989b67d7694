"""One HTTP exchange as a fake provider sees it, with ways to break it."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from email.message import Message
from email.parser import BytesParser
from functools import cached_property
from typing import Any

import h11

GONE = (ConnectionError, h11.RemoteProtocolError, h11.LocalProtocolError, asyncio.IncompleteReadError)


@dataclass(frozen=True)
class ReceivedRequest:
    """A request as it arrived; header names are lower case."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes

    @cached_property
    def fields(self) -> dict[str, Any]:
        """The body's fields, from JSON or a form. A file is its bytes; a name that ends with `[]` makes a list."""
        kind = self.headers.get("content-type", "")
        if kind.startswith("application/json"):
            found: dict[str, Any] = json.loads(self.body)
            return found
        return self._form(kind) if kind.startswith("multipart/") else {}

    def _form(self, kind: str) -> dict[str, Any]:
        whole: Message = BytesParser().parsebytes(b"content-type: " + kind.encode() + b"\r\n\r\n" + self.body)
        fields: dict[str, Any] = {}
        for part in whole.get_payload():
            assert isinstance(part, Message)
            name = str(part.get_param("name", header="content-disposition"))
            data = part.get_payload(decode=True)
            assert isinstance(data, bytes)
            value: Any = data if part.get_filename() else data.decode()
            if name.endswith("[]"):
                fields.setdefault(name[:-2], []).append(value)
            else:
                fields[name] = value
        return fields

    @property
    def key(self) -> str:
        return self.headers.get("authorization", "").removeprefix("Bearer ")


@dataclass
class Exchange:
    """A received request, and the connection for the response."""

    request: ReceivedRequest
    params: Mapping[str, str]  # the variable parts of the path
    _line: h11.Connection
    _reader: asyncio.StreamReader
    _writer: asyncio.StreamWriter
    hung_up: bool = field(default=False)

    async def send(
        self, body: bytes, status: int = 200, content_type: str = "application/json", **headers: str
    ) -> None:
        await self.begin(status, content_type, {"content-length": str(len(body)), **_dashed(headers)})
        await self.more(body)
        await self.end()

    async def json(self, body: Any, status: int = 200, **headers: str) -> None:
        await self.send(json.dumps(body).encode(), status, **headers)

    async def begin(self, status: int, content_type: str, headers: Mapping[str, str]) -> None:
        """Send the head. Without a content-length the body is sent in chunks."""
        lines = [("content-type", content_type), *headers.items()]
        await self._write(h11.Response(status_code=status, headers=lines))

    async def more(self, data: bytes) -> None:
        await self._write(h11.Data(data=data))

    async def end(self) -> None:
        await self._write(h11.EndOfMessage())

    async def _write(self, event: h11.Response | h11.Data | h11.EndOfMessage) -> None:
        self._writer.write(self._line.send(event) or b"")
        await self._writer.drain()

    def hang_up(self) -> None:
        """Abort the connection."""
        self.hung_up = True
        self._writer.transport.abort()

    async def wait_until_gone(self) -> None:
        """Send nothing until the client closes the connection."""
        self.hung_up = True
        try:
            while await self._reader.read(65536):
                pass
        except GONE:
            pass


def _dashed(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.replace("_", "-"): value for name, value in headers.items()}


@dataclass(frozen=True, slots=True)
class FakeResponse:
    """A complete response: JSON, a file, or the events of a stream, some of which may have a name or be comments."""

    json: Any = None
    status: int = 200
    file: bytes = b""
    content_type: str = "application/json"
    events: Sequence[bytes] = ()
    headers: Mapping[str, str] = field(default_factory=dict)


OpenExchange = Callable[[Mapping[str, str]], Exchange]  # from the variable parts of the path
Responder = Callable[[ReceivedRequest, OpenExchange], Awaitable[None]]


@asynccontextmanager
async def listening(respond: Responder, port: int = 0) -> AsyncIterator[int]:
    """Listen on loopback, on any port or on this one, pass each request to `respond`, and yield the port. Raise its
    first exception at the end.
    """
    tasks: set[asyncio.Task[None]] = set()
    failures: list[BaseException] = []

    async def serve_connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await _serve_connection(respond, reader, writer)
        except (asyncio.CancelledError, *GONE):
            pass
        except BaseException as problem:
            failures.append(problem)
        finally:
            writer.transport.abort()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(serve_connection(reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    listener = await asyncio.start_server(accept, "127.0.0.1", port, limit=2**20, backlog=1024)
    try:
        yield int(listener.sockets[0].getsockname()[1])
    finally:
        listener.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for _ in range(3):  # transports close in the next iterations of the event loop
            await asyncio.sleep(0)
    if failures:
        raise failures[0]


async def _serve_connection(respond: Responder, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    line = h11.Connection(h11.SERVER, max_incomplete_event_size=2**20)
    while (request := await _read_request(line, reader)) is not None:
        opened: list[Exchange] = []

        def open_exchange(
            params: Mapping[str, str], request: ReceivedRequest = request, opened: list[Exchange] = opened
        ) -> Exchange:
            opened.append(Exchange(request, params, line, reader, writer))
            return opened[-1]

        await respond(request, open_exchange)
        if opened[-1].hung_up or line.our_state is not h11.DONE or line.their_state is not h11.DONE:
            return
        line.start_next_cycle()


async def _read_request(line: h11.Connection, reader: asyncio.StreamReader) -> ReceivedRequest | None:
    head: h11.Request | None = None
    body = bytearray()
    while True:
        event = line.next_event()
        if event is h11.NEED_DATA:
            line.receive_data(await reader.read(2**18))
        elif isinstance(event, h11.Request):
            head = event
        elif isinstance(event, h11.Data):
            body += event.data
        elif isinstance(event, h11.EndOfMessage):
            assert head is not None
            headers = {name.decode(): value.decode("latin-1") for name, value in head.headers}
            return ReceivedRequest(head.method.decode(), head.target.decode(), headers, bytes(body))
        else:
            return None
