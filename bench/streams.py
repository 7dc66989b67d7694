"""Measure the memory of many chat streams that are open at once, and whether it is freed afterwards.

    python -m bench.streams [--streams 2000] [--rounds 3] [--short]

A provider in another process sends a chunk of each response every second for twenty seconds; the gateway runs on its
own core with its defaults, but for the limit of connections of one address. Memory is RssAnon of the process, read
before, while all streams are open, and after each round.
"""

import argparse
import asyncio
import gc
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from bench.chat import PROVIDER_PORT, gateways, wait_for_gateway
from bench.processes import (
    GATEWAY_CORE,
    LOAD_CORE,
    create_organizations,
    processor_seconds,
    run_process,
    wait_for_port,
)

CHUNKS = 20
ORGANIZATIONS = 4  # alone, one may have half of all connections
_LIMITS = {"PENSTOCK_CONNECTIONS_PER_ADDRESS": "10000"}  # all streams come from one address


def anonymous_mib(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) / 1024
    raise ValueError("the system does not report RssAnon")


async def read_stream(request: bytes, port: int, slots: asyncio.Semaphore, report: Callable[[float], None]) -> int:
    """Read one stream to its end and return the number of chunks; report the seconds until its head came."""
    async with slots:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        started = time.perf_counter()
        writer.write(request)
        head = await reader.readuntil(b"\r\n\r\n")
        if b" 200 " not in head.split(b"\r\n")[0]:
            raise RuntimeError(head.decode())
        report(time.perf_counter() - started)
    body = await reader.read()
    writer.close()
    if b"data: [DONE]" not in body:
        raise RuntimeError("a stream ended early")
    return body.count(b'"content":"hello "')


async def run_round(requests: list[bytes], port: int, pid: int, streams: int) -> tuple[float, float]:
    """Return the memory while all streams are open, and the median seconds until the head of a response."""
    times: list[float] = []
    slots = asyncio.Semaphore(64)
    all_open = asyncio.Event()

    def report(seconds: float) -> None:
        times.append(seconds)
        if len(times) == streams:
            all_open.set()

    turns = [requests[number % len(requests)] for number in range(streams)]
    reading = [asyncio.ensure_future(read_stream(request, port, slots, report)) for request in turns]
    all_ended = asyncio.gather(*reading)
    await asyncio.wait((asyncio.create_task(all_open.wait()), all_ended), return_when=asyncio.FIRST_COMPLETED)
    ended = sum(stream.done() for stream in reading)
    memory = anonymous_mib(pid)
    chunks = await all_ended
    if ended or set(chunks) != {CHUNKS}:
        raise RuntimeError(f"{ended} ended before the last one was open; chunks: {sorted(set(chunks))}")
    return memory, statistics.median(times)


def main(streams: int, rounds: int, pause_seconds: float) -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    penstock = next(gateway for gateway in gateways(Path()) if gateway.name == "penstock")
    provider = [sys.executable, "-m", "bench.chat_provider", str(PROVIDER_PORT), str(CHUNKS), str(pause_seconds)]
    with tempfile.TemporaryDirectory() as provider_folder, tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with (
            run_process(provider, LOAD_CORE, {}, Path(provider_folder)),
            run_process(penstock.command(folder), GATEWAY_CORE, {**penstock.environ, **_LIMITS}, folder) as process,
        ):
            wait_for_port(PROVIDER_PORT)
            port = wait_for_gateway(penstock, folder)
            body = penstock.body(stream=True)
            requests = [
                (
                    f"POST {penstock.path} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer {key}\r\n"
                    f"content-type: application/json\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n{body}"
                ).encode()
                for key in create_organizations(folder, ORGANIZATIONS)
            ]
            asyncio.run(run_round(requests, port, process.pid, 10))  # loads modules that are imported late
            before = anonymous_mib(process.pid)
            print(f"{'':10}{'open MiB':>10}{'KiB a stream':>14}{'after MiB':>11}{'head ms':>9}{'CPU us a chunk':>16}")
            print(f"before    {before:10.0f}")
            for number in range(rounds):
                spent = processor_seconds(process.pid)
                memory, head = asyncio.run(run_round(requests, port, process.pid, streams))
                spent = (processor_seconds(process.pid) - spent) / (streams * CHUNKS) * 1e6
                gc.collect()
                after = anonymous_mib(process.pid)
                each = (memory - before) / streams * 1024
                print(
                    f"round {number + 1:<4}{memory:10.0f}{each:14.1f}{after:11.0f}{head * 1000:9.1f}{spent:16.0f}",
                    flush=True,
                )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--short", action="store_true")
    options = parser.parse_args()
    main(*((100, 1, 0.2) if options.short else (options.streams, options.rounds, 1.0)))
