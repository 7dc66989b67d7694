"""Ten thousand videos in flight in one process: what each takes, how late polls and webhooks are, and a kill -9.

    python -m bench.videos [--videos 10000] [--pause 20] [--finish 60] [--short]

A real gateway on SQLite in a process of its own; this one is the vendor, the caller and the receiver over TLS. Videos
are made and asked about every `pause` seconds, as the vendor hints. The gateway is killed and started again. Then the
vendor finishes them one after the other within `finish` seconds.

Poll lag is from the moment a poll was due, as the gateway's own clock was told, until it reached the vendor; webhook
lag from the moment that the end was committed, as seen from outside within some milliseconds, until its news came.
"""

import argparse
import asyncio
import os
import re
import signal
import ssl
import sys
import tempfile
import time
from bisect import bisect_left
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import apsw
import msgspec
import psutil
import trustme
import uvloop

from penstock.clock import Clock
from tests.fake_providers.scripted import mp4
from tests.ports import unused_port

ROOT = Path(__file__).parent.parent
HOST = "hooks.example.com"
CALLERS = 32
EARLY_SECONDS = 0.05  # timers of the loop are as exact as a millisecond
WATCH_SECONDS = 0.01
LONG_PAUSE_SECONDS = 1.5  # whoever waits longer than this waits to poll

# ---------------------------------------------------------------------------------------------------- in the gateway


