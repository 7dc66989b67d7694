"""How long conversions take, and how long they keep the event loop waiting.

    python -m bench.pictures [--short]

First by the pool of children alone, then in a whole gateway with ten callers at once, who get base64 from a provider
that sends base64; provider and callers are processes of their own.
"""

from __future__ import annotations

import asyncio
import io
import json
import os
import random
import signal
import socket
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from PIL import Image

from bench.chat import running, wait_for
from penstock.api.asgi import AsgiApp
from penstock.api.server import serve
from penstock.app import first_start, opened_gateway, working
from penstock.imaging import convert
from penstock.imaging.formats import OUTPUT_FORMATS
from penstock.imaging.workers import WorkerPool
from penstock.settings import Settings


def photograph(side: int) -> bytes:
    """Something with large and small structure, like a picture and unlike noise."""
    dice = random.Random(7)
    image = Image.new("RGB", (side, side), "gray")
    for cell, strength in ((256, 0.5), (64, 0.4), (16, 0.2), (4, 0.1)):
        count = side // cell + 1
        layer = Image.frombytes("RGB", (count, count), dice.randbytes(3 * count * count))
        image = Image.blend(image, layer.resize((side, side), Image.Resampling.BICUBIC), strength)
    buffer = io.BytesIO()
    image.save(buffer, "PNG", compress_level=1)
    return buffer.getvalue()


class LagProbe:
    """Sleeps a millisecond, over and over: what a sleep takes beyond that, somebody with a timer waits in vain.

    Part of that is other processes on the same cores. What the loop did itself is the processor time of each of its
    turns, from one look for events to the next.
    """

    def __init__(self) -> None:
        self.lags_ms: list[float] = []
        self.turns_ms: list[float] = []
        self._selector: Any = getattr(asyncio.get_running_loop(), "_selector")  # noqa: B009 - nobody's business but ours

    async def __aenter__(self) -> LagProbe:
        self._task = asyncio.create_task(self._watch())
        self._began, self._select = time.thread_time(), self._selector.select
        self._selector.select = self._look
        return self

    async def __aexit__(self, *_: object) -> None:
        self._selector.select = self._select
        self._task.cancel()

    def _look(self, timeout: float | None = None) -> Any:
        self.turns_ms.append((time.thread_time() - self._began) * 1000)
        try:
            return self._select(timeout)
        finally:
            self._began = time.thread_time()

    async def _watch(self) -> None:
        while True:
            before = time.perf_counter()
            await asyncio.sleep(0.001)
            self.lags_ms.append((time.perf_counter() - before) * 1000 - 1)

    def __str__(self) -> str:
        ordered = sorted(self.lags_ms)
        return (
            f"timers late by {statistics.median(ordered):.2f} ms, p99 {ordered[int(len(ordered) * 0.99)]:.2f}, "
            f"worst {ordered[-1]:.2f}; longest of {len(self.turns_ms)} turns {max(self.turns_ms):.2f} ms"
        )


async def ten_at_once(children: WorkerPool, label: str, data: bytes, output_format: str) -> float:
    async with LagProbe() as probe:
        started = time.perf_counter()
        jobs = [
            children.run("pictures.convert", data=data, output_format=output_format, output_compression=80)
            for _ in range(10)
        ]
        results = await asyncio.gather(*jobs)
        seconds = time.perf_counter() - started
    made = results[0]["content_type"]
    print(f"10 x {label}: {len(data) / 1e6:.1f} MB in, {len(results[0]['data']) / 1e6:.1f} MB of {made} out")
    print(f"    {seconds:.2f} s in all; {probe}")
    return max(probe.turns_ms)


# ----------------------------------------------------------------------------------------------------- a whole gateway

_PROVIDER_PORT = 9120
_TEN_CALLERS = """
import http.client, json, sys, threading
port, key, wish = int(sys.argv[1]), sys.argv[2], json.loads(sys.argv[3])
def ask():
    line = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}
    line.request("POST", "/compat/v1/images/generations", json.dumps(wish), headers)
    answer = line.getresponse()
    body = json.loads(answer.read())
    assert answer.status == 200 and body["output_format"] == wish["output_format"], body
several = [threading.Thread(target=ask) for _ in range(10)]
[one.start() for one in several]
[one.join() for one in several]
"""


