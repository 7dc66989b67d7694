"""Streams held at once: what each takes of memory, and whether it comes back.

    python -m bench.streams [--streams 2000] [--rounds 3] [--short]

A provider in another process sends a piece of each answer every second for twenty seconds; the gateway runs with its
defaults on a core of its own. Memory is the process's own (RssAnon), read before, while all streams are open, and after
each round: it is flat when the rounds do not add up.
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

from bench.chat import _CORE, _OTHER_CORE, UPSTREAM_PORT, contenders, port_of, processor_seconds, running, wait_for

PIECES = 20


def anonymous_mib(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) / 1024
    raise ValueError("this system does not tell")


async def follow(text: bytes, port: int, opened: asyncio.Semaphore, begun: Callable[[float], None]) -> int:
    """One stream to its end; how many pieces came."""
    async with opened:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        asked = time.perf_counter()
        writer.write(text)
        head = await reader.readuntil(b"\r\n\r\n")
        if b" 200 " not in head.split(b"\r\n")[0]:
            raise RuntimeError(head.decode())
        begun(time.perf_counter() - asked)
    body = await reader.read()
    writer.close()
    if b"data: [DONE]" not in body:
        raise RuntimeError("a stream ended early")
    return body.count(b'"content":"hello "')


async def one_round(text: bytes, port: int, pid: int, streams: int) -> tuple[float, float]:
    """Memory with all of them open, and the median time to the head of an answer."""
    begun: list[float] = []
    opened, all_begun = asyncio.Semaphore(64), asyncio.Event()

    def note(seconds: float) -> None:
        begun.append(seconds)
        if len(begun) == streams:
            all_begun.set()

    following = [asyncio.ensure_future(follow(text, port, opened, note)) for _ in range(streams)]
    gone = asyncio.gather(*following)
    await asyncio.wait((asyncio.create_task(all_begun.wait()), gone), return_when=asyncio.FIRST_COMPLETED)
    ended = sum(one.done() for one in following)
    memory = anonymous_mib(pid)
    pieces = await gone
    if ended or set(pieces) != {PIECES}:
        raise RuntimeError(f"{ended} had ended before the last began; pieces: {sorted(set(pieces))}")
    return memory, statistics.median(begun)


def main(streams: int, rounds: int, pause_seconds: float) -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    penstock = next(one for one in contenders(Path()) if one.name == "penstock")
    provider = [sys.executable, "-m", "bench.upstream", str(UPSTREAM_PORT), str(PIECES), str(pause_seconds)]
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        folder = Path(other)
        with (
            running(provider, _OTHER_CORE, {}, Path(one)),
            running(penstock.command(folder), _CORE, penstock.environ, folder) as process,
        ):
            wait_for(UPSTREAM_PORT)
            port = port_of(penstock, folder)
            body = penstock.body(stream=True)
            text = (
                f"POST {penstock.path} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer {penstock.key(folder)}\r\n"
                f"content-type: application/json\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n{body}"
            ).encode()
            asyncio.run(one_round(text, port, process.pid, 10))  # loads what is loaded late
            before = anonymous_mib(process.pid)
            print(f"{'':10}{'open MiB':>10}{'KiB a stream':>14}{'after MiB':>11}{'head ms':>9}{'CPU us a piece':>16}")
            print(f"before    {before:10.0f}")
            for number in range(rounds):
                spent = processor_seconds(process.pid)
                memory, head = asyncio.run(one_round(text, port, process.pid, streams))
                spent = (processor_seconds(process.pid) - spent) / (streams * PIECES) * 1e6
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
    asked = parser.parse_args()
    main(*((100, 1, 0.2) if asked.short else (asked.streams, asked.rounds, 1.0)))
