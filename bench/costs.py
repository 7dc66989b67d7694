"""What a call costs the gateway: processor time, syncs, commits, statements and thread changes, with a profile.

    python -m bench.costs [--kind image] [--database sqlite] [--calls 2000] [--rounds 3] [--gateway PYTHON] [--company]
        [--profile]

Kinds: `chat`, `chat-stream` (in four pieces), `image` (a PNG of 64 x 64 as a URL), `image-b64` (the same as base64),
`large-image` (2.7 MB of base64).
The gateway runs in its own process; this one is the provider and the caller, with 64 calls at a time (8 of large
images). Processor time is that of the gateway's process, so other work on the machine changes it little. `--gateway`
names the Python of another installation to compare with, and may be repeated; their rounds take turns. `--company`
compares with a gateway of the same version whose calls have two labels and are spread over three accounts. `--profile`
prints the functions in which the event loop spends its time; it makes everything slower, so the figures above it mean
nothing. With `--database postgres --processes N`, N processes share the port; processor time and calls a second are
those of all of them.
"""

import argparse
import asyncio
import base64
import cProfile
import importlib
import os
import pstats
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path
from typing import Any

import msgspec

ROOT = Path(__file__).parent.parent
CONFIG = """starting_credit_usd = "1000000"
egress_allow_cidrs = ["127.0.0.0/8"]
[providers.lab]
speaks = "openai"
base_url = "http://127.0.0.1:{port}/v1"
key_env = "LAB_KEY"
[[providers.lab.models]]
id = "image-model"
task = "image"
price = {{ unit = "image", usd = "0.04" }}
[[providers.lab.models]]
id = "edit-model"
task = "edit"
price = {{ unit = "image", usd = "0.04" }}
[[providers.lab.models]]
id = "video-model"
task = "video"
price = {{ unit = "second", usd = "0.1" }}
[[providers.lab.models]]
id = "lab/gpt-x"
upstream = "gpt-x"
task = "chat"
price = {{ unit = "token", input_usd = "0.000001", output_usd = "0.000002" }}
"""  # penstock.toml, with a provider at a port of this machine
_MIB = 2**20

# ---------------------------------------------------------------------------------------------------- in the gateway


def run_gateway() -> None:
    """Run `penstock serve`, and write at SIGUSR1 what was counted so far to the file COSTS. With COSTS_PROFILE, the
    event loop is profiled from each first to each second of these signals, which come before and after a round.
    """
    names = ("syncs", "threads", "transactions", "commits", "statements", "round_trips")
    counts = dict.fromkeys(names, 0)
    _count_calls(counts)
    if os.environ.get("COSTS_LOOPBACK"):
        _look_up_loopback()
    profile = cProfile.Profile(time.thread_time)
    switch = cycle((profile.enable, profile.disable)) if os.environ.get("COSTS_PROFILE") else None

    def write(*_: object) -> None:
        Path(os.environ["COSTS"]).write_bytes(msgspec.json.encode(counts))
        if switch:
            next(switch)()

    signal.signal(signal.SIGUSR1, write)
    from penstock.cli import main as penstock

    try:
        penstock()
    finally:
        if switch:
            profile.dump_stats(os.environ["COSTS_PROFILE"])


def _count_calls(counts: dict[str, int]) -> None:
    from concurrent.futures import ThreadPoolExecutor

    import psycopg

    from penstock.store import sqlite_session, sqlite_writer

    def counted(owner: Any, name: str, label: str) -> None:
        original = getattr(owner, name)

        def call(*arguments: Any, **options: Any) -> Any:
            counts[label] += 1
            return original(*arguments, **options)

        setattr(owner, name, call)

    counted(os, "fsync", "syncs")
    counted(os, "fdatasync", "syncs")
    counted(ThreadPoolExecutor, "submit", "threads")
    with suppress(ImportError):  # an older installation
        from penstock.event_loop import LoopThreads

        counted(LoopThreads, "_call", "threads")
    counted(sqlite_writer.Writer, "write", "transactions")
    counted(sqlite_writer.Writer, "_commit", "commits")
    counted(sqlite_session.Session, "_execute", "statements")
    counted(sqlite_session.Session, "run_many", "statements")
    counted(psycopg.AsyncCursor, "execute", "statements")
    counted(psycopg.AsyncCursor, "executemany", "statements")
    with suppress(ImportError):  # an older installation
        from penstock.store import postgres_session

        counted(postgres_session.PostgresConnection, "run_together", "round_trips")
        counted(postgres_session.PostgresConnection, "_bind", "statements")


