"""Attack a gateway as one organization, and measure how long the small calls of another one wait meanwhile.

    python -m bench.neighbours [--seconds 4] [--only WORDS] [--gateway PYTHON] [--short]

Each attack has a fresh gateway with its defaults on SQLite. First its own OpenAPI document is walked: each field of
each route gets a value at its limit. Then follow the attacks in bench/attacks. The neighbour, at another address,
lists its requests, chats, makes an image and asks for the health every few milliseconds, over new connections. Printed
are its longest wait and its p99, each also as a ratio to a quiet gateway, its calls that failed, the peak memory of the
gateway's own process, and the statuses that the attacker got. Attacker, neighbour and provider share one core, the
gateway may use all. `stall` is the longest wait for the health, without the time in which the event loop or the
neighbour could have run but had no processor: what remains is work on the event loop, whatever else the machine does.

`--gateway` is the Python of another installation of Penstock, `--only` words in the names of the attacks to run,
separated by commas.
"""

import argparse
import asyncio
import contextlib
import json
import multiprocessing
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import uvloop

from bench.attacks import ATTACKS, WITHOUT_BODY, Target, walk_route
from bench.hostile_provider import MODELS
from bench.images import peak_mib
from bench.processes import ALL_CORES, LOAD_CORE, run_process, wait_for_port
from bench.raw_client import call
from tests.ports import unused_port

_NEIGHBOUR = "127.0.0.2"  # its address
_TIMEOUT_SECONDS = 30.0
_GATEWAY_BYTES = 8 * 2**30  # of its address space, so that an attack cannot use up this machine
_SHORT_ATTACK = "JSON: only escapes"  # of the short form, which runs no other
_PRICES = {
    "image": 'unit = "image", usd = "0.000001"',
    "edit": 'unit = "image", usd = "0.000001"',
    "chat": 'unit = "token", input_usd = "0", output_usd = "0"',
    "transcription": 'unit = "second", usd = "0.000001"',
}

# ------------------------------------------------------------------------------------------------------------- gateway


@dataclass(frozen=True)
class Installation:
    """A data folder with two organizations, of which each gateway gets a copy, and the Python to run it with."""

    python: str
    folder: Path
    provider_port: int
    attacker_key: str = ""
    neighbour_key: str = ""

    def run(self, *arguments: str) -> str:
        """Run a command of Penstock and return the last word that it prints."""
        command = [self.python, "-m", "penstock", *arguments, "--data", str(self.folder)]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()[-1]


def install(python: str, folder: Path, provider_port: int) -> Installation:
    models = "".join(
        f'[[providers.lab.models]]\nid = "lab/{name}"\nupstream = "{name}"\ntask = "{task}"\n'
        f"price = {{ {_PRICES[task]} }}\n"
        for name, (task, _) in MODELS.items()
    )
    (folder / "penstock.toml").write_text(
        'starting_credit_usd = "1000000"\negress_allow_cidrs = ["127.0.0.0/8"]\nlog_level = "error"\n'
        f'[providers.lab]\nspeaks = "openai"\nbase_url = "http://127.0.0.1:{provider_port}/v1"\nkey_env = "LAB_KEY"\n'
        f'{models}[[providers.lab.models]]\nid = "lab/video"\nupstream = "video"\ntask = "video"\n'
        'price = { unit = "second", usd = "0.000001" }\n'
    )
    installed = Installation(python, folder, provider_port)
    port = unused_port()
    command = [python, "-m", "penstock", "serve", "--data", str(folder), "--port", str(port)]
    with tempfile.TemporaryDirectory() as name, run_process(command, ALL_CORES, {"LAB_KEY": "x"}, Path(name)):
        wait_for_port(port)  # the first start creates the database
        attacker = installed.run("keys", "create")
        org = installed.run("orgs", "create", "--name", "Neighbour")
        installed.run("credit", "add", "--usd", "1000000", "--org", org)
        neighbour = installed.run("keys", "create", "--org", org)
    return Installation(python, folder, provider_port, attacker, neighbour)


