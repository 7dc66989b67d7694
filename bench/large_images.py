"""What large images cost: memory of the gateway while one passes through it, and conversions beside the library alone.

    python -m bench.large_images [--short] [--gateway PYTHON]

Memory: a provider responds with an image in base64, and one caller gets it, as base64 or as a URL. The peak of the
gateway's memory during the call, above what it was before, is divided by the size of the file. `--gateway` names the
Python of another installation to compare with.

Conversions: each runs in a child process of the worker pool and, in turn with it, with Pillow alone in this process,
with the same options. Times are processor time, so other work on the machine changes them little.
"""

import argparse
import asyncio
import base64
import io
import random
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import uvloop
from PIL import Image

from bench.costs import Installation, Kind, Provider, call, start
from bench.image_conversion import photograph
from penstock.imaging.workers import WorkerPool
from penstock.values import OrgId

ORG = OrgId("org_1")

_MIB = 2**20
_QUALITY = 80
# As `imaging.convert` calls it for this quality.
_PILLOW: dict[str, dict[str, Any]] = {
    "jpeg": {"quality": _QUALITY, "subsampling": 2},
    "webp": {"quality": _QUALITY, "method": 2, "alpha_quality": 80},
    "avif": {"quality": _QUALITY, "subsampling": "4:2:0", "speed": 8, "max_threads": 1},
}


def noise_png(size_bytes: int) -> bytes:
    """A PNG of about so many bytes, which cannot be compressed."""
    side = int((size_bytes / 3) ** 0.5)
    image = Image.frombytes("RGB", (side, side), random.Random(7).randbytes(3 * side * side))
    buffer = io.BytesIO()
    image.save(buffer, "PNG", compress_level=0)
    return buffer.getvalue()


# -------------------------------------------------------------------------------------------------------------- memory


async def peak_bytes(installation: Installation, kind: Kind) -> int:
    """How much more memory than before the gateway used at most during one call."""
    process = Path(f"/proc/{installation.process.pid}")
    (process / "clear_refs").write_text("5")  # forgets the peak so far
    before = psutil.Process(installation.process.pid).memory_info().rss
    await call(installation.port, installation.key, kind, 1)
    return int(installation.peak_mib * _MIB) - before


def _response(image: bytes) -> bytes:
    return b'{"created":1794709785,"data":[{"b64_json":"' + base64.b64encode(image) + b'"}]}'


async def measure_memory(sizes_mib: tuple[int, ...], pythons: list[str], rounds: int) -> None:
    server = await asyncio.get_running_loop().create_server(Provider, "127.0.0.1", 0)
    for size in sizes_mib:
        small, image = noise_png(10_000), noise_png(size * _MIB)
        for python in pythons:
            for answer in ("url", "b64_json"):
                body = {"model": "image-model", "prompt": "a pear", "size": "1024x1024", "response_format": answer}
                kind = Kind("/compat/v1/images/generations", body, b"", callers=1)
                peaks = []
                for _ in range(rounds):  # each in a new process: what one call freed, the next may use again
                    with start(python, server.sockets[0].getsockname()[1], "", False) as installation:
                        Provider.response = _response(small)
                        await call(installation.port, installation.key, kind, 20)
                        Provider.response = _response(image)
                        peaks.append(await peak_bytes(installation, kind) / len(image))
                times = ", ".join(f"{peak:.2f}" for peak in peaks)
                print(f"{python}\n  an image of {len(image) / _MIB:.1f} MiB as {answer}: peak {times} times its size")
    server.close()


# ---------------------------------------------------------------------------------------------------------- conversion


def convert_alone(data: bytes, output_format: str) -> float:
    """Convert with Pillow alone; return the processor time."""
    started = time.process_time()
    with Image.open(io.BytesIO(data)) as image:
        image.convert("RGB").save(io.BytesIO(), output_format.upper(), **_PILLOW[output_format])
    return time.process_time() - started


async def convert_in_pool(pool: WorkerPool, data: bytes, output_format: str) -> float:
    """Convert as the gateway does; return the processor time of this process and its child processes."""
    started = _processor_seconds()
    await pool.run("image.convert", data=data, output_format=output_format, output_compression=_QUALITY, for_org=ORG)
    return _processor_seconds() - started


def _processor_seconds() -> float:
    processes = [psutil.Process(), *psutil.Process().children(recursive=True)]
    return sum(sum(process.cpu_times()[:2]) for process in processes)


async def measure_conversions(side: int, rounds: int) -> None:
    data = photograph(side)
    async with WorkerPool(1) as pool:
        for output_format in _PILLOW:
            await convert_in_pool(pool, data, output_format)  # starts the child process
            in_pool, alone = [], []
            for _ in range(rounds):
                in_pool.append(await convert_in_pool(pool, data, output_format))
                alone.append(convert_alone(data, output_format))
            ours, library = statistics.median(in_pool) * 1000, statistics.median(alone) * 1000
            print(
                f"PNG of {side} x {side} to {output_format}: {ours:.0f} ms ({min(in_pool) * 1000:.0f}-"
                f"{max(in_pool) * 1000:.0f}), Pillow alone {library:.0f} ms ({min(alone) * 1000:.0f}-"
                f"{max(alone) * 1000:.0f}): {ours / library:.2f} times"
            )


async def main(options: argparse.Namespace) -> None:
    pythons = [sys.executable, *(options.gateway or ())]
    await measure_conversions(256 if options.short else 1024, 2 if options.short else 9)
    await measure_memory((4,) if options.short else (16, 32), pythons, 1 if options.short else 3)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--gateway", action="append", metavar="PYTHON")
    uvloop.run(main(parser.parse_args()))
