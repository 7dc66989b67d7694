"""Measure when the first and the last byte of a streamed answer come, without a guard of outputs and with one.

    python -m bench.held_streams [--streams 20] [--rounds 3] [--short]

A provider in another process sends an answer of 200 words, one each 20 ms. `rules` is a guard that holds streams back
until it has read them, and `open` one that reads only answers that are not streamed. Figures are medians over streams
that are open at the same time, from the call to the first and the last byte of the body, and what the gateway takes of
the processor for a stream.
"""

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from bench.chat import PROVIDER_PORT, gateways, wait_for_gateway
from bench.processes import GATEWAY_CORE, LOAD_CORE, processor_seconds, run_process, wait_for_port

_RULES = '[guards.answers]\nwhen = "output"\nrules = {words = ["internal only", "project falcon"]}\n'
GUARDS: Mapping[str, str] = {"none": "", "rules": _RULES, "open": f"{_RULES}buffer_stream = false\n"}
Times = tuple[float, float]


async def read_stream(request: bytes, port: int) -> Times:
    """Read one stream; return the seconds until the first and the last byte of its body."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    started = time.perf_counter()
    writer.write(request)
    head = await reader.readuntil(b"\r\n\r\n")
    if b" 200 " not in head.split(b"\r\n")[0]:
        raise RuntimeError(head.decode())
    body = await reader.read(1)
    first = time.perf_counter() - started
    body += await reader.read()
    writer.close()
    if b"data: [DONE]" not in body:
        raise RuntimeError("a stream ended early")
    return first, time.perf_counter() - started


async def run_round(request: bytes, port: int, streams: int) -> Times:
    """The medians of streams that are open at once."""
    times = await asyncio.gather(*(read_stream(request, port) for _ in range(streams)))
    first, last = (statistics.median(each) for each in zip(*times, strict=True))
    return first, last


def measure(guard: str, streams: int, rounds: int) -> None:
    """Print a line for each round of a gateway with one of the guards."""
    penstock = next(gateway for gateway in gateways(Path()) if gateway.name == "penstock")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        command = penstock.command(folder)
        with (folder / "penstock.toml").open("a") as config:
            config.write(GUARDS[guard])
        with run_process(command, GATEWAY_CORE, penstock.environ, folder) as process:
            port = wait_for_gateway(penstock, folder)
            body = penstock.body(stream=True)
            request = (
                f"POST {penstock.path} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer {penstock.key(folder)}\r\n"
                f"content-type: application/json\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n{body}"
            ).encode()
            asyncio.run(run_round(request, port, 2))  # loads modules that are imported late
            for number in range(rounds):
                spent = processor_seconds(process.pid)
                first, last = asyncio.run(run_round(request, port, streams))
                spent = (processor_seconds(process.pid) - spent) / streams * 1000
                print(f"{guard:<8}{number + 1:>5}{first * 1000:>14.0f}{last * 1000:>14.0f}{spent:>12.1f}", flush=True)


def main(streams: int, rounds: int, chunks: int) -> None:
    provider = [sys.executable, "-m", "bench.chat_provider", str(PROVIDER_PORT), str(chunks), "0.02"]
    with tempfile.TemporaryDirectory() as folder, run_process(provider, LOAD_CORE, {}, Path(folder)):
        wait_for_port(PROVIDER_PORT)
        print(f"{'guard':<8}{'round':>5}{'first byte ms':>14}{'last byte ms':>14}{'CPU ms':>12}")
        for guard in GUARDS:
            measure(guard, streams, rounds)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--short", action="store_true")
    options = parser.parse_args()
    main(*((2, 1, 5) if options.short else (options.streams, options.rounds, 200)))