@contextlib.contextmanager
def run_gateway(installed: Installation) -> Iterator[tuple[int, int]]:
    """Run a gateway on a copy of the data folder. Yields its port and its process id."""
    port = unused_port()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "data"
        shutil.copytree(installed.folder, folder)
        command = ["prlimit", f"--as={_GATEWAY_BYTES}", installed.python, "-m", "penstock", "serve"]
        command += ["--data", str(folder), "--port", str(port)]
        with run_process(command, ALL_CORES, {"LAB_KEY": "x"}, Path(name)) as process:
            wait_for_port(port)
            yield port, process.pid


# ----------------------------------------------------------------------------------------------------------- neighbour


Calls = Mapping[str, tuple[str, str, dict[str, Any] | None, float]]


@dataclass
class Waits:
    """How long the calls of the neighbour waited, in seconds, and how many failed."""

    seconds: list[float] = field(default_factory=list)
    stalls: list[float] = field(default_factory=list)  # of the calls for the health
    failed: int = 0

    @property
    def longest(self) -> float:
        return max(self.seconds)

    @property
    def p99(self) -> float:
        return sorted(self.seconds)[int(len(self.seconds) * 0.99)]


def _neighbours_calls() -> Calls:
    """The calls of the neighbour: method, path, body and the seconds between two of them."""
    chat = {"model": "lab/chat-small", "messages": [{"role": "user", "content": "hello"}], "max_tokens": 9}
    image = {"model": "lab/image-small", "prompt": "a pear", "size": "64x64", "response_format": "b64_json"}
    return {
        "health": ("GET", "/healthz", None, 0.005),
        "list": ("GET", "/v1/requests", None, 0.03),
        "chat": ("POST", "/compat/v1/chat/completions", chat, 0.02),
        "image": ("POST", "/compat/v1/images/generations", image, 0.05),
    }


def _seconds_without_processor(*pids: int) -> float:
    """How long the main threads of these processes were ready to run, but had to wait for a processor."""
    return sum(int(Path(f"/proc/{pid}/schedstat").read_text().split()[1]) for pid in pids) / 1e9


@contextlib.asynccontextmanager
async def neighbour(port: int, key: str, pid: int, calls: Calls | None = None) -> AsyncIterator[Waits]:
    """Make these calls, or those of the neighbour, as long as the block runs, and then wait for their responses."""
    waits = Waits()
    over = asyncio.Event()

    async def repeat(method: str, path: str, body: dict[str, Any] | None, pause: float) -> None:
        data = json.dumps(body).encode() if body else b""
        while not over.is_set():
            without_processor = _seconds_without_processor(pid, os.getpid())
            started = time.perf_counter()
            try:
                async with asyncio.timeout(_TIMEOUT_SECONDS):
                    status, _ = await call(port, method, path, key, data, address=_NEIGHBOUR)
            except (TimeoutError, OSError, EOFError):
                status = 0
            waits.seconds.append(time.perf_counter() - started)
            if path == "/healthz":
                without_processor = _seconds_without_processor(pid, os.getpid()) - without_processor
                waits.stalls.append(max(0.0, waits.seconds[-1] - without_processor))
            waits.failed += status != 200
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(over.wait(), pause)

    async with asyncio.TaskGroup() as group:
        for each in (calls or _neighbours_calls()).values():
            group.create_task(repeat(*each))
        try:
            yield waits
        finally:
            over.set()


# ------------------------------------------------------------------------------------------------------------- attacks


def _attack(name: str, target: Target, pipe: Connection) -> None:
    """Run one attack in its own process: prepare, tell, wait for the word, attack, tell the answers."""
    os.sched_setaffinity(0, {int(LOAD_CORE)})
    os.nice(10)  # sending must not delay the neighbour

    async def begin() -> None:
        pipe.send("ready")
        await asyncio.to_thread(pipe.recv)

    run = ATTACKS[name] if name in ATTACKS else walk_route(name)
    uvloop.run(run(target, begin))
    pipe.send(target.answers)