def _look_up_loopback() -> None:
    """Look up every name as 127.0.0.1."""
    try:
        client: Any = importlib.import_module("penstock.net.client").HttpClient
    except ImportError:  # an older installation
        client = importlib.import_module("penstock.wire").Wire

    async def resolve(self: Any, host: str, port: int) -> list[str]:
        return ["127.0.0.1"]

    client._resolve = resolve


# --------------------------------------------------------------------------------------------------- provider, caller


def child_processes(pid: int) -> list[int]:
    """The processes that a process has started."""
    children = [Path(task, "children").read_text().split() for task in Path(f"/proc/{pid}/task").iterdir()]
    return [int(child) for found in children for child in found]


def small_png() -> bytes:
    from tests.fake_providers.scripted import png

    return png(64, 64)


@dataclass(frozen=True)
class Kind:
    """A kind of call: its path, its body and what the provider responds."""

    path: str
    body: dict[str, Any]
    response: bytes
    callers: int = 64
    pieces: tuple[bytes, ...] = ()  # of a streamed response, instead of a whole one


def kinds() -> dict[str, Kind]:
    from bench.images import sample_image

    def image(data: bytes, callers: int = 64, **fields: str) -> Kind:
        response = b'{"created":1794709785,"data":[{"b64_json":"' + base64.b64encode(data) + b'"}]}'
        body = {"model": "image-model", "prompt": "a pear", "size": "1024x1024", **fields}
        return Kind("/compat/v1/images/generations", body, response, callers)

    chat = (
        b'{"id":"chatcmpl-1","object":"chat.completion","created":1794709785,"model":"gpt-x","choices":[{"index":0,'
        b'"message":{"role":"assistant","content":"Hello! How can I help you today?"},"finish_reason":"stop"}],'
        b'"usage":{"prompt_tokens":9,"completion_tokens":9,"total_tokens":18}}'
    )
    chunk = (
        b'data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1794709785,"model":"gpt-x",'
        b'"choices":[%b]%b}\n\n'
    )
    words = [b'{"index":0,"delta":{"content":"%b"},"finish_reason":null}' % word for word in (b"Hello", b"! How", b"?")]
    usage = b',"usage":{"prompt_tokens":9,"completion_tokens":9,"total_tokens":18}'
    end = chunk % (b'{"index":0,"delta":{},"finish_reason":"stop"}', b"") + chunk % (b"", usage) + b"data: [DONE]\n\n"
    messages = [{"role": "user", "content": "hello"}]
    chat_body = {"model": "lab/gpt-x", "messages": messages}
    pieces = (*[chunk % (word, b"") for word in words], end)
    return {
        "chat": Kind("/compat/v1/chat/completions", chat_body, chat),
        "chat-stream": Kind("/compat/v1/chat/completions", {**chat_body, "stream": True}, b"", pieces=pieces),
        "image": image(small_png(), response_format="url"),
        "image-b64": image(small_png(), response_format="b64_json"),
        "large-image": image(sample_image(), 8, response_format="b64_json"),
    }


class Provider(asyncio.Protocol):
    """Responds to every request at once, or piece by piece in as many rounds of the event loop."""

    response = b""
    pieces: tuple[bytes, ...] = ()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._received = b""

    def data_received(self, data: bytes) -> None:
        self._received += data
        while (end := self._received.find(b"\r\n\r\n")) >= 0:
            length = re.search(rb"content-length: *(\d+)", self._received[:end].lower())
            size = end + 4 + int(length[1] if length else 0)
            if len(self._received) < size:
                return
            self._received = self._received[size:]
            if self.pieces:
                self._write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
                self._write_pieces(iter(self.pieces))
                continue
            head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
            self._write(head % len(self.response) + self.response)

    def _write(self, data: bytes) -> None:
        self._transport.write(data)  # type: ignore[attr-defined]

    def _write_pieces(self, left: Iterator[bytes]) -> None:
        if piece := next(left, None):
            self._write(b"%x\r\n%b\r\n" % (len(piece), piece))
            asyncio.get_running_loop().call_soon(self._write_pieces, left)
        else:
            self._write(b"0\r\n\r\n")


LABELS = "x-service-labels: customer=acme,project=spring\r\n"


