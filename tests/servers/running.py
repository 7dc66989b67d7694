"""A real server as a process on loopback, and a gateway in front of it."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import urlopen

import pytest

from tests.servers.installing import FOLDER, why_missing
from tests.stories.processes import Installation, Serving, until

START_SECONDS = 600  # until a server has loaded its model
# Nothing is fetched from the network: these are read by libraries that would look for models there.
OFFLINE = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}


@dataclass(slots=True)
class RealServer:
    """A server of another project. What it prints is in a log."""

    command: Sequence[str | Path]
    environment: Mapping[str, str]
    url: str
    ready: str  # the path that it answers as soon as it can be used
    log: Path
    process: "subprocess.Popen[bytes]" = field(init=False)

    def start(self) -> None:
        """Start it, and wait until it can be used."""
        with self.log.open("ab") as output:
            self.process = subprocess.Popen(
                self.command,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=FOLDER,
                env={**os.environ, **OFFLINE, **self.environment},
                start_new_session=True,
            )
        until(self._is_ready, START_SECONDS)

    def _is_ready(self) -> bool:
        assert self.process.poll() is None, self.log.read_text(errors="replace")[-3000:]
        try:
            with urlopen(self.url + self.ready, timeout=5):  # noqa: S310
                return True
        except HTTPError as problem:
            problem.close()
        except (URLError, OSError):
            pass
        time.sleep(0.3)
        return False

    def get(self, path: str) -> Any:
        with urlopen(self.url + path, timeout=30) as response:  # noqa: S310
            return json.loads(response.read())

    def kill(self) -> None:
        """Kill it and the processes that it started, without warning."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


def skip_unless_installed(name: str) -> None:
    if reason := why_missing(name):
        pytest.skip(f"{name} cannot be had: {reason}")


@contextmanager
def started(
    name: str, command: Sequence[str | Path], ready: str, port: int, environment: Mapping[str, str] | None = None
) -> Iterator[RealServer]:
    """Start a server, wait until it answers `ready`, and stop it in the end."""
    log = FOLDER / f"{name}-output.log"
    log.unlink(missing_ok=True)
    server = RealServer(command, environment or {}, f"http://127.0.0.1:{port}", ready, log)
    try:
        server.start()
        yield server
    finally:
        server.process.terminate()
        with suppress(subprocess.TimeoutExpired):
            server.process.wait(20)
        server.kill()


@contextmanager
def gateway(folder: Path, toml: str = "", **environment: str) -> Iterator[Serving]:
    """A gateway of its own, as its users run it; its audit must be clean in the end."""
    installation = Installation(folder / "data", "", None, toml=toml)
    with installation.serving(**environment) as serving:
        yield serving
        audit = installation.penstock("audit")
        assert audit.status == 0, audit


# --------------------------------------------------------------------------------------------------------------- chats


def message(text: str) -> list[Any]:
    """The messages of a chat with one question."""
    return [{"role": "developer", "content": "Be brief."}, {"role": "user", "content": text}]


def begin_chat(served: Serving, body: dict[str, Any]) -> HTTPConnection:
    """Send a chat call and return the connection, whose response is not read yet."""
    connection = HTTPConnection(served.url.removeprefix("http://"), timeout=60)
    headers = {"authorization": f"Bearer {served.key}", "content-type": "application/json"}
    connection.request("POST", "/compat/v1/chat/completions", json.dumps(body), headers)
    return connection