class Watched(Clock):
    """Writes down when each poll is due."""

    def __init__(self) -> None:
        super().__init__()
        self._file = os.open(os.environ["BENCH_DUE"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    async def wait(self, event: asyncio.Event, seconds: float) -> None:
        task = asyncio.current_task()
        due = time.monotonic() + seconds
        await super().wait(event, seconds)
        if seconds > LONG_PAUSE_SECONDS and task is not None:
            os.write(self._file, f"{task.get_name().split()[-1]} {due:.6f}\n".encode())


def gateway() -> None:
    """`penstock serve` with such a clock, and every name at home."""
    from penstock import app
    from penstock.cli import main as penstock
    from penstock.net.client import HttpClient

    async def at_home(self: HttpClient, host: str, port: int) -> list[str]:
        return ["127.0.0.1"]

    HttpClient._resolve = at_home  # type: ignore[method-assign]
    if os.environ.get("BENCH_DUE"):
        app.Clock = Watched  # type: ignore[misc]
    penstock()


# ------------------------------------------------------------------------------------------------- vendor and receiver


@dataclass(slots=True)
class World:
    """What the vendor and the receiver saw, and when."""

    pause_seconds: float
    film: bytes = field(default_factory=mp4)
    done: set[int] = field(default_factory=set)
    made: int = 0
    polls: dict[int, list[float]] = field(default_factory=lambda: defaultdict(list))
    arrived: dict[str, float] = field(default_factory=dict)

    def answer(self, method: bytes, path: bytes, headers: bytes) -> bytes:
        if path == b"/in":
            name = re.search(rb"\nwebhook-id: (\S+)", headers)
            assert name is not None
            self.arrived.setdefault(name[1].decode(), time.monotonic())
            return _reply(b"")
        if method == b"POST":
            self.made += 1
            return self._shown(self.made)
        number = int(path.split(b"/")[3])
        if path.endswith(b"/content"):
            return _reply(self.film, b"video/mp4")
        self.polls[number].append(time.monotonic())
        return self._shown(number)

    def _shown(self, number: int) -> bytes:
        status = "completed" if number in self.done else "in_progress"
        body = msgspec.json.encode({"id": str(number), "object": "video", "status": status, "progress": 10})
        return _reply(body, hint_ms=round(self.pause_seconds * 1000))


def _reply(body: bytes, kind: bytes = b"application/json", hint_ms: int = 0) -> bytes:
    hint = b"openai-poll-after-ms: %d\r\n" % hint_ms if hint_ms else b""
    return b"HTTP/1.1 200 OK\r\ncontent-type: %b\r\n%bcontent-length: %d\r\n\r\n%b" % (kind, hint, len(body), body)


class Line(asyncio.Protocol):
    """One connection: requests with their bodies in, answers out."""

    def __init__(self, world: World) -> None:
        self._world, self._received = world, b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._received += data
        while (end := self._received.find(b"\r\n\r\n")) >= 0:
            head = self._received[:end]
            length = re.search(rb"\ncontent-length: *(\d+)", head, re.IGNORECASE)
            size = end + 4 + (int(length[1]) if length else 0)
            if len(self._received) < size:
                return
            method, path, _ = head.split(b" ", 2)
            self._received = self._received[size:]
            self._transport.write(self._world.answer(method, path, head.lower()))  # type: ignore[attr-defined]


# ------------------------------------------------------------------------------------------------------------- gateway


@dataclass(slots=True)
class Bench:
    """One run."""

    folder: Path
    world: World
    vendor_port: int
    hook_port: int
    port: int = field(default_factory=unused_port)
    key: str = ""

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def due(self) -> Path:
        return self.folder / "due"

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[asyncio.subprocess.Process]:
        self.data.mkdir(exist_ok=True, mode=0o700)
        (self.data / "penstock.toml").write_text(
            f"""[providers.studio]
speaks = "openai"
base_url = "http://127.0.0.1:{self.vendor_port}/v1"
key_env = "BENCH_KEY"
[[providers.studio.models]]
id = "film"
upstream = "film-1"
task = "video"
price = {{ unit = "second", usd = "0.1" }}
"""
        )
        environ = {name: value for name, value in os.environ.items() if not name.startswith("PENSTOCK_")} | {
            "BENCH_KEY": "none",
            "BENCH_DUE": str(self.due),
            "PENSTOCK_CA_FILE": str(self.folder / "ca.pem"),
            "PENSTOCK_EGRESS_ALLOW_HOSTS": HOST,
            "PENSTOCK_STARTING_CREDIT_USD": "1000000",
            "PENSTOCK_LOG_LEVEL": "warning",
            "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}",
        }
        words = (sys.executable, "-m", "bench.videos", "serve", "--port", str(self.port), "--data", str(self.data))
        process = await asyncio.create_subprocess_exec(*words, env=environ, cwd=ROOT, stdout=asyncio.subprocess.PIPE)
        assert process.stdout is not None
        try:
            async with asyncio.timeout(120):
                while not (line := (await process.stdout.readline()).decode()).startswith("Penstock listens"):
                    assert line, "the gateway ended before it began"
                while not self.key:
                    if found := re.match(r" +(pk_\S+)", (await process.stdout.readline()).decode()):
                        self.key = found[1]
            yield process
        finally:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()

    async def create(self, count: int) -> None:
        """Ask for so many, some at a time."""
        left = iter(range(count))

        async def caller() -> None:
            reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
            for _ in left:
                body = msgspec.json.encode(
                    {
                        "model": "film",
                        "prompt": "a train crosses a bridge",
                        "seconds": 4,
                        "webhook_url": f"https://{HOST}:{self.hook_port}/in",
                    }
                )
                writer.write(
                    b"POST /compat/v1/videos HTTP/1.1\r\nhost: bench\r\ncontent-type: application/json\r\n"
                    b"authorization: Bearer %b\r\ncontent-length: %d\r\n\r\n%b" % (self.key.encode(), len(body), body)
                )
                head = await reader.readuntil(b"\r\n\r\n")
                assert head.startswith(b"HTTP/1.1 202"), head
                length = re.search(rb"\ncontent-length: *(\d+)", head.lower())
                assert length is not None
                await reader.readexactly(int(length[1]))
            writer.close()

        await asyncio.gather(*(caller() for _ in range(CALLERS)))

    def rows(self, sql: str) -> list[tuple[str, int]]:
        connection = apsw.Connection(str(self.data / "penstock.db"), flags=apsw.SQLITE_OPEN_READONLY)
        try:
            return list(connection.execute(sql))
        finally:
            connection.close()

    def poll_lags(self) -> list[float]:
        """For each moment that a poll was due, how long after it the vendor heard of it."""
        numbers = dict(self.rows("SELECT request_id, CAST(upstream_id AS INTEGER) FROM attempts"))
        lags = []
        for line in self.due.read_text().splitlines():
            name, _, due = line.partition(" ")
            heard = self.world.polls[numbers[name]]
            place = bisect_left(heard, float(due) - EARLY_SECONDS)
            if place < len(heard):  # else the process was killed in between
                lags.append(max(0.0, heard[place] - float(due)))
        return lags

    async def watch_ends(self, committed: dict[str, float]) -> None:
        """When each end was first to be seen in the database."""
        connection = apsw.Connection(str(self.data / "penstock.db"), flags=apsw.SQLITE_OPEN_READONLY)
        last = 0
        while True:
            found = list(connection.execute("SELECT rowid, id FROM messages WHERE rowid > ?", (last,)))
            committed.update({name: time.monotonic() for _, name in found})
            last = max([last, *(number for number, _ in found)])
            await asyncio.sleep(WATCH_SECONDS)


# ------------------------------------------------------------------------------------------------------------ measuring


def centile(values: list[float], part: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * part))]


def spread(values: list[float]) -> str:
    half, most = centile(values, 0.5), centile(values, 0.99)
    return f"p50 {half * 1000:.0f} ms, p99 {most * 1000:.0f} ms, most {max(values) * 1000:.0f} ms"


