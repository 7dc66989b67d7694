"""Simulate clusters that are larger than this machine from the measured costs of a call, and say what gives way first.

    python -m bench.simulation [--costs FILE] [--seconds 6] [--sync-ms 2] [--big-part 0.2] [--seed 1] [--short]

FILE comes from `bench.cluster --costs FILE`; without it the costs in docs/scale.md are used. Calls come at random
moments. Each gateway and each worker is one event loop, which does one thing at a time. Calls of a moment share
transactions, up to 64 of one kind and process in each, one transaction after the other, as in `store/groups.py`.
Postgres has a number of cores; commits that wait at the same time share one sync. The balances of the organizations in
a transaction are its last statements, and locked until it commits, which is before it waits for the disk. A transaction
that begins one call commits in a round trip of its own, because the gateway has to see whether the balance was large
enough; one that begins several fails if it was not. One organization of two hundred makes a fifth of all calls, or
another part.

For each step of docs/scale.md it prints how long a call waits in the cluster beyond the time of provider and storage,
how busy each part is, and how many times as many calls the cluster carries: until one in a hundred waits for more than
a second, or a queue grows. What was busiest then is named.
"""

import argparse
import random
from collections import Counter, deque
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import Any

import msgspec
import simpy

CALLS_TOGETHER = 64
WAIT_SECONDS_MAX = 1.0
PROVIDER_SECONDS = 0.5  # that each call is under way besides its wait
BALANCE_SECONDS = 0.00005  # of Postgres, to change one balance
ROUND_TRIP_SECONDS = 0.0005  # between a gateway and Postgres
COMMIT_SECONDS = 0.0001  # of a gateway, to send it
ORGANIZATIONS = 200
GROWTH = 1.25
# Seconds of processor time of a call, by kind and part: measured by bench.cluster, see docs/scale.md.
Costs = dict[str, dict[str, float]]
COSTS: Costs = {
    "chat": {"gateways": 0.00105, "workers": 0.0, "Postgres": 0.00096},
    "image": {"gateways": 0.00365, "workers": 0.0, "Postgres": 0.00198},
    "videos": {"gateways": 0.00228, "workers": 0.01075, "Postgres": 0.0106},
}

Steps = Generator[simpy.Event, Any, None]


@dataclass(frozen=True)
class Cluster:
    """Calls a second of each kind, and what is to carry them."""

    name: str
    rates: dict[str, float]
    gateways: int
    workers: int
    postgres_cores: int


CLUSTERS = (
    Cluster("one gateway and one core for Postgres", {"image": 300}, 1, 1, 1),
    Cluster(
        "50 million chats, 10 million images, 1 million videos a day",
        {"chat": 1750, "image": 350, "videos": 35},
        4,
        2,
        8,
    ),
    Cluster("the same with twelve gateways", {"chat": 1750, "image": 350, "videos": 35}, 12, 4, 8),
    Cluster("100 million images, 1 million videos a day", {"image": 3500, "videos": 35}, 24, 4, 32),
)


# --------------------------------------------------------------------------------------------------------------- parts


class Part:
    """Something that works for one call at a time on each of its cores, and how long it was busy."""

    def __init__(self, env: simpy.Environment, cores: int) -> None:
        self.env = env
        self.cores = cores
        self.busy = 0.0
        self._resource = simpy.Resource(env, cores)

    def work(self, seconds: float) -> Steps:
        with self._resource.request() as turn:
            yield turn
            yield self.env.timeout(seconds)
            self.busy += seconds


class Disk:
    """The disk under Postgres: transactions that wait while it syncs share the next sync."""

    def __init__(self, env: simpy.Environment, sync_seconds: float) -> None:
        self.env = env
        self.sync_seconds = sync_seconds
        self.busy = 0.0
        self._waiting: list[simpy.Event] = []
        self._is_syncing = False

    def commit(self) -> simpy.Event:
        event = self.env.event()
        self._waiting.append(event)
        if not self._is_syncing:
            self.env.process(self._sync())
        return event

    def _sync(self) -> Steps:
        self._is_syncing = True
        while self._waiting:
            synced, self._waiting = self._waiting, []
            yield self.env.timeout(self.sync_seconds)
            self.busy += self.sync_seconds
            for event in synced:
                event.succeed()
        self._is_syncing = False