def adopt(installation: "Installation") -> None:
    """Declare two labels, which every call has from now on, and add two accounts to the one of the environment."""
    headers = {"authorization": f"Bearer {installation.key}", "content-type": "application/json"}
    labels = {"declared_labels": [{"name": "customer", "budget": True}, {"name": "project"}]}
    accounts = [{"provider": "lab", "name": name, "credential": f"{name}-credential"} for name in ("east", "west")]
    for method, path, body in (("PUT", "labels", labels), *(("POST", "accounts", account) for account in accounts)):
        url = f"http://127.0.0.1:{installation.port}/v1/{path}"
        asked = urllib.request.Request(url, msgspec.json.encode(body), headers, method=method)
        with urllib.request.urlopen(asked):
            pass
    installation.headers = LABELS


async def call(port: int, key: str, kind: Kind, calls: int, headers: str = "") -> None:
    """Make so many calls with so many callers at a time."""
    body = msgspec.json.encode(kind.body)
    request = (
        f"POST {kind.path} HTTP/1.1\r\nhost: bench\r\nauthorization: Bearer {key}\r\n{headers}"
        f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    ).encode() + body
    remaining = iter(range(calls))

    async def caller() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=4 * _MIB)
        for _ in remaining:
            writer.write(request)
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            if kind.pieces:
                assert head.startswith(b"http/1.1 200"), head
                await reader.readuntil(b"\r\n0\r\n\r\n")
                continue
            length = re.search(rb"content-length: *(\d+)", head)
            response = await reader.readexactly(int(length[1] if length else 0))
            assert head.startswith(b"http/1.1 200"), response[:500]
        writer.close()

    await asyncio.gather(*(caller() for _ in range(kind.callers)))


# ------------------------------------------------------------------------------------------------------- measurement


@dataclass
class Installation:
    """A gateway process of one installation, and what its rounds cost."""

    python: str
    port: int
    process: "subprocess.Popen[str]"
    folder: Path
    key: str
    headers: str = ""  # of each call
    microseconds: list[float] = field(default_factory=list)
    calls_per_second: list[float] = field(default_factory=list)
    counts: dict[str, float] = field(default_factory=dict)
    threads: Counter[str] = field(default_factory=Counter)

    def processor_seconds(self) -> float:
        """Processor time of the gateway: of its process, and of the processes that share its port."""
        processes = [self.process.pid, *child_processes(self.process.pid)]
        stats = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in processes]
        return sum(int(fields[11]) + int(fields[12]) for fields in stats) / os.sysconf("SC_CLK_TCK")

    def thread_ticks(self) -> Counter[str]:
        """Processor time by the names of the gateway's threads, in ticks of the system's clock."""
        found = Counter[str]()
        for task in Path(f"/proc/{self.process.pid}/task").iterdir():
            name, _, rest = (task / "stat").read_text().partition("(")[2].rpartition(")")
            fields = rest.split()
            name = "event loop" if task.name == str(self.process.pid) else name
            found[name + " user"] += int(fields[11])
            found[name + " system"] += int(fields[12])
        return found

    def read_counts(self) -> dict[str, int]:
        """What was counted so far; nothing in an installation that cannot count."""
        file = self.folder / "costs"
        file.unlink(missing_ok=True)
        os.kill(self.process.pid, signal.SIGUSR1)
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            with suppress(OSError, msgspec.DecodeError):
                return dict(msgspec.json.decode(file.read_bytes()))
            time.sleep(0.01)
        raise TimeoutError("the gateway does not tell what it counted")

    @property
    def peak_mib(self) -> float:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0]) / 1024


@contextmanager
def start(
    python: str,
    provider_port: int,
    database: str,
    profile: bool,
    variables: Mapping[str, str] | None = None,
    show_profile: Callable[[Path], None] | None = None,
    program: str = "bench.costs",
) -> Iterator[Installation]:
    """Run a gateway, with more environment variables if given, by the `serve` of this program or another one. A profile
    is shown with `print_profile` or another function.
    """
    from tests.ports import unused_port

    port = unused_port()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "penstock.toml").write_text(CONFIG.format(port=provider_port))
        environ = {name: value for name, value in os.environ.items() if not name.startswith("PENSTOCK_")}
        environ |= {"LAB_KEY": "x", "COSTS": str(folder / "costs"), "PYTHONPATH": str(ROOT)}
        environ |= {"PENSTOCK_PROVENANCE": "off"}  # bench/provenance.py has what seals cost
        environ |= {"PENSTOCK_DATABASE": database} if database else {}
        environ |= {"COSTS_PROFILE": str(folder / "profile")} if profile else {}
        environ |= variables or {}
        command = [python, "-m", program, "serve", "--port", str(port), "--data", name]
        with (
            (folder / "log").open("w") as log,
            subprocess.Popen(command, env=environ, cwd=name, stdout=subprocess.PIPE, stderr=log, text=True) as process,
        ):
            try:
                assert process.stdout is not None
                key = next((line.strip() for line in process.stdout if line.startswith("    pk_")), "")
                assert key, "the gateway ended before it listened"
                yield Installation(python, port, process, folder, key)
                process.terminate()
                process.wait(30)
                if profile:
                    (show_profile or print_profile)(folder / "profile")
            finally:
                process.kill()


