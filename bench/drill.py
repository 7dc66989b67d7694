"""Rehearse an outage on traffic that was just made: `penstock drill` over some thousand requests.

    python -m bench.drill [--requests 3000] [--short]

A gateway on SQLite serves chats, images and videos from two fake providers, `north` and `south`. Both have the chats
and the images, `south` at a higher price and tried second, and only `north` has the videos. Then three drills run over
the requests, and their reports are printed as a terminal shows them, with the seconds that each took.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from urllib.request import Request, urlopen

from bench.processes import ALL_CORES, create_key, run_process, serve_command, wait_for_port
from tests.fake_providers.scripted import KEY, KEY_ENV, scripted_provider_in_thread
from tests.ports import unused_port

_AT_ONCE = 16
_END_SECONDS = 300
_STYLE = re.compile(r"\x1b\[[0-9;]*m")
# Of ten requests. A video is a job, so its call ends before it is made.
_BODIES = {
    "chat": (
        6,
        "chat/completions",
        {"model": "house/chat", "messages": [{"role": "user", "content": "one two"}]},
    ),
    "image": (3, "images/generations", {"model": "image-1", "prompt": "a pear", "size": "64x64"}),
    "video": (1, "videos", {"model": "video-1", "prompt": "a train", "seconds": 1}),
}
_PLACES = [(path, body) for count, path, body in _BODIES.values() for _ in range(count)]
_DRILLS = ("--down north", "--down south", "--slow north=4x --dearer north=1.5x")
_CHAT_AND_IMAGE = """
[providers.{slug}]
speaks = "openai"
base_url = "{url}"
key_env = "{key_env}"
[[providers.{slug}.models]]
id = "house/chat"
upstream = "chat-1"
task = "chat"
priority = {priority}
price = {{ unit = "token", input_usd = "{input_usd}", output_usd = "{output_usd}" }}
[[providers.{slug}.models]]
id = "image-1"
upstream = "easel-1"
task = "image"
priority = {priority}
price = {{ unit = "image", usd = "{image_usd}" }}
"""
_VIDEO = """
[[providers.north.models]]
id = "video-1"
upstream = "reel-1"
task = "video"
price = { unit = "second", usd = "0.01" }
"""


def config(north: str, south: str) -> str:
    """The text of penstock.toml for two providers at these URLs."""
    prices = {"key_env": KEY_ENV, "input_usd": "0.000001", "output_usd": "0.000002", "image_usd": "0.004"}
    dearer = {**prices, "input_usd": "0.000002", "output_usd": "0.000004", "image_usd": "0.005"}
    first = _CHAT_AND_IMAGE.format(slug="north", url=north, priority=1, **prices)
    return first + _VIDEO + _CHAT_AND_IMAGE.format(slug="south", url=south, priority=2, **dearer)


def call(port: int, key: str, number: int) -> None:
    path, body = _PLACES[number % len(_PLACES)]
    headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}
    url = f"http://127.0.0.1:{port}/compat/v1/{path}"
    with urlopen(Request(url, json.dumps(body).encode(), headers), timeout=_END_SECONDS) as response:
        response.read()


def wait_for_videos(port: int, key: str) -> None:
    """Wait until no request is under way."""
    deadline = time.monotonic() + _END_SECONDS
    while time.monotonic() < deadline:
        waiting = 0
        for status in ("pending", "processing"):
            url = f"http://127.0.0.1:{port}/v1/requests?status={status}"
            with urlopen(Request(url, headers={"authorization": f"Bearer {key}"})) as response:
                waiting += len(json.load(response)["data"])
        if not waiting:
            return
        time.sleep(0.5)
    raise TimeoutError("videos do not end")


def make_traffic(folder: Path, requests: int) -> None:
    key = create_key(folder)
    port = unused_port()
    with run_process(serve_command(folder, port), ALL_CORES, {}, folder):
        wait_for_port(port)
        began = time.perf_counter()
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            for made in [pool.submit(call, port, key, number) for number in range(requests)]:
                made.result()
        wait_for_videos(port, key)
        print(f"{requests} requests in {time.perf_counter() - began:.0f} s")


def drill(folder: Path, words: str) -> None:
    command = [sys.executable, "-m", "penstock", "drill", *words.split(), "--from", "1h", "--data", str(folder)]
    began = time.perf_counter()
    said = on_terminal(command)
    seconds = time.perf_counter() - began
    print(f"\n$ penstock drill {words} --from 1h    # {seconds:.1f} s\n{said}", end="", flush=True)


def on_terminal(command: list[str]) -> str:
    """What a command prints on a terminal without colours."""
    ours, theirs = os.openpty()
    with subprocess.Popen(command, stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        parts = []
        with suppress(OSError):  # the end of what a terminal says
            while part := os.read(ours, 65536):
                parts.append(part)
        os.close(ours)
    assert process.returncode == 0, b"".join(parts)
    return _STYLE.sub("", b"".join(parts).decode().replace("\r\n", "\n"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=3000)
    parser.add_argument("--short", action="store_true")
    options = parser.parse_args()
    terminal = {"COLUMNS": "120", "TERM": "xterm"}
    os.environ.update({KEY_ENV: KEY, "PENSTOCK_STARTING_CREDIT_USD": "1000000", **terminal})
    with (
        tempfile.TemporaryDirectory() as name,
        scripted_provider_in_thread("north") as north,
        scripted_provider_in_thread("south") as south,
    ):
        folder = Path(name)
        (folder / "penstock.toml").write_text(config(north.base_url, south.base_url))
        make_traffic(folder, 30 if options.short else options.requests)
        for words in _DRILLS:
            drill(folder, words)


if __name__ == "__main__":
    main()