async def until(met: Callable[[], bool], seconds: float) -> float:
    """How long it took."""
    begun = time.monotonic()
    while not met():
        assert time.monotonic() - begun < seconds, "not in time"
        await asyncio.sleep(0.02)
    return time.monotonic() - begun


def say(what: str, figure: str) -> None:
    print(f"{what:<44} {figure}", flush=True)


async def measure(bench: Bench, videos: int, finish_seconds: float) -> None:
    world, pause = bench.world, bench.world.pause_seconds
    limit = 60 + videos / 20
    async with bench.serving() as process:
        watched = psutil.Process(process.pid)
        await bench.create(100)  # so that what is loaded once is loaded
        await until(lambda: len(world.polls) == 100, limit)
        empty = watched.memory_info().rss
        begun = time.monotonic()
        await bench.create(videos - 100)
        say(f"{videos} videos accepted and submitted", f"{(videos - 100) / (time.monotonic() - begun):.0f} a second")
        await until(lambda: len(world.polls) == videos, limit)
        await asyncio.sleep(pause)
        busy = sum(watched.cpu_times()[:2])
        await asyncio.sleep(2 * pause)
        load = (sum(watched.cpu_times()[:2]) - busy) / (2 * pause)
        full = watched.memory_info().rss
        say("memory for each in flight", f"{(full - empty) / (videos - 100) / 1024:.1f} KiB (of {full >> 20} MiB)")
        say(f"polls, {videos / pause:.0f} a second", f"{spread(bench.poll_lags())} late; {load:.0%} of a core")
        process.send_signal(signal.SIGKILL)
        await process.wait()
    before = {number: len(heard) for number, heard in world.polls.items()}
    bench.due.unlink()
    begun = time.monotonic()
    async with bench.serving() as process:
        listening = time.monotonic() - begun
        taken = "SELECT COUNT(*), MIN(lease_token) FROM generations WHERE lease_token > 1"
        await until(lambda: bench.rows(taken)[0][0] == videos, limit)  # type: ignore[comparison-overlap]
        driven = time.monotonic() - begun
        await until(lambda: all(len(world.polls[number]) > count for number, count in before.items()), limit)
        asked = time.monotonic() - begun
        say("killed; until all are driven again", f"{driven:.1f} s ({listening:.1f} s until it listens)")
        say("until the vendor was asked about each", f"{asked:.1f} s")
        numbers = iter(sorted(before))
        watched = psutil.Process(process.pid)
        committed: dict[str, float] = {}
        watching = asyncio.create_task(bench.watch_ends(committed))
        begun, busy = time.monotonic(), sum(watched.cpu_times()[:2])
        while len(world.done) < videos:
            wanted = round(videos * (time.monotonic() - begun) / finish_seconds)
            world.done.update(islice(numbers, max(0, wanted - len(world.done))))
            await asyncio.sleep(0.05)
        await until(lambda: len(world.arrived) == videos, limit + 2 * pause)
        took, busy = time.monotonic() - begun, sum(watched.cpu_times()[:2]) - busy
        say("from the first finished to the last delivered", f"{took:.1f} s; {busy / took:.0%} of a core")
        await until(lambda: len(committed) == videos, limit)
        watching.cancel()
        lags = [max(0.0, world.arrived[name] - at) for name, at in committed.items()]
        say("webhooks", f"{spread(lags)} after the end was committed")


async def main(videos: int, pause_seconds: float, finish_seconds: float) -> None:
    loop, world = asyncio.get_running_loop(), World(pause_seconds)
    authority = trustme.CA()
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(HOST).configure_cert(tls)
    vendor = await loop.create_server(lambda: Line(world), "127.0.0.1", 0, backlog=4096)
    receiver = await loop.create_server(lambda: Line(world), "127.0.0.1", 0, ssl=tls, backlog=4096)
    with tempfile.TemporaryDirectory() as folder:
        authority.cert_pem.write_to_path(Path(folder) / "ca.pem")
        ports = [server.sockets[0].getsockname()[1] for server in (vendor, receiver)]
        await measure(Bench(Path(folder), world, *ports), videos, finish_seconds)
    vendor.close()
    receiver.close()


if __name__ == "__main__":
    if sys.argv[1:2] == ["serve"]:
        gateway()
        sys.exit()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--videos", type=int, default=10_000)
    parser.add_argument("--pause", type=float, default=20.0, help="seconds between polls of one video")
    parser.add_argument("--finish", type=float, default=60.0, help="seconds in which the vendor finishes all")
    parser.add_argument("--short", action="store_true", help="two hundred videos, in a few seconds")
    asked = parser.parse_args()
    if asked.short:
        asked.videos, asked.pause, asked.finish = 200, 2.0, 1.0
    uvloop.run(main(asked.videos, asked.pause, asked.finish))