class Balances:
    """The balance of each organization, which one transaction at a time may change."""

    def __init__(self, env: simpy.Environment) -> None:
        self.rows = [simpy.Resource(env, 1) for _ in range(ORGANIZATIONS)]
        self.busy = [0.0] * ORGANIZATIONS


class Groups:
    """The transactions of one kind in one process, which calls of a moment share."""

    def __init__(self, simulation: "Simulation", call_seconds: float, loop: Part, *, begins: bool) -> None:
        self._simulation = simulation
        self._call_seconds = call_seconds  # of Postgres
        self._loop = loop
        self._begins = begins
        self._waiting: deque[tuple[int, simpy.Event]] = deque()
        self._is_writing = False

    def add(self, org: int) -> simpy.Event:
        """Have a call written; the event is its commit."""
        event = self._simulation.env.event()
        self._waiting.append((org, event))
        if not self._is_writing:
            self._simulation.env.process(self._write())
        return event

    def _write(self) -> Steps:
        simulation = self._simulation
        self._is_writing = True
        while self._waiting:
            group = [self._waiting.popleft() for _ in range(min(CALLS_TOGETHER, len(self._waiting)))]
            yield simulation.env.timeout(ROUND_TRIP_SECONDS)
            yield from simulation.postgres.work(len(group) * self._call_seconds)
            orgs = sorted({org for org, _ in group})
            turns = []
            for org in orgs:
                turn = simulation.balances.rows[org].request()
                yield turn
                turns.append(turn)
            locked = simulation.env.now
            yield from simulation.postgres.work(len(orgs) * BALANCE_SECONDS)
            if self._begins and len(group) == 1:
                yield from self._loop.work(COMMIT_SECONDS)
                yield simulation.env.timeout(ROUND_TRIP_SECONDS)
            for org, turn in zip(orgs, turns, strict=True):
                simulation.balances.rows[org].release(turn)
                simulation.balances.busy[org] += simulation.env.now - locked
            yield simulation.disk.commit()
            for _, event in group:
                event.succeed()
        self._is_writing = False


class Process:
    """A gateway or a worker: its event loop, and its transactions that begin and that end calls."""

    def __init__(self, simulation: "Simulation", costs: Costs) -> None:
        self.loop = Part(simulation.env, 1)
        self.begins = {}
        self.ends = {}
        for kind, cost in costs.items():
            self.begins[kind] = Groups(simulation, cost["Postgres"] / 2, self.loop, begins=True)
            self.ends[kind] = Groups(simulation, cost["Postgres"] / 2, self.loop, begins=False)


# ---------------------------------------------------------------------------------------------------------- simulation


