"""Check that the costs of calls, measured alone, add up where gateways and workers share one Postgres and one storage.

    python -m bench.cluster [--gateways 3] [--workers 3] [--seconds 10] [--rounds 3] [--callers 8] [--costs FILE]

Gateways, which leave videos to the workers, workers, Postgres, which waits for the disk, and rclone, which speaks S3,
are processes of their own; this one is the provider, the callers and the receiver of webhooks. Each kind of call is
measured alone and then all together, in rounds that take turns. Printed is the processor time of a call in each of
these, and, for all kinds together, what the costs of the kinds alone predict and what was measured. What the cluster
takes while nobody calls is measured first and left out. `--costs` writes the costs to a file for `bench.simulation`.
"""

import argparse
import asyncio
import os
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import psutil
import psycopg
import uvloop

from bench.costs import CONFIG, ROOT, kinds
from bench.postgres import postgres_seconds
from bench.processes import ALL_CORES, run_process, wait_for_port
from bench.videos import Connection, Observations, wait_until
from tests import postgres, s3_server
from tests.ports import unused_port

PARTS = ("gateways", "workers", "Postgres", "S3 server", "provider and callers")
POLL_SECONDS = 1.0
VIDEOS_OF_A_CALLER = 10  # that are under way
LIMIT_SECONDS = 120.0


@dataclass(slots=True)
class Lab(Observations):
    """A provider that responds at once and whose videos are done at the first poll, and the receiver of webhooks."""

    responses: dict[bytes, bytes] = field(default_factory=dict)  # by the beginning of the path

    def respond(self, method: bytes, path: bytes, headers: bytes) -> bytes:
        for beginning, response in self.responses.items():
            if path.startswith(beginning):
                return response
        self.done.add(self.created)  # not a video that this request creates: its number comes next
        return Observations.respond(self, method, path, headers)


def lab() -> Lab:
    made = kinds()

    def response(kind: str) -> bytes:
        body = made[kind].response
        return b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body)

    return Lab(POLL_SECONDS, responses={b"/v1/chat/": response("chat"), b"/v1/images/": response("image")})


# ------------------------------------------------------------------------------------------------------------- cluster


@dataclass
class Cluster:
    """The running processes, and how to call them."""

    database: str  # the URL of the server
    ports: list[int]
    processes: dict[str, list[psutil.Process]]  # by part
    key: str
    lab: Lab
    webhook_url: str
    videos: int = 0  # that were created

    def processor_seconds(self) -> dict[str, float]:
        """Processor time of each part so far, with that of the processes that a part has started and that still run."""
        seconds = {"Postgres": postgres_seconds(self.database)}
        for part, processes in self.processes.items():
            family = [one for process in processes for one in (process, *process.children(recursive=True))]
            seconds[part] = sum(sum(process.cpu_times()[:2]) for process in family)
        times = os.times()
        seconds["provider and callers"] = times.user + times.system
        return seconds

    def request(self, kind: str) -> bytes:
        if kind == "videos":
            path = "/compat/v1/videos"
            body = {"model": "video-model", "prompt": "a train", "seconds": 4, "webhook_url": self.webhook_url}
        else:
            path, body = kinds()[kind].path, kinds()[kind].body
        data = msgspec.json.encode(body)
        head = f"POST {path} HTTP/1.1\r\nhost: bench\r\ncontent-type: application/json\r\n"
        return f"{head}authorization: Bearer {self.key}\r\ncontent-length: {len(data)}\r\n\r\n".encode() + data

    async def repeat(self, kind: str, port: int, until: float, callers: int) -> int:
        """Make calls of one kind until then, one after the other, and return how many."""
        request = self.request(kind)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        count = 0
        while time.monotonic() < until:
            if kind == "videos":
                if self.videos - len(self.lab.received) >= callers * len(self.ports) * VIDEOS_OF_A_CALLER:
                    await asyncio.sleep(0.01)
                    continue
                self.videos += 1
            writer.write(request)
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            length = re.search(rb"content-length: *(\d+)", head)
            response = await reader.readexactly(int(length[1] if length else 0))
            assert head.startswith((b"http/1.1 200", b"http/1.1 202")), response[:500]
            count += 1
        writer.close()
        return count

    async def load(self, wanted: Sequence[str], seconds: float, callers: int) -> Counter[str]:
        """Calls of these kinds in this time, with so many callers of each kind at each gateway. Videos have ended."""
        until = time.monotonic() + seconds
        places = [(kind, port) for kind in wanted for port in self.ports for _ in range(callers)]
        counts = await asyncio.gather(*(self.repeat(kind, port, until, callers) for kind, port in places))
        await wait_until(lambda: len(self.lab.received) >= self.videos, LIMIT_SECONDS)
        found: Counter[str] = Counter()
        for (kind, _), count in zip(places, counts, strict=True):
            found[kind] += count
        return found


