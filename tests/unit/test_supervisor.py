"""Several processes on one port: how they are started, watched, replaced and stopped."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

SECONDS = 30
# Each process writes a line with its number and pid, and stops when it is told so.
PROGRAM = """
import os, signal, sys, time
from penstock.telemetry.logs import configure_logs
from penstock.supervisor import Supervisor

def run(process):
    stops = []

    def stop(*_):
        stops.append(1)
        os.write(1, b"told to stop\\n")

    signal.signal(signal.SIGTERM, stop)
    {beginning}
    # In one write, because several processes write to this file.
    os.write(1, f"{{process.number}} {{os.getpid()}} {{process.is_replacement}}\\n".encode())
    process.tell_ready()
    while len(stops) < {stops}:
        time.sleep(0.01)
    return {status}

configure_logs("info")
status = Supervisor(run, 3).run()
print("all ended", flush=True)
sys.exit(status)
"""


class Supervised:
    """A supervisor and what its processes printed."""

    def __init__(self, process: "subprocess.Popen[bytes]", folder: Path) -> None:
        self.process = process
        self._out = folder / "out"
        self._err = folder / "err"

    @property
    def lines(self) -> list[list[str]]:
        return [line.split() for line in self._out.read_text().splitlines()]

    @property
    def ends(self) -> list[dict[str, Any]]:
        """What is logged about processes that ended by themselves."""
        found = [json.loads(line) for line in self._err.read_text().splitlines() if line.startswith("{")]
        return [line for line in found if "ended" in line["event"]]

    def pid(self, number: int) -> int:
        """The pid of the newest process with this number."""
        return int(next(line[1] for line in reversed(self.lines) if line[0] == str(number)))


def until(met: Callable[[], object]) -> None:
    deadline = time.monotonic() + SECONDS
    while not met():
        assert time.monotonic() < deadline, "it did not come about in time"
        time.sleep(0.01)


@contextmanager
def supervised(folder: Path, *, beginning: str = "pass", stops: int = 1, status: int = 0) -> Iterator[Supervised]:
    program = PROGRAM.format(beginning=beginning, stops=stops, status=status)
    with (folder / "out").open("w") as out, (folder / "err").open("w") as err:
        process = subprocess.Popen([sys.executable, "-c", program], stdout=out, stderr=err, start_new_session=True)
    try:
        yield Supervised(process, folder)
    finally:
        for child in psutil.Process(process.pid).children() if process.poll() is None else ():
            child.kill()
        process.kill()
        process.wait()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_first_starts_alone_and_one_signal_stops_all(tmp_path: Path, number: signal.Signals) -> None:
    with supervised(tmp_path) as running:
        until(lambda: len(running.lines) == 3)
        assert running.lines[0][0] == "1"
        assert sorted(line[0] for line in running.lines) == ["1", "2", "3"]
        os.kill(running.process.pid, number)
        assert running.process.wait(SECONDS) == 0
        assert running.lines[-1] == ["all", "ended"]
        assert running.ends == []


def test_a_terminal_that_interrupts_all_processes_stops_each_once(tmp_path: Path) -> None:
    """The second signal would have ended the calls that still run."""
    with supervised(tmp_path, stops=2) as running:
        until(lambda: len(running.lines) == 3)
        os.killpg(running.process.pid, signal.SIGINT)
        # Two signals at once would arrive as one.
        until(lambda: running.lines.count(["told", "to", "stop"]) == 3)
        os.kill(running.process.pid, signal.SIGTERM)
        assert running.process.wait(SECONDS) == 0
        assert running.lines.count(["told", "to", "stop"]) == 6


def test_a_process_that_dies_is_replaced_after_growing_pauses(tmp_path: Path) -> None:
    with supervised(tmp_path) as running:
        until(lambda: len(running.lines) == 3)
        for count in (4, 5):
            os.kill(running.pid(2), signal.SIGKILL)
            until(lambda count=count: len(running.lines) == count)  # type: ignore[misc]
        assert [line[2] for line in running.lines] == ["False", "False", "False", "True", "True"]
        facts = [(end["number"], end["status"], end["pause_seconds"]) for end in running.ends]
        assert facts == [(2, -9, 0.5), (2, -9, 1.0)]
        os.kill(running.process.pid, signal.SIGTERM)
        assert running.process.wait(SECONDS) == 0, "a process that was replaced is no failure of the whole"


def test_a_first_process_that_cannot_start_ends_all(tmp_path: Path) -> None:
    with supervised(tmp_path, beginning="return 7") as running:
        assert running.process.wait(SECONDS) == 1
        assert running.lines == [["all", "ended"]], "no other process was started"


def test_a_process_that_fails_while_it_stops_is_told(tmp_path: Path) -> None:
    with supervised(tmp_path, status=5) as running:
        until(lambda: len(running.lines) == 3)
        os.kill(running.process.pid, signal.SIGTERM)
        assert running.process.wait(SECONDS) == 5


def test_processes_stop_when_their_supervisor_is_killed(tmp_path: Path) -> None:
    with supervised(tmp_path) as running:
        until(lambda: len(running.lines) == 3)
        children = psutil.Process(running.process.pid).children()
        assert len(children) == 3
        running.process.kill()
        running.process.wait()
        assert psutil.wait_procs(children, SECONDS)[1] == []
