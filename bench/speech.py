"""Compare speech through several gateways: the delay of the first sound, calls a second, and streams on one core.

    python -m bench.speech [--peers FOLDER] [--streams 1000] [--converted 30] [--short]

The provider, in another process, sends sound as a vendor does: 20 pieces of 4 kB, one each 20 ms; short calls get 8 kB
at once; at the pace of speech, a piece of MP3 comes each 256 ms and one of WAV each 85 ms. The streams that are open at
once belong to four organizations, because one alone may have half of the connections. Each gateway runs on one core
with its children, the provider and the load share the other. Penstock checks the key, holds the price of the
characters, and writes a durable record and a capture for every call. FOLDER contains `ll`, a virtual environment with
`litellm[proxy]`. The forwarder is Penstock's HTTP server and client and nothing else (see forwarder.py).
"""

import argparse
import asyncio
import os
import resource
import statistics
import struct
import sys
import tempfile
import time
from array import array
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from math import sin
from pathlib import Path

import msgspec
import uvloop

from bench.neighbours import Waits, neighbour
from bench.processes import (
    GATEWAY_CORE,
    LOAD_CORE,
    create_key,
    create_organizations,
    processor_seconds,
    run_process,
    serve_command,
    wait_for_port,
)
from bench.streams import ORGANIZATIONS, anonymous_mib

PROVIDER_PORT = 9110
GATEWAY_PORT = 9111
PIECES = 20
PIECE_BYTES = 4096
SHORT_BYTES = 8192
# By the text of a call: how many bytes at once, how many pieces, and the seconds between them.
PACES = {
    "short": (SHORT_BYTES, 1, 0.0),
    "quick": (PIECE_BYTES, PIECES, 0.02),
    "spoken": (PIECE_BYTES, PIECES, 0.256),
    "brief": (PIECE_BYTES, PIECES, 0.02),
    "samples": (PIECE_BYTES, 3 * PIECES, PIECE_BYTES / 48_000),
}
_AS_WAV = ("brief", "samples")
_GAP_SECONDS = 0.1
_HEALTH = {"health": ("GET", "/healthz", None, 0.002)}
_ANY = 0xFFFFFFFF  # the size of a WAV whose length is not known yet


@dataclass(frozen=True)
class Gateway:
    """How to start a gateway and how to call it."""

    name: str
    command: Callable[[Path], list[str]]
    path: str
    key: Callable[[Path], str] = lambda folder: "x"
    environ: dict[str, str] = field(default_factory=dict)
    fields: dict[str, object] = field(default_factory=dict)

    def request(self, key: str, text: str, **fields: object) -> bytes:
        body = msgspec.json.encode({"model": "lab/tts", "voice": "alloy", "input": text, **self.fields, **fields})
        head = f"POST {self.path} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer {key}\r\n"
        return f"{head}content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body


def gateways(peers: Path) -> list[Gateway]:
    found = [
        Gateway("forwarder", _forwarder, "/v1/audio/speech", fields={"stream": True}),
        Gateway("penstock", _penstock, "/compat/v1/audio/speech", create_key, {"LAB_KEY": "x"}),
    ]
    if (peers / "ll/bin/litellm").exists():
        environ = {"LITELLM_MASTER_KEY": "sk-bench", "LITELLM_LOG": "ERROR"}
        command = partial(_litellm, peers=peers)
        found.append(Gateway("litellm", command, "/v1/audio/speech", lambda folder: "sk-bench", environ))
    return found


# ------------------------------------------------------------------------------------------------------------ starting


def _forwarder(folder: Path) -> list[str]:
    url = f"http://127.0.0.1:{PROVIDER_PORT}/v1/audio/speech"
    return [sys.executable, "-m", "bench.forwarder", str(GATEWAY_PORT), url]


