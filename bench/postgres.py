"""Compare Postgres with SQLite, and one organization with eight, in one run.

    python -m bench.postgres [--kind chat] [--calls 1000] [--rounds 5] [--callers 64] [--gateway PYTHON] [--pin]

Prints, for each gateway, the processor time of a call in the gateway and in Postgres, calls a second, and how many
statements and round trips to Postgres a call has, which other work on the machine changes least: on SQLite; on Postgres
with all callers in one organization; on Postgres with the callers divided among eight. Rounds take turns.
`--gateway` names the Python of another installation, which is measured on Postgres too. `--pin` lets gateways run on
the first core and everything else, Postgres included, on the others. Postgres waits for the disk at each commit.
"""

import argparse
import asyncio
import os
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace

import psutil
import psycopg
import uvloop

from bench.costs import Installation, Kind, Provider, call, kinds, start
from tests import postgres

ORGANIZATIONS = 8


@dataclass
class Subject:
    """A gateway with the keys of its callers, and what its rounds cost."""

    name: str
    installation: Installation
    keys: list[str]
    uses_postgres: bool
    gateway: list[float] = field(default_factory=list)  # microseconds of a call
    database: list[float] = field(default_factory=list)
    calls_per_second: list[float] = field(default_factory=list)
    statements: list[float] = field(default_factory=list)  # of a call
    round_trips: list[float] = field(default_factory=list)

    async def make_calls(self, kind: Kind, calls: int) -> None:
        part = replace(kind, callers=kind.callers // len(self.keys))
        await asyncio.gather(
            *(call(self.installation.port, key, part, calls // len(self.keys)) for key in self.keys),
        )


def run_command(installation: Installation, database: str, *arguments: str) -> str:
    """Run a command of Penstock in the data folder of a gateway, and return what it prints."""
    environ = {**os.environ, "PENSTOCK_DATABASE": database, "LAB_KEY": "x"}
    command = [installation.python, "-m", "penstock", *arguments, "--data", str(installation.folder)]
    return subprocess.run(command, env=environ, check=True, capture_output=True, text=True).stdout


def new_key(installation: Installation, database: str, number: int) -> str:
    """Create an organization, which needs no credit, and return a key of it."""
    org_id = run_command(
        installation, database, "orgs", "create", "--name", f"bench {number}", "--billing", "postpaid"
    ).strip()
    found = re.search(r"pk_\S+", run_command(installation, database, "keys", "create", "--org", org_id))
    assert found, "the command prints the key"
    return found[0]


def postgres_seconds(server: str) -> float:
    """Processor time of Postgres so far: of its processes, also of those that have ended."""
    with psycopg.connect(f"{server}/postgres") as connection:
        parent = psutil.Process(connection.info.backend_pid).parent()
    assert parent is not None
    seconds = sum(parent.cpu_times()[:4])  # the last two are of children that have ended
    for process in parent.children():
        with suppress(psutil.NoSuchProcess):
            seconds += sum(process.cpu_times()[:2])
    return seconds


@contextmanager
def first_core(*, pin: bool) -> Iterator[None]:
    """Let processes that are started in this block run on the first core, and this one on the others after it."""
    cores = sorted(os.sched_getaffinity(0))
    if pin:
        os.sched_setaffinity(0, cores[:1])
    yield
    if pin:
        os.sched_setaffinity(0, cores[1:] or cores)


def start_all(stack: ExitStack, options: argparse.Namespace, server: str, provider_port: int) -> list[Subject]:
    def begin(name: str, python: str, database: str, organizations: int = 1) -> Subject:
        installation = stack.enter_context(start(python, provider_port, database, profile=False))
        keys = [installation.key, *(new_key(installation, database, number) for number in range(1, organizations))]
        return Subject(name, installation, keys, bool(database))

    subjects = [begin("SQLite", sys.executable, "")]
    pythons = [("Postgres", sys.executable), *((f"Postgres, {python}", python) for python in options.gateway or ())]
    for number, (name, python) in enumerate(pythons):
        subjects.append(begin(f"{name}, one organization", python, f"{server}/one_{number}"))
        subjects.append(begin(f"{name}, eight", python, f"{server}/eight_{number}", ORGANIZATIONS))
    return subjects


async def measure(options: argparse.Namespace, server: str) -> None:
    kind = replace(kinds()[options.kind], callers=options.callers)
    Provider.response = kind.response
    provider = await asyncio.get_running_loop().create_server(Provider, "127.0.0.1", 0, backlog=4096)
    with ExitStack() as stack:
        with first_core(pin=options.pin):
            subjects = start_all(stack, options, server, provider.sockets[0].getsockname()[1])
        for subject in subjects:
            await subject.make_calls(kind, max(ORGANIZATIONS * 25, options.calls // 5))  # not counted
        for _ in range(options.rounds):
            for subject in subjects:
                busy = subject.installation.processor_seconds()
                database_busy = postgres_seconds(server)
                before = subject.installation.read_counts()
                started = time.perf_counter()
                await subject.make_calls(kind, options.calls)
                subject.calls_per_second.append(options.calls / (time.perf_counter() - started))
                after = subject.installation.read_counts()
                subject.statements.append((after["statements"] - before["statements"]) / options.calls)
                subject.round_trips.append((after["round_trips"] - before["round_trips"]) / options.calls)
                subject.gateway.append((subject.installation.processor_seconds() - busy) / options.calls * 1e6)
                subject.database.append((postgres_seconds(server) - database_busy) / options.calls * 1e6)
        print(f"{options.kind}, {options.callers} callers, {options.rounds} rounds of {options.calls} calls")
        print(
            f"{'':40} {'calls/s':>22} {'gateway, µs a call':>24} {'Postgres, µs a call':>24}"
            f" {'statements':>20} {'round trips':>20}"
        )
        for subject in subjects:
            rate = _median(subject.calls_per_second)
            database = _median(subject.database) if subject.uses_postgres else ""
            counts = f"{_median(subject.statements, 2):>20} {_median(subject.round_trips, 2):>20}"
            print(f"{subject.name:40} {rate:>22} {_median(subject.gateway):>24} {database:>24} {counts}")
    provider.close()


def _median(figures: list[float], digits: int = 0) -> str:
    return f"{statistics.median(figures):.{digits}f} ({min(figures):.{digits}f}-{max(figures):.{digits}f})"


def main(options: argparse.Namespace) -> None:
    with postgres.server(postgres.COMMON) as server:
        with psycopg.connect(f"{server}/postgres", autocommit=True) as connection:
            for number in range(1 + len(options.gateway or ())):
                connection.execute(f"CREATE DATABASE one_{number}".encode())
                connection.execute(f"CREATE DATABASE eight_{number}".encode())
        uvloop.run(measure(options, server))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kind", default="chat", choices=("chat", "image"))
    parser.add_argument("--calls", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--callers", type=int, default=64)
    parser.add_argument("--gateway", action="append", metavar="PYTHON")
    parser.add_argument("--pin", action="store_true")
    main(parser.parse_args())
