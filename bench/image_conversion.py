"""Measure how long image conversions take, and how long they block the event loop.

    python -m bench.image_conversion [--short]

First in the worker pool alone, then in a whole gateway with ten callers at once, who ask for base64 from a provider
that sends base64. The provider and the callers run in their own processes.
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

from bench.processes import ALL_CORES, run_process, wait_for_port
from penstock.api.asgi import AsgiApp
from penstock.app.background import run_background_work
from penstock.app.build import build_gateway
from penstock.app.first_start import ensure_first_key
from penstock.http_server.server import serve
from penstock.imaging import convert, sniff
from penstock.imaging.formats import OUTPUT_FORMATS
from penstock.imaging.workers import WorkerPool
from penstock.settings import Settings
from penstock.values import OrgId

ORG = OrgId("org_1")


def photograph(side: int) -> bytes:
    """A PNG with large and small structures, as in a photograph."""
    random_numbers = random.Random(7)
    image = Image.new("RGB", (side, side), "gray")
    for cell, strength in ((256, 0.5), (64, 0.4), (16, 0.2), (4, 0.1)):
        count = side // cell + 1
        layer = Image.frombytes("RGB", (count, count), random_numbers.randbytes(3 * count * count))
        image = Image.blend(image, layer.resize((side, side), Image.Resampling.BICUBIC), strength)
    buffer = io.BytesIO()
    image.save(buffer, "PNG", compress_level=1)
    return buffer.getvalue()


class LagProbe:
    """Measures how late the timers of the event loop are, and the processor time of each of its turns.

    Timers are also late because of other processes on the same cores; the processor time of a turn, from one wait for
    events to the next, is only the work of this process.
    """

    def __init__(self) -> None:
        self.lags_ms: list[float] = []
        self.turns_ms: list[float] = []
        self._selector: Any = getattr(asyncio.get_running_loop(), "_selector")  # noqa: B009 - a private attribute

    async def __aenter__(self) -> LagProbe:
        self._task = asyncio.create_task(self._measure_timers())
        self._turn_started = time.thread_time()
        self._select = self._selector.select
        self._selector.select = self._measured_select
        return self

    async def __aexit__(self, *_: object) -> None:
        self._selector.select = self._select
        self._task.cancel()

    def _measured_select(self, timeout: float | None = None) -> Any:
        self.turns_ms.append((time.thread_time() - self._turn_started) * 1000)
        try:
            return self._select(timeout)
        finally:
            self._turn_started = time.thread_time()

    async def _measure_timers(self) -> None:
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


async def convert_ten(pool: WorkerPool, label: str, data: bytes, output_format: str) -> float:
    async with LagProbe() as probe:
        started = time.perf_counter()
        jobs = [
            pool.run("image.convert", data=data, output_format=output_format, output_compression=80, for_org=ORG)
            for _ in range(10)
        ]
        results = await asyncio.gather(*jobs)
        seconds = time.perf_counter() - started
    content_type = results[0]["content_type"]
    print(f"10 x {label}: {len(data) / 1e6:.1f} MB in, {len(results[0]['data']) / 1e6:.1f} MB of {content_type} out")
    print(f"    {seconds:.2f} s in all; {probe}")
    return max(probe.turns_ms)


# ----------------------------------------------------------------------------------------------------- a whole gateway

_PROVIDER_PORT = 9120
_CALLERS = """
import http.client, json, sys, threading
port, key, fields = int(sys.argv[1]), sys.argv[2], json.loads(sys.argv[3])
def call():
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}
    connection.request("POST", "/compat/v1/images/generations", json.dumps(fields), headers)
    response = connection.getresponse()
    body = json.loads(response.read())
    assert response.status == 200 and body["output_format"] == fields["output_format"], body
