"""Compare images of 2.7 MB of base64 through several gateways: megabytes a second and peak memory.

    python -m bench.images [--peers FOLDER] [--seconds 10] [--connections 8]

The provider and the load share one core; gateways may use all of them. Penstock runs with its defaults: it checks the
key, holds and captures an amount, and stores every image durably before it responds. LiteLLM forwards the response and
converts nothing. FOLDER contains `ll`, a virtual environment with `litellm[proxy]`.

Megabytes are those of the provider's response. Memory is the peak of the server's process; `children` is the sum of the
peaks of its child processes, which decode and encode.
"""

import argparse
import asyncio
import base64
import io
import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any

import uvloop
from PIL import Image, ImageChops

from bench.image_conversion import photograph
from bench.processes import ALL_CORES, create_key, run_process, serve_command, wait_for_port

PROVIDER_PORT = 9110
GATEWAY_PORT = 9111
_LOAD_CORE = "0"
_MIB = 2**20


@cache
def sample_image() -> bytes:
    """A PNG of two megabytes with one megapixel: large shapes and noise, as image models make them."""
    with Image.open(io.BytesIO(photograph(1024))) as shapes:
        noise = Image.frombytes("RGB", shapes.size, random.Random(7).randbytes(3 * 1024 * 1024))
        image = ImageChops.add(shapes.convert("RGB"), noise.point([value // 12 for value in range(256)] * 3))
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    return buffer.getvalue()


@dataclass(frozen=True)
class Gateway:
    """How to start a gateway and what to request."""

    name: str
    command: Callable[[Path], list[str]]
    path: str
    key: Callable[[Path], str] = lambda folder: "x"
    environ: dict[str, str] = field(default_factory=dict)
    fields: dict[str, Any] = field(default_factory=dict)
    signature: bytes = b"\x89PNG"

    def body(self) -> bytes:
        return json.dumps({"model": "image-model", "prompt": "a pear", "size": "1024x1024", **self.fields}).encode()


def gateways(peers: Path) -> list[Gateway]:
    def penstock(name: str, signature: bytes, **fields: Any) -> Gateway:
        path = "/compat/v1/images/generations"
        return Gateway(name, _penstock, path, create_key, {"LAB_KEY": "x"}, fields, signature)

    found = [
        penstock("penstock", b"\x89PNG", response_format="b64_json"),
        penstock(
            "penstock, to jpeg", b"\xff\xd8", response_format="b64_json", output_format="jpeg", output_compression=85
        ),
        penstock("penstock, to webp", b"RIFF", response_format="b64_json", output_format="webp", output_compression=80),
    ]
    if (peers / "ll/bin/litellm").exists():
        environ = {"LITELLM_MASTER_KEY": "sk-bench", "LITELLM_LOG": "ERROR"}
        path = "/v1/images/generations"
        command = partial(_litellm, peers=peers)
        found.append(Gateway("litellm", command, path, lambda folder: "sk-bench", environ))
    return found


# ----------------------------------------------------------------------------------------------------------- starting


def _penstock(folder: Path) -> list[str]:
    (folder / "penstock.toml").write_text(
        f"""starting_credit_usd = "1000000"
provenance = "off"  # the peers sign nothing; bench/provenance.py has what it costs
[providers.lab]
speaks = "openai"
base_url = "http://127.0.0.1:{PROVIDER_PORT}/v1"
key_env = "LAB_KEY"
[[providers.lab.models]]
id = "image-model"
task = "image"
price = {{ unit = "image", usd = "0.04" }}
"""
    )
    return serve_command(folder, GATEWAY_PORT)


def _litellm(folder: Path, peers: Path) -> list[str]:
    (folder / "litellm.yaml").write_text(
        f"""model_list:
  - model_name: image-model
    litellm_params: {{ model: openai/image-model, api_base: "http://127.0.0.1:{PROVIDER_PORT}/v1", api_key: x }}
    model_info: {{ mode: image_generation }}
"""
    )
    return [
        str(peers / "ll/bin/litellm"),
        "--config",
        str(folder / "litellm.yaml"),
        "--port",
        str(GATEWAY_PORT),
        "--num_workers",
        "1",
    ]


# ----------------------------------------------------------------------------------------------------------- provider


async def serve_provider(port: int, data: bytes) -> None:
    """Respond to every request at once with the same image."""
    body = b'{"created":1794709785,"data":[{"b64_json":"' + base64.b64encode(data) + b'"}]}'
    head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(body)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                request = (await reader.readuntil(b"\r\n\r\n")).lower()
                length = request.partition(b"content-length:")[2].partition(b"\r\n")[0]
                await reader.readexactly(int(length or 0))
                writer.write(head)
                writer.write(body)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", port)
    await server.serve_forever()


# ----------------------------------------------------------------------------------------------------------- measuring


class Load:
    """Connections that send a request as soon as they have a response; counts the responses and keeps the last."""

    def __init__(self, port: int, path: str, key: str, body: bytes) -> None:
        head = (
            f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer {key}\r\n"
            f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
        )
        self._port = port
        self._request = head.encode() + body
        self.responses = 0
        self.last = b""

    async def run(self, connections: int, seconds: float) -> float:
        """Send requests for so many seconds; return the responses a second."""
        self.responses = 0
        started = time.perf_counter()
        await asyncio.gather(*(self._send_requests(started + seconds) for _ in range(connections)))
        return self.responses / (time.perf_counter() - started)

    async def _send_requests(self, until: float) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port, limit=4 * _MIB)
        while time.perf_counter() < until:
            writer.write(self._request)
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            response = await reader.readexactly(int(head.partition(b"content-length:")[2].partition(b"\r\n")[0]))
            if not head.startswith(b"http/1.1 200"):
                raise RuntimeError(response[:500])
            self.responses += 1
            self.last = response
        writer.close()


def peak_mib(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def child_processes(pid: int) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (entry / "stat").exists():
            parent = (entry / "stat").read_text().rpartition(") ")[2].split()[1]
            found += [int(entry.name)] if int(parent) == pid else []
    return found


@dataclass(frozen=True)
class Result:
    """The figures of one gateway."""

    responses: float
    idle_mib: float
    peak_mib: float
    children_mib: float
    milliseconds: float


def measure(gateway: Gateway, connections: int, seconds: float) -> Result:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with run_process(gateway.command(folder), ALL_CORES, gateway.environ, folder) as process:
            wait_for_port(GATEWAY_PORT)
            load = Load(GATEWAY_PORT, gateway.path, gateway.key(folder), gateway.body())
            idle = peak_mib(process.pid)
            uvloop.run(load.run(1, max(0.5, seconds / 4)))  # a first run, not counted
            alone = uvloop.run(load.run(1, max(0.5, seconds / 4)))
            responses = uvloop.run(load.run(connections, seconds))
            image = base64.b64decode(json.loads(load.last)["data"][0]["b64_json"])
            assert image.startswith(gateway.signature), image[:16]
            if gateway.signature == b"\x89PNG":
                assert image == sample_image(), "not the bytes that the provider sent"
            children_mib = sum(peak_mib(pid) for pid in child_processes(process.pid))
            return Result(responses, idle, peak_mib(process.pid), children_mib, 1000 / alone)


def main(short: bool = False, peers: str = "", connections: int = 8, seconds: float = 10) -> None:
    os.sched_setaffinity(0, {int(_LOAD_CORE)})
    response_bytes = len(base64.b64encode(sample_image()))
    print(f"responses of {response_bytes / 1e6:.2f} MB, {connections} connections")
    with tempfile.TemporaryDirectory() as name:
        provider = [sys.executable, "-m", "bench.images", "--provide", str(PROVIDER_PORT)]
        with run_process(provider, _LOAD_CORE, {}, Path(name)):
            wait_for_port(PROVIDER_PORT)
            columns = ("MB/s", "images/s", "ms alone", "idle MiB", "peak MiB", "children")
            print(f"{'':20}" + "".join(f"{column:>12}" for column in columns))
            direct = uvloop.run(Load(PROVIDER_PORT, "/", "x", b"{}").run(connections, 1))
            print(f"{'the provider itself':20}{direct * response_bytes / 1e6:12.1f}{direct:12.1f}")
            for gateway in gateways(Path(peers))[: 2 if short else None]:
                result = measure(gateway, connections, 1 if short else seconds)
                figures = (
                    f"{result.responses * response_bytes / 1e6:12.1f}{result.responses:12.1f}"
                    f"{result.milliseconds:12.1f}{result.idle_mib:12.0f}{result.peak_mib:12.0f}"
                    f"{result.children_mib:12.0f}"
                )
                print(f"{gateway.name:20}{figures}", flush=True)
            if not (Path(peers) / "ll/bin/litellm").exists():
                print("litellm is left out: no virtual environment `ll` with it under --peers")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", default="/nowhere")
    parser.add_argument("--connections", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--provide", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--file", default="", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.provide:
        uvloop.run(serve_provider(options.provide, Path(options.file).read_bytes() if options.file else sample_image()))
    else:
        main(options.short, options.peers, options.connections, options.seconds)
