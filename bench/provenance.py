"""Measure what Content Credentials cost: processor time per image, in the gateway's process and in its child.

    python -m bench.provenance [--short]

An image of one megapixel is stored as it came, and converted to WebP, with each mode: `off`, `keep` where the provider
signed nothing, `keep` where it did, and `sign`. Images follow one another, so that one child does all the work. The
clock of child processes has steps of 10 ms, which the number of images makes small.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from pathlib import Path

from bench.image_conversion import ORG, photograph
from penstock.clock import Clock
from penstock.imaging.sniff import sniff
from penstock.imaging.workers import WorkerPool
from penstock.media.finishing import Finisher
from penstock.provenance.sealer import TASKS, Origin, Sealer
from penstock.provenance.signing import make_self_signing
from penstock.schema import Provenance, ProvenanceMode, Request
from penstock.telemetry.metrics import Metrics

ORIGIN = Origin("req_1", "image-model", "lab/image-model", "lab")
_TICKS = os.sysconf("SC_CLK_TCK")


def child_seconds(pool: WorkerPool) -> float:
    """Processor time of all child processes until now."""
    seconds = 0.0
    for pid in pool.pids:
        words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        seconds += (int(words[11]) + int(words[12])) / _TICKS
    return seconds


async def measure(mode: ProvenanceMode, output_format: str, data: bytes, images: int) -> tuple[float, float, str]:
    """Return the milliseconds per image in the gateway's process and in its child, and the status."""
    found = sniff(data)
    assert found is not None, "it is an image"
    values = {"output_format": output_format, "output_compression": 80 if output_format == "webp" else 100}
    request = Request(task="image", model="image-model", values=values, provenance=Provenance(mode))
    async with WorkerPool(2, tasks=TASKS) as pool:
        signing = make_self_signing([(b"r" * 32, b"s" * 32)], "")
        finisher = Finisher(pool, Sealer(pool, Clock(), Metrics(), signing, video_bytes=0))
        for _ in range(3):  # starts the child and loads its modules
            await finisher.finish_image(data, found, request, ORIGIN, for_org=ORG)
        here, there = time.process_time(), child_seconds(pool)
        status = "-"
        for _ in range(images):
            _, credentials = await finisher.finish_image(data, found, request, ORIGIN, for_org=ORG)
            status = credentials.status if credentials else status
        here, there = time.process_time() - here, child_seconds(pool) - there
    return here * 1000 / images, there * 1000 / images, status


async def signed(data: bytes) -> bytes:
    """The same image as a provider signs it."""
    found = sniff(data)
    assert found is not None, "it is an image"
    request = Request(task="image", model="m", values={"output_format": "png"}, provenance=Provenance("sign"))
    async with WorkerPool(2, tasks=TASKS) as pool:
        signing = make_self_signing([(b"v" * 32, b"w" * 32)], "")
        finisher = Finisher(pool, Sealer(pool, Clock(), Metrics(), signing, video_bytes=0))
        image, _ = await finisher.finish_image(data, found, request, ORIGIN, for_org=ORG)
    return bytes(image.data)


async def main(short: bool = False) -> None:
    images = 3 if short else 60
    plain = photograph(200 if short else 1000)
    sealed = await signed(plain)
    print(f"{'stored as':10} {'mode':5} {'status':8} {'gateway ms':>10} {'child ms':>9}")
    for output_format in ("png", "webp"):
        cases: list[tuple[ProvenanceMode, bytes]] = [
            ("off", plain),
            ("keep", plain),
            ("keep", sealed),
            ("sign", plain),
            ("sign", sealed),
        ]
        for mode, data in cases:
            here, there, status = await measure(mode, output_format, data, images)
            print(f"{output_format:10} {mode:5} {status:8} {here:10.2f} {there:9.2f}", flush=True)


if __name__ == "__main__":
    asyncio.run(main("--short" in sys.argv[1:]))