async def measure(installed: Installation, name: str, target: Target, pid: int) -> tuple[Waits, Counter[str], float]:
    ours, theirs = multiprocessing.get_context("spawn").Pipe()
    process = multiprocessing.get_context("spawn").Process(target=_attack, args=(name, target, theirs), daemon=True)
    process.start()
    theirs.close()
    try:
        await asyncio.to_thread(ours.recv)  # it is ready
        async with neighbour(target.port, installed.neighbour_key, pid) as waits:
            await asyncio.sleep(0.1)
            ours.send("go")
            answers: Counter[str] = await asyncio.to_thread(ours.recv)
        return waits, answers, peak_mib(pid)
    finally:
        process.kill()
        process.join()


async def measure_quiet(installed: Installation, seconds: float) -> tuple[Waits, float, dict[str, Any]]:
    """The waits and the memory of a gateway that is not attacked, and its OpenAPI document."""
    with run_gateway(installed) as (port, pid):
        async with neighbour(port, installed.neighbour_key, pid):  # loads modules that are imported late
            await asyncio.sleep(1)
        async with neighbour(port, installed.neighbour_key, pid) as waits:
            await asyncio.sleep(seconds)
        _, document = await call(port, "GET", "/openapi.json", "")
        return waits, peak_mib(pid), json.loads(document)


def row(name: str, waits: Waits, quiet: Waits, memory: float, answers: Counter[str]) -> str:
    statuses = " ".join(f"{status}x{count}" for status, count in sorted(answers.items()))
    return (
        f"{name:48}{max(waits.stalls) * 1000:10.1f}{waits.longest * 1000:12.1f}{waits.longest / quiet.longest:7.1f}"
        f"{waits.p99 * 1000:10.1f}{waits.p99 / quiet.p99:7.1f}{waits.failed:8}{memory:10.0f}  {statuses}"
    )


def names_of_attacks(document: Mapping[str, Any]) -> list[str]:
    routes = [f"{method.upper()} {path}" for path, methods in document["paths"].items() for method in methods]
    return [*(route for route in routes if route.startswith("POST")), WITHOUT_BODY, *ATTACKS]


async def main(python: str, seconds: float, only: str) -> None:
    os.sched_setaffinity(0, {int(LOAD_CORE)})
    with tempfile.TemporaryDirectory() as name, tempfile.TemporaryDirectory() as provider_folder:
        provider_port = unused_port()
        provider = [sys.executable, "-m", "bench.hostile_provider", str(provider_port)]
        with run_process(provider, LOAD_CORE, {}, Path(provider_folder)):
            wait_for_port(provider_port)
            installed = install(python, Path(name), provider_port)
            quiet, memory, document = await measure_quiet(installed, 2 * seconds)
            columns = ("stall ms", "longest ms", "ratio", "p99 ms", "ratio", "failed", "peak MiB")
            widths = (10, 12, 7, 10, 7, 8, 10)
            titles = "".join(f"{column:>{width}}" for column, width in zip(columns, widths, strict=True))
            print(f"{'':48}{titles}  answers")
            print(row("nothing", quiet, quiet, memory, Counter()), flush=True)
            for attack in [
                name for name in names_of_attacks(document) if any(word in name for word in only.split(","))
            ]:
                with run_gateway(installed) as (port, pid):
                    async with neighbour(port, installed.neighbour_key, pid):
                        await asyncio.sleep(0.5)
                    target = Target(port, installed.attacker_key, provider_port, seconds, document)
                    waits, answers, memory = await measure(installed, attack, target, pid)
                print(row(attack, waits, quiet, memory, answers), flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--only", default="", metavar="WORDS")
    parser.add_argument("--gateway", default=sys.executable, metavar="PYTHON")
    parser.add_argument("--short", action="store_true")
    options = parser.parse_args()
    seconds, only = (0.2, _SHORT_ATTACK) if options.short else (options.seconds, options.only)
    uvloop.run(main(options.gateway, seconds, only))