def _penstock(folder: Path) -> list[str]:
    (folder / "penstock.toml").write_text(
        f"""starting_credit_usd = "1000000"
sound_workers = 64
connections_per_address = 10000
[providers.lab]
speaks = "openai"
base_url = "http://127.0.0.1:{PROVIDER_PORT}/v1"
key_env = "LAB_KEY"
[[providers.lab.models]]
id = "lab/tts"
upstream = "tts"
task = "speech"
price = {{ unit = "character", usd = "0.00001" }}
"""
    )
    return serve_command(folder, GATEWAY_PORT)


def _litellm(folder: Path, peers: Path) -> list[str]:
    (folder / "litellm.yaml").write_text(
        f"""model_list:
  - model_name: lab/tts
    litellm_params: {{ model: openai/tts, api_base: "http://127.0.0.1:{PROVIDER_PORT}/v1", api_key: x }}
    model_info: {{ mode: audio_speech }}
"""
    )
    program, config = str(peers / "ll/bin/litellm"), str(folder / "litellm.yaml")
    return [program, "--config", config, "--port", str(GATEWAY_PORT), "--num_workers", "1"]


# ------------------------------------------------------------------------------------------------------------ provider


async def serve_provider(port: int) -> None:
    """Respond to every call at the pace that its text names, with MP3, or with a tone as WAV."""
    mp3 = b"ID3\x04\x00\x00\x00\x00\x00\x00" + (b"\xff\xfb\x90\xc4" + bytes(413)) * 400
    tone = array("h", (int(9000 * sin(at * 0.0576)) for at in range(24_000)))
    begin = struct.pack("<4sI8sIHHIIHH4sI", b"RIFF", _ANY, b"WAVEfmt ", 16, 1, 1, 24_000, 48_000, 2, 16, b"data", _ANY)
    wav = begin + tone.tobytes() * 6

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                request = (await reader.readuntil(b"\r\n\r\n")).lower()
                length = request.partition(b"content-length:")[2].partition(b"\r\n")[0]
                asked = msgspec.json.decode(await reader.readexactly(int(length or 0)))
                text = asked["input"].split()[0]
                size, count, pause = PACES[text]
                sound, kind = (wav, b"audio/wav") if text in _AS_WAV else (mp3, b"audio/mpeg")
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: " + kind + b"\r\ntransfer-encoding: chunked\r\n\r\n")
                for number in range(count):
                    if number:
                        await asyncio.sleep(pause)
                    writer.write(b"%x\r\n%s\r\n" % (size, sound[number * size : (number + 1) * size]))
                writer.write(b"0\r\n\r\n")
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", port, backlog=4096)
    await server.serve_forever()


# ----------------------------------------------------------------------------------------------------------- measuring


@dataclass
class Heard:
    """When the pieces of a sound came, in seconds after its call."""

    first: float
    gap: float  # the longest between two
    size_bytes: int


async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: bytes) -> Heard:
    """Make a call on an open connection and read its sound to the end."""
    started = time.perf_counter()
    writer.write(request)
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    if not head.startswith(b"http/1.1 200"):
        raise RuntimeError(head + await reader.read(500))
    length = head.partition(b"content-length:")[2].partition(b"\r\n")[0]
    heard = Heard(0.0, 0.0, 0)
    last = 0.0
    while True:
        if length:
            data = await reader.read(min(65_536, int(length) - heard.size_bytes))
        else:
            size = int(await reader.readuntil(b"\r\n"), 16)
            data = (await reader.readexactly(size + 2))[:-2]
        now = time.perf_counter() - started
        if data:
            heard.first = heard.first or now
            heard.gap = max(heard.gap, now - last if last else 0.0)
            heard.size_bytes += len(data)
            last = now
        if not data or (length and heard.size_bytes == int(length)):
            return heard


async def speak_once(port: int, request: bytes, slots: asyncio.Semaphore | None = None) -> Heard:
    async with slots or asyncio.Semaphore(1):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        return await speak(reader, writer, request)
    finally:
        writer.close()


