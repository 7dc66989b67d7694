"""Measure ten thousand videos that one process generates at once: memory, lag of polls and webhooks, a kill.

    python -m bench.videos [--videos 10000] [--pause 20] [--finish 60] [--profile] [--short]

The gateway runs on SQLite in its own process; this process is the provider, the caller and the webhook receiver.
Videos are created, and polled every `pause` seconds, as the provider asks. The gateway is killed and started again.
Then the provider finishes the videos one after the other within `finish` seconds.

The lag of a poll is the time from the moment it was due by the gateway's clock until the provider received it. The lag
of a webhook is the time from the commit of the end, which this process sees within some milliseconds, until the message
was received.
"""

import argparse
import asyncio
import cProfile
import os
import pstats
import re
import signal
import ssl
import sys
import tempfile
import time
from bisect import bisect_left
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterable
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
EARLY_SECONDS = 0.05  # a poll may come this much before the moment it was due
WATCH_SECONDS = 0.01
MIN_POLL_SECONDS = 1.5  # a task that waits longer waits for its next poll

# ---------------------------------------------------------------------------------------------------- in the gateway


class RecordingClock(Clock):
    """Writes to a file when each poll is due."""

    def __init__(self) -> None:
        super().__init__()
        self._file = os.open(os.environ["BENCH_DUE"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    async def wait(self, event: asyncio.Event, seconds: float) -> None:
        task = asyncio.current_task()
        due = time.monotonic() + seconds
        await super().wait(event, seconds)
        if seconds > MIN_POLL_SECONDS and task is not None:
            os.write(self._file, f"{task.get_name().split()[-1]} {due:.6f}\n".encode())


def run_gateway() -> None:
    """Run `penstock serve` with that clock, and look up every name as 127.0.0.1."""
    from penstock.app import build
    from penstock.cli import main as penstock
    from penstock.net.client import HttpClient

    async def resolve_to_loopback(self: HttpClient, host: str, port: int) -> list[str]:
        return ["127.0.0.1"]

    HttpClient._resolve = resolve_to_loopback  # type: ignore[method-assign]
    if os.environ.get("BENCH_DUE"):
        build.Clock = RecordingClock  # type: ignore[attr-defined]
    if path := os.environ.get("BENCH_PROFILE"):
        _profile_between_signals(Path(path))
    penstock()


def _profile_between_signals(path: Path) -> None:
    """Profile the event loop from SIGUSR1 to SIGUSR2, by the processor time of its thread."""
    profile = cProfile.Profile(time.thread_time)

    def stop(*_: object) -> None:
        profile.disable()
        profile.dump_stats(path)

    signal.signal(signal.SIGUSR1, lambda *_: profile.enable())
    signal.signal(signal.SIGUSR2, stop)


# ---------------------------------------------------------------------------------------------- provider and receiver


@dataclass(slots=True)
class Observations:
    """What the provider and the receiver received, and when."""

    pause_seconds: float
    video: bytes = field(default_factory=mp4)
    done: set[int] = field(default_factory=set)
    created: int = 0
    polls: dict[int, list[float]] = field(default_factory=lambda: defaultdict(list))
    received: dict[str, float] = field(default_factory=dict)
    connections: int = 0  # of the provider and the receiver

    def poll_count(self, numbers: Iterable[int]) -> int:
        """How often these videos were polled so far."""
        return sum(len(self.polls[number]) for number in numbers)

    def respond(self, method: bytes, path: bytes, headers: bytes) -> bytes:
        if path == b"/in":
            message_id = re.search(rb"\nwebhook-id: (\S+)", headers)
            assert message_id is not None
            self.received.setdefault(message_id[1].decode(), time.monotonic())
            return _response(b"")
        if method == b"POST":
            self.created += 1
            return self._job_response(self.created)
        number = int(path.split(b"/")[3])
        if path.endswith(b"/content"):
            return _response(self.video, b"video/mp4")
        self.polls[number].append(time.monotonic())
        return self._job_response(number)

    def _job_response(self, number: int) -> bytes:
        status = "completed" if number in self.done else "in_progress"
        body = msgspec.json.encode({"id": str(number), "object": "video", "status": status, "progress": 10})
        return _response(body, poll_after_ms=round(self.pause_seconds * 1000))


def _response(body: bytes, content_type: bytes = b"application/json", poll_after_ms: int = 0) -> bytes:
    poll_after = b"openai-poll-after-ms: %d\r\n" % poll_after_ms if poll_after_ms else b""
    headers = b"content-type: %b\r\n%bcontent-length: %d\r\n" % (content_type, poll_after, len(body))
    return b"HTTP/1.1 200 OK\r\n%b\r\n%b" % (headers, body)


class Connection(asyncio.Protocol):
    """One connection: reads requests with their bodies and responds to each."""

    def __init__(self, observed: Observations) -> None:
        self._observed = observed
        self._received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._observed.connections += 1

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
            self._transport.write(self._observed.respond(method, path, head.lower()))  # type: ignore[attr-defined]


async def create_videos(port: int, key: str, webhook_url: str, count: int) -> None:
    """Create so many videos by several callers."""
    remaining = iter(range(count))
    fields = {"model": "video-model", "prompt": "a train crosses a bridge", "seconds": 4, "webhook_url": webhook_url}
    body = msgspec.json.encode(fields)

    async def caller() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for _ in remaining:
            writer.write(
                b"POST /compat/v1/videos HTTP/1.1\r\nhost: bench\r\ncontent-type: application/json\r\n"
                b"authorization: Bearer %b\r\ncontent-length: %d\r\n\r\n%b" % (key.encode(), len(body), body)
            )
            head = await reader.readuntil(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 202"), head
            length = re.search(rb"\ncontent-length: *(\d+)", head.lower())
            assert length is not None
            await reader.readexactly(int(length[1]))
        writer.close()

    await asyncio.gather(*(caller() for _ in range(CALLERS)))


# ------------------------------------------------------------------------------------------------------------- gateway


@dataclass(slots=True)
class Bench:
    """One run of the benchmark."""

    folder: Path
    observed: Observations
    provider_port: int
    receiver_port: int
    profile: Path | None = None  # where to write a profile of the ends
    port: int = field(default_factory=unused_port)
    key: str = ""

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def due(self) -> Path:
        return self.folder / "due"

    @asynccontextmanager
    async def run_gateway(self) -> AsyncIterator[asyncio.subprocess.Process]:
        self.data.mkdir(exist_ok=True, mode=0o700)
        (self.data / "penstock.toml").write_text(
            f"""[providers.lab]
speaks = "openai"
base_url = "http://127.0.0.1:{self.provider_port}/v1"
key_env = "BENCH_KEY"
[[providers.lab.models]]
id = "video-model"
upstream = "video-1"
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
        environ |= {"BENCH_PROFILE": str(self.profile)} if self.profile else {}
        command = (sys.executable, "-m", "bench.videos", "serve", "--port", str(self.port), "--data", str(self.data))
        process = await asyncio.create_subprocess_exec(*command, env=environ, cwd=ROOT, stdout=asyncio.subprocess.PIPE)
        assert process.stdout is not None
        try:
            async with asyncio.timeout(120):
                while not (line := (await process.stdout.readline()).decode()).startswith("Penstock listens"):
                    assert line, "the gateway ended before it listened"
                while not self.key:
                    if found := re.match(r" +(pk_\S+)", (await process.stdout.readline()).decode()):
                        self.key = found[1]
            yield process
        finally:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()

    async def create(self, count: int) -> None:
        await create_videos(self.port, self.key, f"https://{HOST}:{self.receiver_port}/in", count)

    def select(self, sql: str) -> list[tuple[str, int]]:
        connection = apsw.Connection(str(self.data / "penstock.db"), flags=apsw.SQLITE_OPEN_READONLY)
        try:
            return list(connection.execute(sql))
        finally:
            connection.close()

    def poll_lags(self) -> list[float]:
        """Return for each poll the seconds between the moment it was due and its arrival at the provider."""
        numbers = dict(self.select("SELECT request_id, CAST(upstream_id AS INTEGER) FROM attempts"))
        lags = []
        for line in self.due.read_text().splitlines():
            name, _, due = line.partition(" ")
            polled_at = self.observed.polls[numbers[name]]
            position = bisect_left(polled_at, float(due) - EARLY_SECONDS)
            if position < len(polled_at):  # otherwise the process was killed before it polled
                lags.append(max(0.0, polled_at[position] - float(due)))
        return lags

    def waits(self) -> list[tuple[float, float]]:
        """What each webhook waited for, in seconds: for the commit of the end and a place, and for the response."""
        rows = self.select(
            "SELECT started_at_ms - created_at_ms, deliveries.ended_at_ms - started_at_ms"
            " FROM deliveries JOIN messages ON messages.id = message_id"
        )
        return [(int(until) / 1000, answer / 1000) for until, answer in rows]

    async def watch_ends(self, committed: dict[str, float]) -> None:
        """Record when the message about the end of each video is first seen in the database."""
        connection = apsw.Connection(str(self.data / "penstock.db"), flags=apsw.SQLITE_OPEN_READONLY)
        last = 0
        while True:
            messages = list(connection.execute("SELECT rowid, id FROM messages WHERE rowid > ?", (last,)))
            committed.update({name: time.monotonic() for _, name in messages})
            last = max([last, *(number for number, _ in messages)])
            await asyncio.sleep(WATCH_SECONDS)


# ------------------------------------------------------------------------------------------------------------ measuring


def percentile(values: list[float], part: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * part))]


def spread(values: list[float]) -> str:
    p50 = percentile(values, 0.5)
    p99 = percentile(values, 0.99)
    return f"p50 {p50 * 1000:.0f} ms, p99 {p99 * 1000:.0f} ms, max {max(values) * 1000:.0f} ms"


async def wait_until(condition: Callable[[], bool], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "the condition was not met in time"
        await asyncio.sleep(0.02)


def print_figure(label: str, figure: str) -> None:
    print(f"{label:<44} {figure}", flush=True)


async def measure(bench: Bench, videos: int, finish_seconds: float) -> None:
    observed = bench.observed
    pause = observed.pause_seconds
    limit = 60 + videos / 20
    async with bench.run_gateway() as process:
        measured = psutil.Process(process.pid)
        await bench.create(100)  # loads modules that are imported late
        await wait_until(lambda: len(observed.polls) == 100, limit)
        empty = measured.memory_info().rss
        started = time.monotonic()
        await bench.create(videos - 100)
        print_figure(
            f"{videos} videos accepted and submitted", f"{(videos - 100) / (time.monotonic() - started):.0f} a second"
        )
        await wait_until(lambda: len(observed.polls) == videos, limit)
        await asyncio.sleep(pause)
        busy = sum(measured.cpu_times()[:2])
        await asyncio.sleep(2 * pause)
        load = (sum(measured.cpu_times()[:2]) - busy) / (2 * pause)
        full = measured.memory_info().rss
        print_figure("memory for each video", f"{(full - empty) / (videos - 100) / 1024:.1f} KiB (of {full >> 20} MiB)")
        print_figure(f"polls, {videos / pause:.0f} a second", f"{spread(bench.poll_lags())} late; {load:.0%} of a core")
        process.send_signal(signal.SIGKILL)
        await process.wait()
    before = {number: len(times) for number, times in observed.polls.items()}
    bench.due.unlink()
    started = time.monotonic()
    async with bench.run_gateway() as process:
        listening = time.monotonic() - started
        leased = "SELECT COUNT(*), MIN(lease_token) FROM generations WHERE lease_token > 1"
        await wait_until(lambda: bench.select(leased)[0][0] == videos, limit)  # type: ignore[comparison-overlap]
        resumed = time.monotonic() - started
        await wait_until(lambda: all(len(observed.polls[number]) > count for number, count in before.items()), limit)
        polled = time.monotonic() - started
        print_figure(
            "after the kill, until all videos are resumed", f"{resumed:.1f} s ({listening:.1f} s until it listens)"
        )
        print_figure("until each was polled", f"{polled:.1f} s")
        numbers = iter(sorted(before))
        measured = psutil.Process(process.pid)
        committed: dict[str, float] = {}
        watching = asyncio.create_task(bench.watch_ends(committed))
        started = time.monotonic()
        busy = sum(measured.cpu_times()[:2])
        if bench.profile:
            process.send_signal(signal.SIGUSR1)
        while len(observed.done) < videos:
            wanted = round(videos * (time.monotonic() - started) / finish_seconds)
            observed.done.update(islice(numbers, max(0, wanted - len(observed.done))))
            await asyncio.sleep(0.05)
        await wait_until(lambda: len(observed.received) == videos, limit + 2 * pause)
        took = time.monotonic() - started
        busy = sum(measured.cpu_times()[:2]) - busy
        print_figure("from the first finished to the last delivered", f"{took:.1f} s; {busy / took:.0%} of a core")
        print_figure("processor time of an end, with its polls", f"{busy / videos * 1000:.2f} ms")
        await wait_until(lambda: len(committed) == videos, limit)
        watching.cancel()
        lags = [max(0.0, observed.received[name] - at) for name, at in committed.items()]
        print_figure("webhooks", f"{spread(lags)} after the end was committed")
        await wait_until(lambda: len(bench.waits()) == videos, limit)
        print_figure("  from the end until it is sent", spread([until for until, _ in bench.waits()]))
        print_figure("  from then to the response", spread([answer for _, answer in bench.waits()]))
        if bench.profile:
            process.send_signal(signal.SIGUSR2)
            await wait_until(bench.profile.exists, limit)
            await asyncio.sleep(1)  # until it is written
            pstats.Stats(str(bench.profile)).strip_dirs().sort_stats("cumtime").print_stats(120)


async def main(videos: int, pause_seconds: float, finish_seconds: float, profile: bool = False) -> None:
    loop = asyncio.get_running_loop()
    observed = Observations(pause_seconds)
    authority = trustme.CA()
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(HOST).configure_cert(tls)
    provider = await loop.create_server(lambda: Connection(observed), "127.0.0.1", 0, backlog=4096)
    receiver = await loop.create_server(lambda: Connection(observed), "127.0.0.1", 0, ssl=tls, backlog=4096)
    with tempfile.TemporaryDirectory() as folder:
        authority.cert_pem.write_to_path(Path(folder) / "ca.pem")
        provider_port, receiver_port = (server.sockets[0].getsockname()[1] for server in (provider, receiver))
        profiled = Path(folder) / "profile" if profile else None
        bench = Bench(Path(folder), observed, provider_port, receiver_port, profiled)
        await measure(bench, videos, finish_seconds)
    provider.close()
    receiver.close()


if __name__ == "__main__":
    if sys.argv[1:2] == ["serve"]:
        run_gateway()
        sys.exit()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--videos", type=int, default=10_000)
    parser.add_argument("--pause", type=float, default=20.0, help="seconds between polls of one video")
    parser.add_argument("--finish", type=float, default=60.0, help="seconds in which the provider finishes all")
    parser.add_argument("--short", action="store_true", help="two hundred videos, in a few seconds")
    parser.add_argument("--profile", action="store_true", help="print where the time of an end goes")
    options = parser.parse_args()
    if options.short:
        uvloop.run(main(200, 2.0, 1.0))
    else:
        uvloop.run(main(options.videos, options.pause, options.finish, options.profile))
