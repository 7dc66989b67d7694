"""A real server as a process on loopback, and a gateway in front of it."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import urlopen

import pytest

from tests.servers.installing import FOLDER, why_missing
from tests.stories.processes import Installation, Serving, until

START_SECONDS = 600  # until a server has loaded its model


@dataclass(frozen=True, slots=True)
class RealServer:
    """A running server of another project."""

    process: "subprocess.Popen[bytes]"
    url: str

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
    """Start a server, wait until it answers `ready`, and stop it in the end. What it printed is in a log."""
    log = FOLDER / f"{name}-output.log"
    # Nothing is fetched from the network: these are read by libraries that would look for models there.
    offline = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=FOLDER,
            env={**os.environ, **offline, **(environment or {})},
            start_new_session=True,
        )
    server = RealServer(process, f"http://127.0.0.1:{port}")
    try:
        _wait_until_ready(server, ready, log)
        yield server
    finally:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(20)
        server.kill()


def _wait_until_ready(server: RealServer, path: str, log: Path) -> None:
    def met() -> bool:
        assert server.process.poll() is None, log.read_text(errors="replace")[-3000:]
        try:
            with urlopen(server.url + path, timeout=5):  # noqa: S310
                return True
        except HTTPError as problem:
            problem.close()
        except (URLError, OSError):
            pass
        time.sleep(0.3)
        return False

    until(met, START_SECONDS)


@contextmanager
def gateway(folder: Path, toml: str = "", **environment: str) -> Iterator[Serving]:
    """A gateway of its own, as its users run it; its audit must be clean in the end."""
    installation = Installation(folder / "data", "", None, toml=toml)
    with installation.serving(**environment) as serving:
        yield serving
        assert installation.penstock("audit").status == 0
