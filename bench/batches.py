"""Measure batches: rows checked and rows run per second, and how much memory more rows need.

    python -m bench.batches [--checked 200000] [--run 3000] [--short]

The gateway runs on SQLite on one core, with its built-in models on the same core. First a file of many rows is checked,
priced and stored, and not started: the memory that its process has afterwards, and had at most, shows what a row needs.
Then smaller batches run, of chats and of images.
"""

import argparse
import json
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any
from uuid import uuid4

import psutil

from bench.processes import GATEWAY_CORE, create_key, run_process, serve_command, wait_for_port
from tests.ports import unused_port

_MIB = 2**20
_IMAGE = {"model": "atelier/sketch", "size": "64x64"}
_CHAT = {"model": "atelier/echo", "max_tokens": 20}


class Gateway:
    """A gateway that runs, and a key of it."""

    def __init__(self, port: int, key: str, pid: int) -> None:
        self._url = f"http://127.0.0.1:{port}"
        self._key = key
        self._process = psutil.Process(pid)

    def call(self, method: str, path: str, body: bytes | None = None, kind: str = "application/json") -> Any:
        headers = {"Authorization": f"Bearer {self._key}", "Content-Type": kind}
        request = urllib.request.Request(self._url + path, body, headers, method=method)
        with urllib.request.urlopen(request, timeout=3600) as response:
            return json.load(response)

    def create(self, rows: bytes, fields: dict[str, Any]) -> Any:
        """Create a batch of a CSV file."""
        edge = uuid4().hex
        head = f'--{edge}\r\nContent-Disposition: form-data; name="'
        parts = [f'{head}{name}"\r\n\r\n{value}\r\n'.encode() for name, value in fields.items()]
        parts += [f'{head}file"; filename="rows.csv"\r\n\r\n'.encode(), rows, f"\r\n--{edge}--\r\n".encode()]
        return self.call("POST", "/v1/batches", b"".join(parts), f"multipart/form-data; boundary={edge}")

    @property
    def memory(self) -> int:
        return int(self._process.memory_info().rss)

    @property
    def peak_memory(self) -> int:
        """The most that the process itself ever had."""
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0]) * 1024


def csv_rows(count: int) -> bytes:
    return b"prompt\n" + b"".join(b"a pear on a plate with the number %d\n" % number for number in range(count))


def check(gateway: Gateway, count: int) -> None:
    """Check and store a batch that is not started."""
    rows = csv_rows(count)
    before = gateway.memory
    began = time.perf_counter()
    fields = {"endpoint": "/v1/images/generations", "defaults": json.dumps(_IMAGE), "start": "false"}
    made = gateway.create(rows, fields)
    seconds = time.perf_counter() - began
    assert made["counts"]["total"] == count
    print(
        f"checked {count:>8} rows, {len(rows) / _MIB:5.1f} MiB: {count / seconds:6.0f} rows/s; memory "
        f"{before / _MIB:.0f} MiB before, {gateway.peak_memory / _MIB:.0f} at most, {gateway.memory / _MIB:.0f} after"
    )
    gateway.call("POST", f"/v1/batches/{made['id']}/cancel")


def run(gateway: Gateway, name: str, count: int, endpoint: str, defaults: dict[str, Any]) -> None:
    """Run a batch to its end."""
    fields = {"endpoint": endpoint, "defaults": json.dumps(defaults), "concurrency": 32}
    began = time.perf_counter()
    batch = gateway.create(csv_rows(count), fields)
    checked = time.perf_counter()
    while batch["status"] != "completed":
        time.sleep(0.1)
        batch = gateway.call("GET", f"/v1/batches/{batch['id']}")
    seconds = time.perf_counter() - checked
    assert batch["counts"]["completed"] == count, batch
    print(
        f"ran {count:>6} {name}: {count / seconds:5.0f} rows/s (checked in {checked - began:.1f} s); "
        f"memory {gateway.memory / _MIB:.0f} MiB"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--checked", type=int, default=200_000)
    parser.add_argument("--run", type=int, default=3000)
    parser.add_argument("--short", action="store_true")
    options = parser.parse_args()
    checked, count = (500, 20) if options.short else (options.checked, options.run)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        key = create_key(folder)
        port = unused_port()
        environ = {"PENSTOCK_STARTING_CREDIT_USD": "1000000", "PENSTOCK_FORM_BYTES": str(256 * _MIB)}
        environ["PENSTOCK_BODY_SECONDS"] = "600"
        with run_process(serve_command(folder, port), GATEWAY_CORE, environ, folder) as process:
            wait_for_port(port)
            server = psutil.Process(process.pid)
            gateway = Gateway(port, key, server.pid)
            for rows in (checked // 10, checked):
                check(gateway, rows)
            run(gateway, "chats", count, "/v1/chat/completions", _CHAT)
            run(gateway, "images", count, "/v1/images/generations", _IMAGE)


if __name__ == "__main__":
    main()
