"""The gateway as its users run it: `python -m penstock`, one process, its own data folder."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from tests import command_line
from tests.api.raw_http import RawResponse
from tests.fake_providers.scripted import KEY, KEY_ENV, ScriptedProvider
from tests.ports import unused_port

ROOT = Path(__file__).parents[2]
SECONDS = 30


def until(met: Callable[[], bool], seconds: float = SECONDS) -> None:
    deadline = time.monotonic() + seconds
    while not met():
        assert time.monotonic() < deadline, "it did not come about in time"
        time.sleep(0.02)


@dataclass(slots=True)
class Serving:
    """A running server."""

    process: "subprocess.Popen[str]"
    url: str
    printed: str  # what it said at its start
    key: str = field(repr=False)

    @property
    def base_url(self) -> str:
        return f"{self.url}/compat/v1"

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        key: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> RawResponse:
        """Make one call without OpenAI's client."""
        data = None if body is None else json.dumps(body).encode()
        usual = {"authorization": f"Bearer {key or self.key}", "content-type": "application/json"}
        asked = Request(self.url + path, data, {**usual, **(headers or {})}, method=method)  # noqa: S310
        try:
            with urlopen(asked, timeout=SECONDS) as response:  # noqa: S310
                return RawResponse(response.status, dict(response.headers), response.read())
        except HTTPError as problem:
            with problem:
                return RawResponse(problem.code, dict(problem.headers), problem.read())

    def kill(self) -> None:
        """Kill the process without warning."""
        self.process.kill()
        self.process.wait()

    def stop(self) -> int:
        """Send SIGTERM, and return the exit status."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(SECONDS)


@dataclass(slots=True)
class Installation:
    """A data folder, a database and a fake provider or none, on which servers are started."""

    data: Path
    database: str
    lab: ScriptedProvider | None
    key: str = field(default="", repr=False)
    toml: str = ""
    port: int = 0  # of every server; 0: an unused one for each
    _logs: int = 0

    @property
    def environment(self) -> dict[str, str]:
        ours = {name: value for name, value in os.environ.items() if not name.startswith("PENSTOCK_")}
        # Short deadlines: no provider here needs a day, and a killed process is replaced at once.
        ours |= {"PENSTOCK_POLL_SECONDS_MAX": "0.3", "PENSTOCK_LEASE_SECONDS": "3"}
        ours |= {KEY_ENV: KEY, "PYTHONPATH": os.pathsep.join(map(str, (ROOT / "src", ROOT)))}
        return ours | ({"PENSTOCK_DATABASE": self.database} if self.database else {})

    def penstock(self, *words: str) -> command_line.Ended:
        """Run a command to its end, in this process: starting another one takes longer than most commands."""
        return command_line.penstock(*words, "--data", self.data, **self.environment)

    @contextmanager
    def serving(self, **environment: str) -> Iterator[Serving]:
        """Start a server and wait until it listens; stop it at the end if it still runs."""
        self._describe()
        port = self.port or unused_port()
        command = [sys.executable, "-m", "penstock", "serve", "--data", str(self.data), "--port", str(port)]
        self._logs += 1
        with (self.data.parent / f"log-{self._logs}").open("wb") as log:
            process = subprocess.Popen(
                command, env=self.environment | environment, stdout=subprocess.PIPE, stderr=log, text=True
            )
        try:
            printed = self._greeting(process)
            if found := re.search(r"^    (pk_\S+)$", printed, re.MULTILINE):
                self.key = found[1]
            yield Serving(process, f"http://127.0.0.1:{port}", printed, self.key)
        finally:
            if process.poll() is None:
                process.terminate()
                process.wait(SECONDS)
            if process.stdout:
                process.stdout.close()

    def _greeting(self, process: "subprocess.Popen[str]") -> str:
        """Return what was printed up to the URL and, at a first start, the key."""
        assert process.stdout is not None
        lines: list[str] = []
        for line in process.stdout:
            lines.append(line)
            if line.startswith("Penstock listens on "):
                break
        assert lines, (self.data.parent / f"log-{self._logs}").read_text()
        if not self.key:
            for line in process.stdout:
                lines.append(line)
                if line.lstrip().startswith("-d "):
                    break
        return "".join(lines)

    def _describe(self) -> None:
        """penstock.toml as an operator would write it."""
        self.data.mkdir(exist_ok=True, mode=0o700)
        text = [self.toml, *(_provider_lines(self.lab) if self.lab else ())]
        (self.data / "penstock.toml").write_text("\n".join(text) + "\n")


def _provider_lines(lab: ScriptedProvider) -> Iterator[str]:
    provider = lab.settings()
    yield "[providers.lab]"
    yield from (f"{name} = {json.dumps(provider[name])}" for name in ("speaks", "base_url", "key_env"))
    for model in provider["models"]:
        yield "[[providers.lab.models]]"
        yield from (f"{name} = {json.dumps(model[name])}" for name in ("id", "upstream", "task"))
        pairs = ", ".join(f"{name} = {json.dumps(value)}" for name, value in model["price"].items())
        yield f"price = {{ {pairs} }}"