def print_profile(file: Path, lines: int = 150) -> None:
    stats = pstats.Stats(str(file)).strip_dirs()
    for order in ("tottime", "cumtime"):
        stats.sort_stats(order).print_stats(lines)


async def measure(options: argparse.Namespace, databases: list[str]) -> None:
    kind = kinds()[options.kind]
    Provider.response = kind.response
    Provider.pieces = kind.pieces
    server = await asyncio.get_running_loop().create_server(Provider, "127.0.0.1", 0, backlog=4096)
    provider_port = server.sockets[0].getsockname()[1]
    pythons = [sys.executable, *([sys.executable] if options.company else ()), *(options.gateway or ())]
    variables = {"PENSTOCK_PROCESSES": str(options.processes)} if options.processes > 1 else None
    with ExitStack() as stack:
        installed = [
            stack.enter_context(start(python, provider_port, database, options.profile, variables))
            for python, database in zip(pythons, databases, strict=True)
        ]
        if options.company:
            await asyncio.to_thread(adopt, installed[1])
        for installation in installed:
            few = max(100, options.calls // 5)
            await call(installation.port, installation.key, kind, few, installation.headers)  # not counted
        for _ in range(options.rounds):
            for installation in installed:
                before = installation.read_counts()
                busy = installation.processor_seconds()
                threads = installation.thread_ticks()
                started = time.perf_counter()
                await call(installation.port, installation.key, kind, options.calls, installation.headers)
                used = installation.processor_seconds() - busy
                installation.calls_per_second.append(options.calls / (time.perf_counter() - started))
                after = installation.read_counts()
                installation.microseconds.append(used / options.calls * 1e6)
                installation.threads = installation.thread_ticks() - threads
                installation.counts = {name: (after[name] - before[name]) / options.calls for name in after}
        print(f"{options.kind}, {options.database}, {options.rounds} rounds of {options.calls} calls")
        for installation in installed:
            spread = f"{min(installation.microseconds):.0f}-{max(installation.microseconds):.0f}"
            counts = ", ".join(f"{name} {count:.2f}" for name, count in installation.counts.items())
            median = statistics.median(installation.microseconds)
            print(f"{installation.python}{', labels and accounts' if installation.headers else ''}")
            print(f"  {median:.0f} µs a call ({spread}); {counts}; {installation.peak_mib:.0f} MiB")
            print(f"  {statistics.median(installation.calls_per_second):.0f} calls a second")
            for name, ticks in installation.threads.most_common(8):
                print(f"    {name:30} {ticks / os.sysconf('SC_CLK_TCK') / options.calls * 1e6:6.0f} µs")
    server.close()


def main(options: argparse.Namespace) -> None:
    import uvloop

    count = 1 + options.company + len(options.gateway or ())
    if options.database == "sqlite":
        uvloop.run(measure(options, [""] * count))
        return
    import psycopg

    from tests import postgres

    with postgres.server(postgres.COMMON) as url:
        with psycopg.connect(f"{url}/postgres", autocommit=True) as connection:
            for number in range(count):
                connection.execute(f"CREATE DATABASE bench_{number}".encode())
        uvloop.run(measure(options, [f"{url}/bench_{number}" for number in range(count)]))


if __name__ == "__main__":
    if sys.argv[1:2] == ["serve"]:
        run_gateway()
        sys.exit()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kind", default="image", choices=("chat", "chat-stream", "image", "image-b64", "large-image"))
    parser.add_argument("--database", default="sqlite", choices=("sqlite", "postgres"))
    parser.add_argument("--calls", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--gateway", action="append", metavar="PYTHON")
    parser.add_argument("--company", action="store_true")
    parser.add_argument("--profile", action="store_true")
    main(parser.parse_args())