threads = [threading.Thread(target=call) for _ in range(10)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""


async def serve_ten_callers(label: str, data: bytes, output_format: str) -> float:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "image"
        file.write_bytes(data)
        provider = [sys.executable, "-m", "bench.images", "--provide", str(_PROVIDER_PORT), "--file", str(file)]
        with run_process(provider, ALL_CORES, {}, Path(folder)):
            wait_for_port(_PROVIDER_PORT)
            return await _run_gateway(label, Path(folder) / "data", output_format)


async def _run_gateway(label: str, folder: Path, output_format: str) -> float:
    models = [{"id": "image-model", "task": "image", "price": {"unit": "image", "usd": "0.04"}}]
    base_url = f"http://127.0.0.1:{_PROVIDER_PORT}/v1"
    settings = Settings(data=folder, providers={"lab": {"speaks": "openai", "base_url": base_url, "models": models}})
    listener = socket.create_server(("127.0.0.1", 0))
    async with build_gateway(settings) as gateway, run_background_work(gateway):
        key = (await ensure_first_key(gateway)).key
        serving = asyncio.create_task(serve(AsgiApp(gateway), settings, lambda: None, listener=listener))
        fields = {
            "model": "image-model",
            "prompt": "a pear",
            "response_format": "b64_json",
            "output_format": output_format,
            "output_compression": 80,
        }
        arguments = [str(listener.getsockname()[1]), str(key), json.dumps(fields)]
        command = [sys.executable, "-c", _CALLERS, *arguments]
        await (await asyncio.create_subprocess_exec(*command)).wait()  # starts the worker processes, loads modules
        async with LagProbe() as probe:
            started = time.perf_counter()
            status = await (await asyncio.create_subprocess_exec(*command)).wait()
            seconds = time.perf_counter() - started
        assert status == 0, "the callers did not get the format they asked for"
        print(f"10 callers, {label}\n    {seconds:.2f} s in all; {probe}", flush=True)
        os.kill(os.getpid(), signal.SIGTERM)
        await serving
    return max(probe.turns_ms)


def convert_one(data: bytes) -> None:
    for output_format in OUTPUT_FORMATS[1:]:
        started = time.perf_counter()
        result = convert.convert(data, output_format, 80)
        print(f"    png to {output_format:4}  {time.perf_counter() - started:6.2f} s  {len(result.data) / 1e3:8.0f} kB")
    started = time.perf_counter()
    for _ in range(10_000):
        sniff.unconverted(data, "png", 100)
    microseconds = (time.perf_counter() - started) * 100
    print(f"    has the format already: {microseconds:.2f} µs on the event loop, without a child process")


async def main(short: bool = False) -> None:
    # 1600 is the longest side that is converted to AVIF; 2000 x 2000 are four megapixels.
    side, long_side = (400, 500) if short else (1600, 2000)
    large, small = photograph(long_side), photograph(side)
    avif = convert.convert(small, "avif", 90).data
    large_avif = convert.encode(convert.decode(large), "avif", 90).data
    print(f"one image of {side} x {side} on one core:")
    convert_one(small)
    async with WorkerPool() as pool:
        await asyncio.gather(*(pool.run("image.normalise_input", data=small, for_org=ORG) for _ in range(pool.workers)))
        turns = [
            await convert_ten(pool, f"{side} x {side} PNG to AVIF", small, "avif"),
            await convert_ten(pool, f"{side} x {side} AVIF to PNG", avif, "png"),
            await convert_ten(pool, f"{long_side} x {long_side} PNG to WebP", large, "webp"),
            await convert_ten(pool, f"{long_side} x {long_side} PNG to JPEG", large, "jpeg"),
        ]
    turns += [
        await serve_ten_callers(f"{side} x {side} PNG to AVIF", small, "avif"),
        await serve_ten_callers(f"{long_side} x {long_side} AVIF to WebP", large_avif, "webp"),
        await serve_ten_callers(f"{long_side} x {long_side} AVIF to PNG", large_avif, "png"),
    ]
    print(f"longest turn of the event loop: {max(turns):.1f} ms")


if __name__ == "__main__":
    asyncio.run(main("--short" in sys.argv[1:]))
