"""One running gateway for the tests of the client, a client for it, and a network that loses responses."""

import asyncio
import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from penstock import Client
from penstock.client import async_client, async_connection, connection
from penstock.client import client as client_module
from tests.stories.processes import SECONDS, Installation, Serving


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    """A gateway as `penstock serve` starts it in an empty folder."""
    with Installation(tmp_path_factory.mktemp("client") / "data", "", None).serving() as serving:
        yield serving


@pytest.fixture
def client(served: Serving) -> Client:
    return Client(served.url, served.key)


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Pauses are noted, and hardly made."""
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        time.sleep(0.01)

    async def pause_in_loop(seconds: float) -> None:
        pauses.append(seconds)
        await asyncio.sleep(0.01)

    for module in (connection, client_module):
        monkeypatch.setattr(module, "sleep", pause)
    for module in (async_connection, async_client):
        monkeypatch.setattr(module, "sleep", pause_in_loop)
    return pauses


class Network(ThreadingHTTPServer):
    """Passes calls on to a gateway. Responses can be lost on the way, or replaced."""

    def __init__(self, serving: Serving) -> None:
        super().__init__(("127.0.0.1", 0), _Passing)
        self.serving = serving
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self.losses = 0  # responses that are still to be lost
        self.answers: list[tuple[int, dict[str, str], bytes]] = []  # given instead, without asking the gateway
        self.calls: list[tuple[str, dict[str, str]]] = []  # method and path, and the headers


class _Passing(BaseHTTPRequestHandler):
    server: Network

    def _pass_on(self) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.calls.append((f"{self.command} {self.path}", headers))
        body = self.rfile.read(int(headers.get("content-length", 0)))
        if self.server.answers:
            self._answer(*self.server.answers.pop(0))
            return
        asked = {name: value for name, value in headers.items() if name in ("idempotency-key", "accept", "prefer")}
        parsed = json.loads(body) if body else None
        answer = self.server.serving.call(self.command, self.path, parsed, headers=asked)
        if self.server.losses:
            self.server.losses -= 1
            self.close_connection = True
            return
        self._answer(answer.status, {}, answer.body)

    def _answer(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.send_response(status)
        for name, value in {"content-length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def __getattr__(self, name: str) -> Any:
        if name in ("do_GET", "do_POST", "do_DELETE"):
            return self._pass_on
        raise AttributeError(name)

    def log_message(self, *_: Any) -> None:
        """Print nothing."""


@pytest.fixture
def network(served: Serving) -> Iterator[Network]:
    with Network(served) as network:
        thread = threading.Thread(target=network.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield network
        network.shutdown()
        thread.join(SECONDS)
