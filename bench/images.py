"""Pictures of 2.7 MB of base64 through the gateway: megabytes a second and peak memory, as they come and converted.

    python -m bench.images [--peers FOLDER] [--seconds 10] [--connections 8]

The provider and the load share one core; contenders may use all of them. Penstock runs with its defaults: key checked,
money held and settled, every picture on the disk before it is answered. LiteLLM hands replies through; it has no
conversions to compare. FOLDER holds it: `ll`, a virtual environment with `litellm[proxy]`.

Megabytes are those of the provider's reply. Memory is the most that the server's process ever held, and beside it what
its children held at most, which decode and encode.
"""

import argparse
import asyncio
import base64
import io
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import uvloop
from PIL import Image, ImageChops

from bench.chat import running, wait_for
from bench.pictures import photograph

UPSTREAM_PORT, PORT = 9110, 9111
_LOAD_CORE = "0"
_ALL_CORES = ",".join(map(str, sorted(os.sched_getaffinity(0))))
_MIB = 2**20


@cache
def picture() -> bytes:
    """A PNG of two megabytes for one megapixel, as image models make them: large shapes, and grain."""
    with Image.open(io.BytesIO(photograph(1024))) as shapes:
        grain = Image.frombytes("RGB", shapes.size, random.Random(7).randbytes(3 * 1024 * 1024))
        image = ImageChops.add(shapes.convert("RGB"), grain.point([value // 12 for value in range(256)] * 3))
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    return buffer.getvalue()


@dataclass(frozen=True)
class Contender:
    """How to start one and what to ask it for."""

    name: str
    command: Callable[[Path], list[str]]
    path: str
    key: Callable[[Path], str] = lambda folder: "x"
    environ: dict[str, str] = field(default_factory=dict)
    wish: dict[str, Any] = field(default_factory=dict)
    signature: bytes = b"\x89PNG"

    def body(self) -> bytes:
        return json.dumps({"model": "picture", "prompt": "a pear", "size": "1024x1024", **self.wish}).encode()


def contenders(peers: Path) -> list[Contender]:
    def ours(name: str, signature: bytes, **wish: Any) -> Contender:
        path = "/compat/v1/images/generations"
        return Contender(name, _penstock, path, _penstock_key, {"LAB_KEY": "x"}, wish, signature)

    found = [
        ours("penstock", b"\x89PNG", response_format="b64_json"),
        ours("penstock, to jpeg", b"\xff\xd8", response_format="b64_json", output_format="jpeg", output_compression=85),
        ours("penstock, to webp", b"RIFF", response_format="b64_json", output_format="webp", output_compression=80),
    ]
    if (peers / "ll/bin/litellm").exists():
        environ = {"LITELLM_MASTER_KEY": "sk-bench", "LITELLM_LOG": "ERROR"}
        path, key = "/v1/images/generations", lambda folder: "sk-bench"
        found.append(Contender("litellm", lambda folder: _litellm(folder, peers), path, key, environ))
    return found


# ----------------------------------------------------------------------------------------------------------- starting


def _penstock(folder: Path) -> list[str]:
    (folder / "penstock.toml").write_text(
        f"""starting_credit_usd = "1000000"
[providers.lab]
speaks = "openai"
base_url = "http://127.0.0.1:{UPSTREAM_PORT}/v1"
key_env = "LAB_KEY"
[[providers.lab.models]]
id = "picture"
task = "image"
price = {{ unit = "image", usd = "0.04" }}
"""
    )
    return [sys.executable, "-m", "penstock", "serve", "--data", str(folder), "--port", str(PORT)]


def _penstock_key(folder: Path) -> str:
    command = [sys.executable, "-m", "penstock", "keys", "create", "--data", str(folder)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def _litellm(folder: Path, peers: Path) -> list[str]:
    (folder / "litellm.yaml").write_text(
        f"""model_list:
  - model_name: picture
    litellm_params: {{ model: openai/picture, api_base: "http://127.0.0.1:{UPSTREAM_PORT}/v1", api_key: x }}
    model_info: {{ mode: image_generation }}
"""
    )
    return [str(peers / "ll/bin/litellm"), "--config", str(folder / "litellm.yaml"), "--port", str(PORT),
            "--num_workers", "1"]  # fmt: skip


# --------------------------------------------------------------------------------------------------------- a provider


async def provide(port: int, data: bytes) -> None:
    """Answers every request at once with the same picture."""
    body = b'{"created":1794709785,"data":[{"b64_json":"' + base64.b64encode(data) + b'"}]}'
    head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(body)

    async def attend(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                asked = (await reader.readuntil(b"\r\n\r\n")).lower()
                length = asked.partition(b"content-length:")[2].partition(b"\r\n")[0]
                await reader.readexactly(int(length or 0))
                writer.write(head)
                writer.write(body)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(attend, "127.0.0.1", port)
    await server.serve_forever()


# ----------------------------------------------------------------------------------------------------------- measuring


class Load:
    """Connections that ask again as soon as they were answered; counts answers, keeps one to look at."""

    def __init__(self, port: int, path: str, key: str, body: bytes) -> None:
        head = (
            f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer {key}\r\n"
            f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
        )
        self._port, self._request = port, head.encode() + body
        self.answers = 0
        self.last = b""

    async def run(self, connections: int, seconds: float) -> float:
        """Answers a second."""
        self.answers, started = 0, time.perf_counter()
        await asyncio.gather(*(self._ask(started + seconds) for _ in range(connections)))
        return self.answers / (time.perf_counter() - started)

    async def _ask(self, until: float) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port, limit=4 * _MIB)
        while time.perf_counter() < until:
            writer.write(self._request)
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            answer = await reader.readexactly(int(head.partition(b"content-length:")[2].partition(b"\r\n")[0]))
            if not head.startswith(b"http/1.1 200"):
                raise RuntimeError(answer[:500])
            self.answers, self.last = self.answers + 1, answer
        writer.close()


def peak_mib(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def children(pid: int) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (entry / "stat").exists():
            parent = (entry / "stat").read_text().rpartition(") ")[2].split()[1]
            found += [int(entry.name)] if int(parent) == pid else []
    return found


@dataclass(frozen=True)
class Measured:
    answers: float
    idle_mib: float
    peak_mib: float
    children_mib: float
    milliseconds: float


def measure(contender: Contender, connections: int, seconds: float) -> Measured:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with running(contender.command(folder), _ALL_CORES, contender.environ, folder) as process:
            wait_for(PORT)
            load = Load(PORT, contender.path, contender.key(folder), contender.body())
            idle = peak_mib(process.pid)
            uvloop.run(load.run(1, max(0.5, seconds / 4)))  # warms up
            alone = uvloop.run(load.run(1, max(0.5, seconds / 4)))
            answers = uvloop.run(load.run(connections, seconds))
            made = base64.b64decode(json.loads(load.last)["data"][0]["b64_json"])
            assert made.startswith(contender.signature), made[:16]
            if contender.signature == b"\x89PNG":
                assert made == picture(), "not the bytes that the provider made"
            others = sum(peak_mib(pid) for pid in children(process.pid))
            return Measured(answers, idle, peak_mib(process.pid), others, 1000 / alone)


def main(short: bool = False, peers: str = "", connections: int = 8, seconds: float = 10) -> None:
    os.sched_setaffinity(0, {int(_LOAD_CORE)})
    reply = len(base64.b64encode(picture()))
    print(f"replies of {reply / 1e6:.2f} MB, {connections} connections")
    with tempfile.TemporaryDirectory() as name:
        vendor = [sys.executable, "-m", "bench.images", "--provide", str(UPSTREAM_PORT)]
        with running(vendor, _LOAD_CORE, {}, Path(name)):
            wait_for(UPSTREAM_PORT)
            heads = ("MB/s", "pictures/s", "ms alone", "idle MiB", "peak MiB", "children")
            print(f"{'':20}" + "".join(f"{head:>12}" for head in heads))
            straight = uvloop.run(Load(UPSTREAM_PORT, "/", "x", b"{}").run(connections, 1))
            print(f"{'the provider itself':20}{straight * reply / 1e6:12.1f}{straight:12.1f}")
            for one in contenders(Path(peers))[: 2 if short else None]:
                got = measure(one, connections, 1 if short else seconds)
                print(
                    f"{one.name:20}{got.answers * reply / 1e6:12.1f}{got.answers:12.1f}{got.milliseconds:12.1f}"
                    f"{got.idle_mib:12.0f}{got.peak_mib:12.0f}{got.children_mib:12.0f}",
                    flush=True,
                )
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
    asked = parser.parse_args()
    if asked.provide:
        uvloop.run(provide(asked.provide, Path(asked.file).read_bytes() if asked.file else picture()))
    else:
        main(asked.short, asked.peers, asked.connections, asked.seconds)