@contextmanager
def start(database: str, gateways: int, workers: int, lab_port: int, observed: Lab) -> Iterator[Cluster]:
    """Start an S3 server, gateways that make no videos, and workers."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        (folder / "penstock.toml").write_text(CONFIG.format(port=lab_port))
        (folder / "files").mkdir()
        storage = stack.enter_context(s3_server.run_s3_server(folder / "files"))
        environ = {
            "LAB_KEY": "x",
            "PENSTOCK_DATABASE": f"{database}/cluster",
            "PENSTOCK_SECRET": "c" * 64,
            "PENSTOCK_MEDIA": storage.new_url(),
            "PENSTOCK_LOG_LEVEL": "warning",
            "AWS_ACCESS_KEY_ID": s3_server.KEY_ID,
            "AWS_SECRET_ACCESS_KEY": s3_server.SECRET,
            "AWS_REGION": "us-east-1",
            "AWS_ENDPOINT": storage.endpoint,
            "AWS_ALLOW_HTTP": "true",
            "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}",
        }

        def run(name: str, *words: str, **more: str) -> psutil.Process:
            place = folder / name
            place.mkdir()
            command = [sys.executable, "-m", "penstock", *words, "--data", str(folder)]
            process = stack.enter_context(run_process(command, ALL_CORES, environ | more, place))
            return psutil.Process(process.pid)

        ports = [unused_port() for _ in range(gateways)]
        serving = []
        for number, port in enumerate(ports):  # the first one creates the tables and the key
            serving.append(run(f"gateway-{number}", "serve", "--port", str(port), PENSTOCK_WORKER="false"))
            wait_for_port(port)
        working = [run(f"worker-{number}", "worker") for number in range(workers)]
        for number in range(workers):
            wait_for_text(folder / f"worker-{number}" / "output.txt", "Penstock worker is running")
        output = (folder / "gateway-0" / "output.txt").read_text()
        key = re.search(r"^ +(pk_\S+)", output, re.MULTILINE)
        assert key, output
        processes = {"gateways": serving, "workers": working, "S3 server": _children_that_serve_s3()}
        webhook_url = f"http://127.0.0.1:{lab_port}/in"
        yield Cluster(database, ports, processes, key[1], observed, webhook_url)


def wait_for_text(file: Path, text: str) -> None:
    deadline = time.monotonic() + LIMIT_SECONDS
    while text not in file.read_text():
        assert time.monotonic() < deadline, file.read_text()
        time.sleep(0.05)


def _children_that_serve_s3() -> list[psutil.Process]:
    return [child for child in psutil.Process().children() if "rclone" in child.name()]


# ----------------------------------------------------------------------------------------------------------- measuring

KINDS = ("chat", "image", "videos")


@dataclass
class Measured:
    """What one kind of call, or all kinds together, took in each round."""

    counts: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0
    used: dict[str, float] = field(default_factory=lambda: dict.fromkeys(PARTS, 0.0))  # processor time by part

    async def add(self, cluster: Cluster, load: Awaitable[Counter[str]], idle: dict[str, float]) -> None:
        before = cluster.processor_seconds()
        started = time.monotonic()
        self.counts += await load
        elapsed = time.monotonic() - started
        after = cluster.processor_seconds()
        self.seconds += elapsed
        for part in PARTS:
            self.used[part] += max(0.0, after[part] - before[part] - idle[part] * elapsed)


async def measure(cluster: Cluster, options: argparse.Namespace) -> None:
    before = cluster.processor_seconds()
    await asyncio.sleep(options.seconds)
    after = cluster.processor_seconds()
    idle = {part: (after[part] - before[part]) / options.seconds for part in PARTS}
    idle["provider and callers"] = 0.0
    loads = [*((kind,) for kind in KINDS), KINDS]
    measured = [Measured() for _ in loads]
    await cluster.load(KINDS, min(2.0, options.seconds), options.callers)  # not counted
    for _ in range(options.rounds):
        for wanted, found in zip(loads, measured, strict=True):
            await found.add(cluster, cluster.load(wanted, options.seconds, options.callers), idle)
    *alone, mixed = measured
    costs = {
        kind: {part: found.used[part] / found.counts[kind] for part in PARTS}
        for kind, found in zip(KINDS, alone, strict=True)
    }
    print_costs(costs, alone, idle)
    print_mix(costs, mixed)
    if options.costs:
        options.costs.write_bytes(msgspec.json.format(msgspec.json.encode({"idle": idle, "calls": costs})))


def print_costs(costs: dict[str, dict[str, float]], alone: Sequence[Measured], idle: dict[str, float]) -> None:
    print(f"{'processor time of a call, ms':24}{'calls/s':>10}" + "".join(f"{part:>22}" for part in PARTS))
    for kind, found in zip(KINDS, alone, strict=True):
        figures = "".join(f"{costs[kind][part] * 1e3:22.2f}" for part in PARTS)
        print(f"{kind:24}{found.counts[kind] / found.seconds:10.0f}{figures}")
    print(f"{'idle, ms a second':34}" + "".join(f"{idle[part] * 1e3:22.2f}" for part in PARTS))


def print_mix(costs: dict[str, dict[str, float]], mixed: Measured) -> None:
    rates = ", ".join(f"{kind} {mixed.counts[kind] / mixed.seconds:.0f}" for kind in KINDS)
    print(f"all together, calls a second: {rates}")
    predicted = {part: sum(mixed.counts[kind] * costs[kind][part] for kind in KINDS) for part in PARTS}
    for part in PARTS:
        ratio = mixed.used[part] / predicted[part] if predicted[part] else 0.0
        print(f"  {part:22} predicted {predicted[part]:7.2f} s, measured {mixed.used[part]:7.2f} s, ratio {ratio:.2f}")


async def main(options: argparse.Namespace, server: str) -> None:
    observed = lab()
    loop = asyncio.get_running_loop()
    provider = await loop.create_server(lambda: Connection(observed), "127.0.0.1", 0, backlog=4096)
    port = provider.sockets[0].getsockname()[1]
    with start(server, options.gateways, options.workers, port, observed) as cluster:
        await measure(cluster, options)
    provider.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gateways", type=int, default=3)
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=10, help="for each measurement of each round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--callers", type=int, default=8, help="of each kind at each gateway")
    parser.add_argument("--costs", type=Path, help="a file for the costs of a call")
    parser.add_argument("--short", action="store_true")
    given = parser.parse_args()
    if given.short:
        given.seconds, given.rounds, given.callers = 1.0, 1, 2
    with postgres.server(postgres.COMMON) as url:
        with psycopg.connect(f"{url}/postgres", autocommit=True) as connection:
            connection.execute("CREATE DATABASE cluster")
        uvloop.run(main(given, url))
