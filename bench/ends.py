"""What the end of a video costs the gateway: processor time, transactions, statements, syncs and thread changes.

    python -m bench.ends [--videos 400] [--rounds 3] [--pause 3] [--gateway PYTHON] [--profile]

Videos are created first, which is not counted. Then the provider finishes all of them: each is polled once, its file is
downloaded and stored, its cost captured, and its webhook delivered over TLS. The gateway runs on SQLite in its own
process; this one is the provider, the caller and the receiver. `--gateway` names the Python of another installation to
compare with, and may be repeated; their rounds take turns. `--profile` prints which part of an end takes how much of
the event loop's time; it makes everything slower, so the figures above it mean nothing.
"""

import argparse
import asyncio
import os
import pstats
import ssl
import statistics
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

import trustme
import uvloop

from bench.costs import Installation, print_profile, start
from bench.videos import HOST, Connection, Observations, create_videos, wait_until

_SETTLE_SECONDS = 0.3
# Functions of the gateway whose time is shown in a profile: a part, the file and the function. None calls another one.
PARTS = (
    ("poll: whether a cancel was requested", "polling.py", "_cancel_if_requested"),
    ("poll: the call and its result", "client.py", "_poll_once"),
    ("file: download", "provider_files.py", "write"),
    ("file: check and digest", "download.py", "finish"),
    ("file: storing", "transfer.py", "_put"),
    ("result, price, signed URL and message", "finish.py", "complete"),
    ("transactions", "sqlite_writer.py", "_run_pump"),
    ("webhook: secret and signature", "sender.py", "_headers"),
    ("webhook: address and call", "client.py", "post_guarded"),
    ("webhook: TLS handshakes", "ssl.py", "do_handshake"),
    ("webhook: result", "deliveries.py", "_record"),
)


class Ends:
    """The ends of the videos of several installations, which take turns."""

    def __init__(self, observed: Observations, receiver_port: int) -> None:
        self._observed = observed
        self._webhook_url = f"https://{HOST}:{receiver_port}/in"

    async def measure(self, installation: Installation, videos: int) -> None:
        """Create videos, and count what their ends cost."""
        observed = self._observed
        first = observed.created + 1
        await create_videos(installation.port, installation.key, self._webhook_url, videos)
        numbers = range(first, first + videos)
        await wait_until(lambda: observed.created == numbers[-1], 60 + videos / 10)
        await asyncio.sleep(_SETTLE_SECONDS)  # until the ids of the last jobs are stored
        delivered = len(observed.received) + videos
        polls = observed.poll_count(numbers)
        connections = observed.connections
        before = installation.read_counts()
        busy = installation.processor_seconds()
        threads = installation.thread_ticks()
        started = time.monotonic()
        observed.done.update(numbers)
        await wait_until(lambda: len(observed.received) >= delivered, 60 + videos / 10)
        used = installation.processor_seconds() - busy
        installation.calls_per_second.append(videos / (time.monotonic() - started))
        installation.threads += installation.thread_ticks() - threads
        installation.microseconds.append(used / videos * 1e6)
        after = installation.read_counts()
        installation.counts = {name: (after[name] - before[name]) / videos for name in after}
        installation.counts["connections"] = (observed.connections - connections) / videos
        installation.counts["polls"] = (observed.poll_count(numbers) - polls) / videos


async def main(options: argparse.Namespace) -> None:
    loop = asyncio.get_running_loop()
    observed = Observations(options.pause)
    authority = trustme.CA()
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(HOST).configure_cert(tls)
    provider = await loop.create_server(lambda: Connection(observed), "127.0.0.1", 0, backlog=4096)
    receiver = await loop.create_server(lambda: Connection(observed), "127.0.0.1", 0, ssl=tls, backlog=4096)
    provider_port, receiver_port = (server.sockets[0].getsockname()[1] for server in (provider, receiver))
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        authority.cert_pem.write_to_path(folder / "ca.pem")
        variables = {
            "COSTS_LOOPBACK": "1",
            "PENSTOCK_CA_FILE": str(folder / "ca.pem"),
            "PENSTOCK_EGRESS_ALLOW_HOSTS": HOST,
            "PENSTOCK_LOG_LEVEL": "warning",
        }
        installed = [
            stack.enter_context(start(python, provider_port, "", options.profile, variables, print_parts))
            for python in (sys.executable, *(options.gateway or ()))
        ]
        ends = Ends(observed, receiver_port)
        for installation in installed:
            await ends.measure(installation, 50)
            installation.microseconds.clear()
            installation.threads.clear()
        for _ in range(options.rounds):
            for installation in installed:
                await ends.measure(installation, options.videos)
        print(f"{options.rounds} rounds of {options.videos} videos")
        for installation in installed:
            print_installation(installation, options.rounds * options.videos)
    provider.close()
    receiver.close()


def print_parts(file: Path) -> None:
    """Print how the event loop's time is divided among the parts of an end, and then all functions."""
    stats = pstats.Stats(str(file)).strip_dirs()
    functions: dict[tuple[str, str], float] = {}
    for (name, _, function), (_, _, _, seconds, _) in stats.stats.items():  # type: ignore[attr-defined]
        functions[name, function] = max(seconds, functions.get((name, function), 0.0))
    rest = stats.total_tt  # type: ignore[attr-defined]
    for part, name, function in PARTS:
        seconds = functions.get((name, function), 0.0)
        rest -= seconds
        print(f"    {part:40} {seconds / stats.total_tt:5.1%}")  # type: ignore[attr-defined]
    print(f"    {'the rest: tasks, timers and callbacks':40} {rest / stats.total_tt:5.1%}")  # type: ignore[attr-defined]
    print_profile(file)


def print_installation(installation: Installation, videos: int) -> None:
    ends = installation.microseconds
    counts = ", ".join(f"{name} {count:.2f}" for name, count in installation.counts.items())
    median = statistics.median(ends)
    print(f"{installation.python}\n  {median:.0f} µs an end ({min(ends):.0f}-{max(ends):.0f}); {counts}")
    for name, ticks in installation.threads.most_common(10):
        print(f"    {name:30} {ticks / os.sysconf('SC_CLK_TCK') / videos * 1e6:6.0f} µs")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--videos", type=int, default=400)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--pause", type=float, default=3.0, help="seconds between polls of one video")
    parser.add_argument("--gateway", action="append", metavar="PYTHON")
    parser.add_argument("--profile", action="store_true")
    uvloop.run(main(parser.parse_args()))