@dataclass
class Simulation:
    """One run of a cluster."""

    cluster: Cluster
    costs: Costs
    options: argparse.Namespace
    chance: random.Random
    env: simpy.Environment = field(default_factory=simpy.Environment)
    waits: dict[str, list[float]] = field(default_factory=dict)
    begun: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.postgres = Part(self.env, self.cluster.postgres_cores)
        self.disk = Disk(self.env, self.options.sync_ms / 1e3)
        self.balances = Balances(self.env)
        self.gateways = [Process(self, self.costs) for _ in range(self.cluster.gateways)]
        self.workers = [Process(self, self.costs) for _ in range(self.cluster.workers)]

    def run(self) -> "Simulation":
        calls: dict[str, Callable[[Process, Process, int], Steps]] = {
            "chat": partial(self.answered, "chat"),
            "image": partial(self.answered, "image"),
            "videos": self.video,
        }
        for kind, rate in self.cluster.rates.items():
            self.waits[kind] = []
            self.env.process(self.arrivals(kind, rate, calls[kind]))
        self.env.run(until=self.options.seconds)
        return self

    def arrivals(self, kind: str, rate: float, call: Callable[[Process, Process, int], Steps]) -> Steps:
        workers = cycle(self.workers)
        for gateway in cycle(self.gateways):
            yield self.env.timeout(self.chance.expovariate(rate))
            is_big = self.chance.random() < self.options.big_part
            org = 0 if is_big else self.chance.randrange(1, ORGANIZATIONS)
            self.begun[kind] += 1
            self.env.process(call(gateway, next(workers), org))

    def answered(self, kind: str, gateway: Process, _: Process, org: int) -> Steps:
        """A chat or an image. Only the response to an image waits until its end is stored."""
        started = self.env.now
        yield from gateway.loop.work(self.costs[kind]["gateways"] / 2)
        yield gateway.begins[kind].add(org)
        yield self.env.timeout(PROVIDER_SECONDS)
        yield from gateway.loop.work(self.costs[kind]["gateways"] / 2)
        end = gateway.ends[kind].add(org)
        if kind == "image":
            yield end
        self.waits[kind].append(self.env.now - started - PROVIDER_SECONDS)

    def video(self, gateway: Process, worker: Process, org: int) -> Steps:
        """The wait is that of the response and that from the end at the provider until it is stored."""
        started = self.env.now
        yield from gateway.loop.work(self.costs["videos"]["gateways"])
        yield gateway.begins["videos"].add(org)
        yield self.env.timeout(PROVIDER_SECONDS)
        yield from worker.loop.work(self.costs["videos"]["workers"])
        yield worker.ends["videos"].add(org)
        self.waits["videos"].append(self.env.now - started - PROVIDER_SECONDS)

    # ------------------------------------------------------------------------------------------------------ figures

    def wait(self, part: float) -> float:
        """The longest of the kinds' waits, of so large a part of the calls."""
        return max(percentile(waits, part) for waits in self.waits.values())

    def is_carried(self) -> bool:
        """Whether 99 of 100 calls that have ended, and nearly all that have not, waited for less than a second."""
        under_way = sum(self.begun.values()) - sum(map(len, self.waits.values()))
        usual = sum(self.cluster.rates.values()) * (PROVIDER_SECONDS + WAIT_SECONDS_MAX)
        return self.wait(0.99) < WAIT_SECONDS_MAX and under_way < usual

    def busy(self) -> dict[str, float]:
        """How busy each part was: its busiest process, core or row."""
        seconds = self.options.seconds
        return {
            "gateways": max(process.loop.busy for process in self.gateways) / seconds,
            "workers": max(process.loop.busy for process in self.workers) / seconds,
            "Postgres": self.postgres.busy / self.postgres.cores / seconds,
            "disk of Postgres": self.disk.busy / seconds,
            "balance of the big customer": self.balances.busy[0] / seconds,
        }


def percentile(values: Sequence[float], part: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * part))] if values else float("inf")


def simulate(cluster: Cluster, costs: Costs, options: argparse.Namespace, times: float) -> Simulation:
    """Run a cluster with so many times its calls."""
    rates = {kind: rate * times for kind, rate in cluster.rates.items()}
    return Simulation(replace(cluster, rates=rates), costs, options, random.Random(options.seed)).run()


def print_cluster(cluster: Cluster, costs: Costs, options: argparse.Namespace) -> None:
    found = simulate(cluster, costs, options, 1)
    rates = ", ".join(f"{rate:.0f} {kind}" for kind, rate in cluster.rates.items())
    print(f"{cluster.name}: {rates} a second at a peak")
    print(f"  {cluster.gateways} gateways, {cluster.workers} workers, {cluster.postgres_cores} cores for Postgres")
    print(f"  waits: p50 {found.wait(0.5) * 1e3:.0f} ms, p99 {found.wait(0.99) * 1e3:.0f} ms")
    print("  busy: " + ", ".join(f"{name} {part:.0%}" for name, part in found.busy().items()))
    too_many = 1.0
    while found.is_carried():
        too_many *= GROWTH
        found = simulate(cluster, costs, options, too_many)
    carried = too_many / GROWTH
    while carried < 1 and not simulate(cluster, costs, options, carried).is_carried():
        carried /= GROWTH
    name, part = max(found.busy().items(), key=lambda item: item[1])
    print(
        f"  carries {carried:.2f} times these calls; with {too_many:.2f} times, {name} is busy for {part:.0%}",
        flush=True,
    )


def main(options: argparse.Namespace) -> None:
    costs = msgspec.json.decode(options.costs.read_bytes())["calls"] if options.costs else COSTS
    print(f"a sync of the disk under Postgres takes {options.sync_ms:g} ms")
    for cluster in CLUSTERS[:1] if options.short else CLUSTERS:
        print_cluster(cluster, costs, options)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--costs", type=Path, help="written by bench.cluster --costs")
    parser.add_argument("--seconds", type=float, default=6.0, help="that are simulated")
    parser.add_argument("--sync-ms", type=float, default=2.0, help="of the disk under Postgres")
    parser.add_argument("--big-part", type=float, default=0.2, help="of all calls, by the largest of 200 organizations")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--short", action="store_true", help="the smallest cluster only")
    main(parser.parse_args())