async def ten_callers(label: str, data: bytes, output_format: str) -> float:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "picture"
        file.write_bytes(data)
        provider = [sys.executable, "-m", "bench.images", "--provide", str(_PROVIDER_PORT), "--file", str(file)]
        with running(provider, ",".join(map(str, os.sched_getaffinity(0))), {}, Path(folder)):
            wait_for(_PROVIDER_PORT)
            return await _ten_callers(label, Path(folder) / "data", output_format)


async def _ten_callers(label: str, folder: Path, output_format: str) -> float:
    models = [{"id": "picture", "task": "image", "price": {"unit": "image", "usd": "0.04"}}]
    address = f"http://127.0.0.1:{_PROVIDER_PORT}/v1"
    settings = Settings(data=folder, providers={"lab": {"speaks": "openai", "base_url": address, "models": models}})
    listener = socket.create_server(("127.0.0.1", 0))
    async with opened_gateway(settings) as gateway, working(gateway):
        key = (await first_start(gateway)).key
        serving = asyncio.create_task(serve(AsgiApp(gateway), settings, lambda: None, listener=listener))
        wish = {"model": "picture", "prompt": "a pear", "response_format": "b64_json", "output_format": output_format}
        words = [str(listener.getsockname()[1]), str(key), json.dumps({**wish, "output_compression": 80})]
        command = [sys.executable, "-c", _TEN_CALLERS, *words]
        await (await asyncio.create_subprocess_exec(*command)).wait()  # children are started, modules loaded
        async with LagProbe() as probe:
            started = time.perf_counter()
            status = await (await asyncio.create_subprocess_exec(*command)).wait()
            seconds = time.perf_counter() - started
        assert status == 0, "the callers did not get what they asked for"
        print(f"10 callers, {label}\n    {seconds:.2f} s in all; {probe}", flush=True)
        os.kill(os.getpid(), signal.SIGTERM)
        await serving
    return max(probe.turns_ms)


def one_by_one(data: bytes) -> None:
    for output_format in OUTPUT_FORMATS[1:]:
        started = time.perf_counter()
        made = convert.convert(data, output_format, 80)  # type: ignore[arg-type]
        print(f"    png to {output_format:4}  {time.perf_counter() - started:6.2f} s  {len(made.data) / 1e3:8.0f} kB")
    started = time.perf_counter()
    for _ in range(10_000):
        convert.unchanged(data, "png", 100)
    print(f"    already right: {(time.perf_counter() - started) * 100:.2f} µs on the event loop, no child")


async def main(short: bool = False) -> None:
    # 1600 is the longest side that becomes an AVIF here, 2000 makes four megapixels.
    side, long_side = (400, 500) if short else (1600, 2000)
    large, small = photograph(long_side), photograph(side)
    avif = convert.convert(small, "avif", 90).data
    large_avif = convert.encode(convert.decode(large), "avif", 90).data
    print(f"one picture of {side} x {side} on one core:")
    one_by_one(small)
    async with WorkerPool() as children:
        await asyncio.gather(*(children.run("pictures.measure", data=small) for _ in range(children.workers)))
        turns = [
            await ten_at_once(children, f"{side} x {side} PNG to AVIF", small, "avif"),
            await ten_at_once(children, f"{side} x {side} AVIF to PNG", avif, "png"),
            await ten_at_once(children, f"{long_side} x {long_side} PNG to WebP", large, "webp"),
            await ten_at_once(children, f"{long_side} x {long_side} PNG to JPEG", large, "jpeg"),
        ]
    turns += [
        await ten_callers(f"{side} x {side} PNG to AVIF", small, "avif"),
        await ten_callers(f"{long_side} x {long_side} AVIF to WebP", large_avif, "webp"),
        await ten_callers(f"{long_side} x {long_side} AVIF to PNG", large_avif, "png"),
    ]
    print(f"the longest that the event loop was kept by our own work: {max(turns):.1f} ms")


if __name__ == "__main__":
    asyncio.run(main("--short" in sys.argv[1:]))
