"""How long conversions take, and how long they keep the event loop waiting."""

from __future__ import annotations

import asyncio
import io
import random
import statistics
import sys
import time

from PIL import Image

from penstock import pictures
from penstock.pool import Pool


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
    """Sleeps a millisecond, over and over; what a sleep takes beyond that is time the loop was not free.

    Part of it is our own code at work on the loop (processor time of this thread), the rest other processes.
    """

    def __init__(self) -> None:
        self.lags_ms: list[float] = []
        self.own_ms: list[float] = []

    async def __aenter__(self) -> LagProbe:
        self._task = asyncio.create_task(self._watch())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._task.cancel()

    async def _watch(self) -> None:
        while True:
            before, worked = time.perf_counter(), time.thread_time()
            await asyncio.sleep(0.001)
            self.lags_ms.append((time.perf_counter() - before) * 1000 - 1)
            self.own_ms.append((time.thread_time() - worked) * 1000)

    def __str__(self) -> str:
        ordered = sorted(self.lags_ms)
        return (
            f"loop lag: median {statistics.median(ordered):.2f} ms, p99 {ordered[int(len(ordered) * 0.99)]:.2f} ms, "
            f"worst {ordered[-1]:.2f} ms ({max(self.own_ms):.2f} ms of our own doing) over {len(ordered)} turns"
        )


async def ten_at_once(children: Pool, label: str, data: bytes, output_format: str) -> float:
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
    return max(probe.lags_ms)


def one_by_one(data: bytes) -> None:
    for output_format in pictures.OUTPUT_FORMATS[1:]:
        started = time.perf_counter()
        made = pictures.convert(data, output_format, 80)  # type: ignore[arg-type]
        print(f"    png to {output_format:4}  {time.perf_counter() - started:6.2f} s  {len(made.data) / 1e3:8.0f} kB")
    started = time.perf_counter()
    for _ in range(10_000):
        pictures.unchanged(data, "png", 100)
    print(f"    already right: {(time.perf_counter() - started) * 100:.2f} µs on the event loop, no child")


async def main() -> None:
    large, small = photograph(2000), photograph(1600)
    avif = pictures.convert(small, "avif", 90).data
    print("one 1600 x 1600 picture on one core:")
    one_by_one(small)
    async with Pool() as children:
        await asyncio.gather(*(children.run("pictures.measure", data=small) for _ in range(children.workers)))
        worst = [
            await ten_at_once(children, "1600 x 1600 PNG to AVIF", small, "avif"),
            await ten_at_once(children, "1600 x 1600 AVIF to PNG", avif, "png"),
            await ten_at_once(children, "2000 x 2000 PNG to WebP", large, "webp"),
            await ten_at_once(children, "2000 x 2000 PNG to JPEG", large, "jpeg"),
        ]
    print(f"worst wait of the event loop: {max(worst):.1f} ms")


if __name__ == "__main__":
    if "--uvloop" in sys.argv:
        import uvloop

        uvloop.run(main())
    else:
        asyncio.run(main())
