"""What it costs to start: processor time until `penstock serve` listens, first calls, quick commands, the fixture.

    python -m bench.start [--rounds 7] [--gateway PYTHON]

Each round starts a gateway on a new data folder with SQLite, makes a chat and an image of 64 x 64 with the built-in
models, twice, and stops it; then it runs some commands. The first image also starts a child process, in which it is
drawn. What the pytest fixture costs is the difference between two runs of pytest with one empty test: one that uses
the fixture, and one that does not. Figures are medians. Times of calls are those of the clock, so they need a quiet
machine; all others are processor time. `--gateway` names the Python of another installation to compare with, and may
be repeated; their rounds take turns.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from urllib.request import Request, urlopen

COMMANDS = ("--version", "--help", "settings", "image --help", "keys --help", "serve --help")
_CALLS = {
    "chat": ("chat/completions", {"model": "atelier/echo", "messages": [{"role": "user", "content": "hello"}]}),
    "image": ("images/generations", {"model": "atelier/sketch", "prompt": "a pear", "size": "64x64"}),
}
Figures = dict[str, list[float]]


def processor_seconds(pid: int) -> float:
    """Processor time of all threads of a process. The kernel's own counters are used: `stat` counts in 10 ms."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9


def measure_gateway(python: str, figures: Figures) -> None:
    from tests.ports import unused_port

    port = unused_port()
    with tempfile.TemporaryDirectory() as folder:
        environ = {name: value for name, value in os.environ.items() if not name.startswith("PENSTOCK_")}
        command = [python, "-m", "penstock", "serve", "--port", str(port), "--data", folder]
        started = time.perf_counter()
        with subprocess.Popen(
            command, cwd=folder, env=environ, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        ) as process:
            try:
                assert process.stdout is not None
                assert process.stdout.readline(), "the gateway ended before it listened"
                figures["until it listens, elapsed"].append(time.perf_counter() - started)
                figures["until it listens"].append(processor_seconds(process.pid))
                status = Path(f"/proc/{process.pid}/status").read_text()
                figures["memory, MiB"].append(int(status.partition("VmHWM:")[2].split()[0]) / 1024)
                key = next(line.strip() for line in process.stdout if line.startswith("    pk_"))
                for number in ("first", "second"):
                    for kind, (path, body) in _CALLS.items():
                        figures[f"{number} {kind}, elapsed"].append(_call(port, key, path, body))
            finally:
                process.terminate()


def _call(port: int, key: str, path: str, body: object) -> float:
    headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}
    url = f"http://127.0.0.1:{port}/compat/v1/{path}"
    started = time.perf_counter()
    with urlopen(Request(url, json.dumps(body).encode(), headers)) as response:
        response.read()
    return time.perf_counter() - started


def measure_command(python: str, words: str, figures: Figures) -> None:
    with tempfile.TemporaryDirectory() as folder:
        figures[f"penstock {words}"].append(_used([python, "-m", "penstock", *words.split()], folder))


def measure_fixture(python: str, figures: Figures) -> None:
    with tempfile.TemporaryDirectory() as folder:
        used = []
        for fixture in ("", "penstock"):
            (Path(folder) / "test_start.py").write_text(f"def test({fixture}): pass\n")
            used.append(_used([python, "-m", "pytest", "-q", "-p", "no:cacheprovider"], folder))
        figures["pytest fixture"].append(used[1] - used[0])


def _used(command: list[str], folder: str) -> float:
    """Processor time of a command that succeeds."""
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, command
    return used.ru_utime + used.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--gateway", action="append", default=[], metavar="PYTHON")
    options = parser.parse_args()
    pythons = [sys.executable, *options.gateway]
    found: dict[str, Figures] = {python: defaultdict(list) for python in pythons}
    for number in range(options.rounds + 1):
        for python, figures in found.items():
            kept = figures if number else defaultdict(list)  # the first round may compile modules
            measure_gateway(python, kept)
            for words in COMMANDS:
                measure_command(python, words, kept)
            measure_fixture(python, kept)
    for python, figures in found.items():
        print(f"{python}, median of {options.rounds} rounds")
        for name, values in figures.items():
            print(f"  {name:28} {statistics.median(values):7.3f} ({min(values):.3f}-{max(values):.3f})")


if __name__ == "__main__":
    main()
