"""What large images cost: memory of the gateway while one passes through it, and conversions beside the library alone.

    python -m bench.large_images [--short] [--memory] [--only WORDS] [--sizes 1 8 18] [--gateway PYTHON]

Memory: one caller sends an image or gets one, in each way that there is: from the provider in base64 or at a URL, to
the caller in base64 or as a URL; from the caller in a form, in a data URI or at a URL, to the provider in a form or in
JSON. The peak of the gateway's memory during the call, above what it was before, is divided by the size of the file.
Each is measured in a new process, after calls with a small image. `--gateway` names the Python of another installation
to compare with, `--sizes` the sizes in MB, and `--only` the ways whose names have these words. `--memory` leaves the
conversions out.

Conversions: each runs in a child process of the worker pool and, in turn with it, with Pillow alone in this process,
with the same options. Times are processor time, so other work on the machine changes them little.
"""

import argparse
import asyncio
import base64
import io
import random
import re
import statistics
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import psutil
import uvloop
from PIL import Image

from bench.costs import Installation, start
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


class Provider(asyncio.Protocol):
    """Responds to each GET with a file, and to any other request with an image: in base64, or at a URL of the file."""

    file = b""
    response = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._head = b""
        self._left = 0  # bytes of the request's body

    def data_received(self, data: bytes) -> None:
        if self._left:
            self._left -= len(data)
        else:
            self._head += data
            head, end, body = self._head.partition(b"\r\n\r\n")
            if not end:
                return
            length = re.search(rb"content-length: *(\d+)", head.lower())
            self._left = int(length[1] if length else 0) - len(body)
        if self._left > 0:
            return
        response = self.file if self._head.startswith(b"GET ") else self.response
        self._head = b""
        head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(response)
        self._transport.write(head)  # type: ignore[attr-defined]
        self._transport.write(response)  # type: ignore[attr-defined]


@dataclass(frozen=True)
class Way:
    """A way of an image through the gateway."""

    name: str
    path: str
    body: Callable[[bytes, str], tuple[bytes, str]]  # for an image and its URL: the body of the call, and its type
    response: Callable[[bytes, str], bytes]  # of the provider


def _inline(image: bytes, url: str) -> bytes:
    return b'{"created":1,"data":[{"b64_json":"' + base64.b64encode(image) + b'"}]}'


def _linked(image: bytes, url: str) -> bytes:
    return msgspec.json.encode({"created": 1, "data": [{"url": url}]})


def _json(**fields: Any) -> tuple[bytes, str]:
    return msgspec.json.encode({"prompt": "a pear", **fields}), "application/json"


def _form(image: bytes, url: str) -> tuple[bytes, str]:
    head = b'--x\r\ncontent-disposition: form-data; name="%b"\r\n\r\n%b\r\n'
    fields = b"".join(head % pair for pair in ((b"model", b"edit-model"), (b"prompt", b"a pear")))
    file = b'--x\r\ncontent-disposition: form-data; name="image"; filename="a.png"\r\ncontent-type: image/png\r\n\r\n'
    return fields + file + image + b"\r\n--x--\r\n", "multipart/form-data; boundary=x"


def _small_response(image: bytes, url: str) -> bytes:
    return _inline(noise_png(10_000), "")


def _data_uri(image: bytes) -> str:
    return "data:image/png;base64," + base64.b64encode(image).decode()


def ways() -> list[Way]:
    """Outputs by how the provider sends and the caller gets them, and inputs by how the caller sends them."""
    make, edit, video = "/compat/v1/images/generations", "/compat/v1/images/edits", "/compat/v1/videos"
    outputs = [
        Way(
            f"output {name}, as {answer}",
            make,
            partial(lambda answer, image, url: _json(model="image-model", response_format=answer), answer),
            response,
        )
        for name, response in (("in base64", _inline), ("at a URL", _linked))
        for answer in ("url", "b64_json")
    ]
    inputs = [
        Way("input in a form, to a form", edit, _form, _small_response),
        Way(
            "input in a data URI, to a form",
            edit,
            lambda image, url: _json(model="edit-model", image=_data_uri(image)),
            _small_response,
        ),
        Way(
            "input at a URL, to a form",
            edit,
            lambda image, url: _json(model="edit-model", image=url),
            _small_response,
        ),
        Way(
            "input in a data URI, to a data URI",
            video,
            lambda image, url: _json(model="video-model", input_reference={"image_url": _data_uri(image)}),
            lambda image, url: b'{"id":"job","status":"failed","error":{"message":"no"}}',
        ),
    ]
    return outputs + inputs


async def send(installation: Installation, way: Way, image: bytes, url: str) -> None:
    """Make one call, of which the gateway's process is all that takes memory."""
    body, kind = way.body(image, url)
    Provider.file = image
    Provider.response = way.response(image, url)
    reader, writer = await asyncio.open_connection("127.0.0.1", installation.port, limit=2**20)
    head = (
        f"POST {way.path} HTTP/1.1\r\nhost: bench\r\nauthorization: Bearer {installation.key}\r\n"
        f"content-type: {kind}\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    writer.write(head.encode() + body)
    status = (await reader.readuntil(b"\r\n\r\n")).lower()
    length = re.search(rb"content-length: *(\d+)", status)
    response = await reader.readexactly(int(length[1] if length else 0))
    assert status.startswith((b"http/1.1 200", b"http/1.1 202")), response[:500]
    writer.close()


async def peak_bytes(installation: Installation, work: Awaitable[None]) -> int:
    """How much more memory than before the gateway used at most during some work."""
    process = Path(f"/proc/{installation.process.pid}")
    (process / "clear_refs").write_text("5")  # forgets the peak so far
    before = psutil.Process(installation.process.pid).memory_info().rss
    await work
    await asyncio.sleep(1.0)  # a video is sent to its provider after the response
    return int(installation.peak_mib * _MIB) - before


async def measure_memory(sizes: tuple[int, ...], words: str, pythons: list[str], rounds: int) -> None:
    server = await asyncio.get_running_loop().create_server(Provider, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    url = f"http://127.0.0.1:{port}/a.png"
    for size in sizes:
        small, image = noise_png(10_000), noise_png(size * 1_000_000)
        for way in [way for way in ways() if words in way.name]:
            for python in pythons:
                peaks = []
                for _ in range(rounds):  # each in a new process: what one call freed, the next may use again
                    with start(python, port, "", False) as installation:
                        for _ in range(10):
                            await send(installation, way, small, url)
                        peaks.append(await peak_bytes(installation, send(installation, way, image, url)) / len(image))
                times = ", ".join(f"{peak:.2f}" for peak in sorted(peaks))
                print(f"{size} MB, {way.name}: peak {times} times its size  ({python})", flush=True)
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
    if not options.memory:
        await measure_conversions(256 if options.short else 1024, 2 if options.short else 9)
    sizes = (1,) if options.short else options.sizes
    await measure_memory(sizes, options.only, pythons, 1 if options.short else options.rounds)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--gateway", action="append", metavar="PYTHON")
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("--only", default="", metavar="WORDS")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--sizes", type=int, nargs="+", default=(1, 8, 18))
    uvloop.run(main(parser.parse_args()))
