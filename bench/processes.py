"""Start the processes that a benchmark measures, each on chosen cores, and read what they use."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

GATEWAY_CORE = "0"
LOAD_CORE = "1"
ALL_CORES = ",".join(map(str, sorted(os.sched_getaffinity(0))))


@contextlib.contextmanager
def run_process(
    command: list[str], cores: str, environ: dict[str, str], folder: Path
) -> Iterator[subprocess.Popen[str]]:
    """Run a command on these cores, with its output in the folder; kill it and its children at the end."""
    with (folder / "output.txt").open("w") as output:
        process = subprocess.Popen(
            ["taskset", "-c", cores, *command],
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, **environ},
            text=True,
            start_new_session=True,
        )
        try:
            yield process
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def wait_for_port(port: int, seconds: float = 90) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 0.2):
            return
        time.sleep(0.05)
    raise TimeoutError(f"no process listens on port {port}")


def serve_command(folder: Path, port: int) -> list[str]:
    """The command that starts Penstock with its data and settings in the folder."""
    return [sys.executable, "-m", "penstock", "serve", "--data", str(folder), "--port", str(port)]


def _run_penstock(folder: Path, *words: str) -> str:
    """Run a command of the Penstock whose data is in the folder; return the last word that it prints."""
    command = [sys.executable, "-m", "penstock", *words, "--data", str(folder)]
    return ["", *subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()][-1]


def create_key(folder: Path) -> str:
    """Create an API key of the Penstock whose data is in the folder."""
    _run_penstock(folder, "init")
    return _run_penstock(folder, "keys", "create")


def create_organizations(folder: Path, count: int) -> list[str]:
    """Create organizations with credit; return a key of each. None of them may have more than half of the calls."""
    _run_penstock(folder, "init")
    orgs = [_run_penstock(folder, "orgs", "create", "--name", f"Bench {number}") for number in range(count)]
    for org in orgs:
        _run_penstock(folder, "credit", "add", "--usd", "1000000", "--org", org)
    return [_run_penstock(folder, "keys", "create", "--org", org) for org in orgs]


def processor_seconds(group: int) -> float:
    """Processor time that the processes of a group have used; other load on the machine hardly changes it."""
    ticks = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = stat.read_text().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12]) if int(fields[2]) == group else 0
    return ticks / os.sysconf("SC_CLK_TCK")