async def first_sounds(port: int, request: bytes, calls: int) -> list[float]:
    """The milliseconds until the first sound of one call after the other, the first of which are not counted."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    heard = [await speak(reader, writer, request) for _ in range(calls + 5)]
    writer.close()
    return sorted(1000 * each.first for each in heard[5:])


async def calls_a_second(port: int, request: bytes, connections: int, seconds: float) -> float:
    until = time.perf_counter() + seconds

    async def call() -> int:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        count = 0
        while time.perf_counter() < until:
            heard = await speak(reader, writer, request)
            assert heard.size_bytes == SHORT_BYTES, heard
            count += 1
        writer.close()
        return count

    return sum(await asyncio.gather(*(call() for _ in range(connections)))) / seconds


async def open_streams(
    port: int, requests: list[bytes], streams: int, spread: float, pid: int
) -> tuple[list[Heard], float]:
    """Make so many calls at once, begun over `spread` seconds, and return what was heard and the memory meanwhile."""
    slots = asyncio.Semaphore(256)

    async def one(number: int) -> Heard:
        await asyncio.sleep(spread * number / streams)
        return await speak_once(port, requests[number % len(requests)], slots)

    running = asyncio.gather(*(one(number) for number in range(streams)))
    await asyncio.sleep(spread + 1.0)
    memory = anonymous_mib(pid)
    return await running, memory


@dataclass
class Sizes:
    """How much is measured."""

    calls: int
    seconds: float
    streams: int
    converted: int
    spoken: int  # calls of the built-in voice


def measure(gateway: Gateway, sizes: Sizes) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with run_process(gateway.command(folder), GATEWAY_CORE, gateway.environ, folder) as process:
            wait_for_port(GATEWAY_PORT)
            key = gateway.key(folder)
            quick = uvloop.run(first_sounds(GATEWAY_PORT, gateway.request(key, "quick"), sizes.calls))
            p99 = quick[int(len(quick) * 0.99)]
            print(f"{gateway.name:12}first sound {statistics.median(quick):7.2f} ms, p99 {p99:7.2f}", flush=True)
            rate = uvloop.run(calls_a_second(GATEWAY_PORT, gateway.request(key, "short"), 16, sizes.seconds))
            print(f"{gateway.name:12}short calls {rate:7.0f} a second", flush=True)
            if gateway.name == "penstock":
                _measure_streams(gateway, create_organizations(folder, ORGANIZATIONS), sizes, process.pid)
                _measure_conversion(gateway, key, sizes, process.pid)
                uvloop.run(_measure_steps(gateway, key, process.pid))
                _measure_own_voice(gateway, key, sizes)


def _measure_streams(gateway: Gateway, keys: list[str], sizes: Sizes, pid: int) -> None:
    before = anonymous_mib(pid)
    spent = processor_seconds(pid)
    requests = [gateway.request(key, "spoken") for key in keys]
    heard, memory = uvloop.run(open_streams(GATEWAY_PORT, requests, sizes.streams, 2.5, pid))
    spent = processor_seconds(pid) - spent
    late = sum(each.gap > 0.256 + _GAP_SECONDS for each in heard)
    assert all(each.size_bytes == PIECES * PIECE_BYTES for each in heard)
    each = (memory - before) / sizes.streams * 1024
    gap = 1000 * (max(each.gap for each in heard) - 0.256)
    print(
        f"{gateway.name:12}{sizes.streams} streams: {late} with a gap above 100 ms, the longest {gap:.0f} ms; "
        f"{each:.0f} KiB each; {spent / sizes.streams / (PIECES + 1) * 1e6:.0f} us of processor time a piece",
        flush=True,
    )


def _measure_conversion(gateway: Gateway, key: str, sizes: Sizes, pid: int) -> None:
    wav, mp3 = (gateway.request(key, "brief", response_format=name) for name in ("wav", "mp3"))
    passed = uvloop.run(first_sounds(GATEWAY_PORT, wav, max(5, sizes.calls // 4)))
    made = uvloop.run(first_sounds(GATEWAY_PORT, mp3, max(5, sizes.calls // 4)))
    more = statistics.median(made) - statistics.median(passed)
    print(f"{gateway.name:12}first sound of a converted stream {more:.1f} ms later", flush=True)
    mp3 = gateway.request(key, "samples", response_format="mp3")
    heard, _ = uvloop.run(open_streams(GATEWAY_PORT, [mp3], sizes.converted, 0.5, pid))
    gap = 1000 * max(each.gap for each in heard)
    print(f"{gateway.name:12}{sizes.converted} converted streams: the longest gap {gap:.0f} ms", flush=True)


async def _measure_steps(gateway: Gateway, key: str, pid: int) -> None:
    """How long the event loop answers nobody while a hundred streams are passed on and four are converted."""
    passed, converted = gateway.request(key, "spoken"), gateway.request(key, "samples", response_format="mp3")
    async with neighbour(GATEWAY_PORT, key, pid, _HEALTH) as quiet:
        await asyncio.sleep(1.0)
    async with neighbour(GATEWAY_PORT, key, pid, _HEALTH) as waits:
        await asyncio.gather(
            open_streams(GATEWAY_PORT, [passed], 100, 1.0, pid), open_streams(GATEWAY_PORT, [converted], 4, 0.5, pid)
        )
    print(
        f"{gateway.name:12}100 streams and 4 conversions: the event loop's longest step at most {_stalls(waits)}; "
        f"without calls {_stalls(quiet)}",
        flush=True,
    )


def _stalls(waits: Waits) -> str:
    found = sorted(waits.stalls)
    return f"{1000 * found[-1]:.1f} ms, p99 {1000 * found[int(len(found) * 0.99)]:.1f} ms"


def _measure_own_voice(gateway: Gateway, key: str, sizes: Sizes) -> None:
    text = "The quick brown fox jumps over the lazy dog, and the rain in Spain stays mainly in the plain. " * 4
    request = gateway.request(key, text, model="atelier/voice", response_format="pcm")
    heard = [uvloop.run(speak_once(GATEWAY_PORT, request)) for _ in range(sizes.spoken)]
    started = time.perf_counter()
    last = uvloop.run(speak_once(GATEWAY_PORT, request))
    speed = last.size_bytes / 48_000 / (time.perf_counter() - started)
    first = 1000 * statistics.median(each.first for each in heard)
    print(f"{gateway.name:12}the built-in voice: first sound {first:.0f} ms, {speed:.0f} x real time", flush=True)


def main(sizes: Sizes, peers: str) -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    os.sched_setaffinity(0, {int(LOAD_CORE)})
    with tempfile.TemporaryDirectory() as name:
        provider = [sys.executable, "-m", "bench.speech", "--provide", str(PROVIDER_PORT)]
        with run_process(provider, LOAD_CORE, {}, Path(name)):
            wait_for_port(PROVIDER_PORT)
            direct = Gateway("provider", lambda folder: [], "/v1/audio/speech")
            quick = uvloop.run(first_sounds(PROVIDER_PORT, direct.request("x", "quick"), sizes.calls))
            print(f"{'itself':12}first sound {statistics.median(quick):7.2f} ms", flush=True)
            for gateway in gateways(Path(peers)):
                measure(gateway, sizes)
            if not (Path(peers) / "ll/bin/litellm").exists():
                print("litellm is left out: no virtual environment `ll` with it under --peers")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", default="/nowhere")
    parser.add_argument("--streams", type=int, default=1000)
    parser.add_argument("--converted", type=int, default=30)
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--provide", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.provide:
        uvloop.run(serve_provider(options.provide))
    elif options.short:
        main(Sizes(calls=5, seconds=0.5, streams=20, converted=2, spoken=1), options.peers)
    else:
        full = Sizes(calls=60, seconds=5, streams=options.streams, converted=options.converted, spoken=5)
        main(full, options.peers)
