"""Chat, side by side: calls a second at 64 connections, latency at one, and the delay added to a stream's first byte.

    python -m bench.chat [--peers FOLDER] [--seconds 10] [--only penstock,nginx]

Each contender gets one core to itself; the provider and the load share the other. Penstock runs with its defaults:
key checked, money reserved, a durable record and a charge for every call. Contenders that are not installed are left
out and named. FOLDER holds them: `ll` and `tz`, virtual environments with `litellm[proxy]` and `tensorzero openai`,
and `pk`, where `npm i @portkey-ai/gateway` was run; nginx and wrk come from the system. The forwarder is Penstock's own
server and sender with nothing in between: the part of a call's cost that is not its understanding, money and records.
"""

import argparse
import asyncio
import contextlib
import os
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

UPSTREAM_PORT, PORT = 9100, 9101
_CORE, _OTHER_CORE = "0", "1"
_MESSAGES = '[{"role":"system","content":"You are helpful."},{"role":"user","content":"Say hello to the world."}]'


@dataclass(frozen=True)
class Contender:
    """How to start one and how to talk to it."""

    name: str
    command: Callable[[Path], list[str]]
    installed: Callable[[], bool]
    model: str = "gpt-x"
    path: str = "/v1/chat/completions"
    headers: dict[str, str] = field(default_factory=dict)
    environ: dict[str, str] = field(default_factory=dict)
    key: Callable[[Path], str] = lambda folder: "x"

    def body(self, *, stream: bool = False) -> str:
        tail = ',"stream":true' if stream else ""
        return f'{{"model":"{self.model}","messages":{_MESSAGES},"temperature":0.7,"max_tokens":64{tail}}}'


def contenders(peers: Path) -> list[Contender]:
    return [
        Contender("nginx", _nginx, lambda: shutil.which("nginx") is not None),
        Contender("forwarder", _forwarder, lambda: True),
        Contender(
            "penstock",
            _penstock,
            lambda: True,
            model="lab/gpt-x",
            path="/compat/v1/chat/completions",
            environ={"LAB_KEY": "x"},
            key=_penstock_key,
        ),
        Contender(
            "tensorzero",
            lambda folder: _tensorzero(folder, peers),
            (peers / "tz/bin/python").exists,
            model="tensorzero::model_name::gpt-x",
            path="/openai/v1/chat/completions",
            environ={"LAB_KEY": "x"},
        ),
        Contender(
            "portkey",
            lambda folder: ["node", str(peers / "pk/node_modules/@portkey-ai/gateway/build/start-server.js"),
                            "--headless", f"--port={PORT}"],
            (peers / "pk/node_modules/@portkey-ai/gateway").exists,
            headers={"x-portkey-provider": "openai",
                     "x-portkey-custom-host": f"http://127.0.0.1:{UPSTREAM_PORT}/v1"},
        ),
        Contender(
            "litellm",
            lambda folder: _litellm(folder, peers),
            (peers / "ll/bin/litellm").exists,
            environ={"LITELLM_MASTER_KEY": "sk-bench", "LITELLM_LOG": "ERROR"},
            key=lambda folder: "sk-bench",
        ),
    ]  # fmt: skip


# ----------------------------------------------------------------------------------------------------------- starting


def _penstock(folder: Path) -> list[str]:
    (folder / "penstock.toml").write_text(
        f"""starting_credit_usd = "1000000"
[providers.lab]
speaks = "openai"
base_url = "http://127.0.0.1:{UPSTREAM_PORT}/v1"
key_env = "LAB_KEY"
[[providers.lab.models]]
id = "lab/gpt-x"
upstream = "gpt-x"
task = "chat"
price = {{ unit = "token", input_usd = "0.000001", output_usd = "0.000002" }}
"""
    )
    return [sys.executable, "-m", "penstock", "serve", "--data", str(folder), "--port", str(PORT)]


def _penstock_key(folder: Path) -> str:
    command = [sys.executable, "-m", "penstock", "keys", "create", "--data", str(folder)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def _forwarder(folder: Path) -> list[str]:
    return [sys.executable, "-m", "bench.forwarder", str(PORT), f"http://127.0.0.1:{UPSTREAM_PORT}/v1/chat/completions"]


def _nginx(folder: Path) -> list[str]:
    (folder / "nginx.conf").write_text(
        f"""daemon off; worker_processes 1; pid {folder}/nginx.pid; error_log /dev/null;
events {{ worker_connections 4096; }}
http {{ access_log off; client_body_temp_path {folder}; proxy_temp_path {folder};
fastcgi_temp_path {folder}; uwsgi_temp_path {folder}; scgi_temp_path {folder};
upstream lab {{ server 127.0.0.1:{UPSTREAM_PORT}; keepalive 256; }}
server {{ listen 127.0.0.1:{PORT}; keepalive_requests 1000000;
location / {{ proxy_pass http://lab; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_buffering off; }}
}} }}
"""
    )
    return ["nginx", "-c", str(folder / "nginx.conf"), "-p", str(folder)]


def _tensorzero(folder: Path, peers: Path) -> list[str]:
    (folder / "tz.toml").write_text(
        f"""[gateway]
bind_address = "127.0.0.1:{PORT}"
observability.enabled = false
[models.gpt-x]
routing = ["lab"]
[models.gpt-x.providers.lab]
type = "openai"
model_name = "gpt-x"
api_base = "http://127.0.0.1:{UPSTREAM_PORT}/v1/"
api_key_location = "env::LAB_KEY"
"""
    )
    script = (
        "import sys, time, openai, tensorzero\n"
        "client = openai.OpenAI(api_key='x')\n"
        f"client = tensorzero.patch_openai_client(client, config_file=r'{folder}/tz.toml', async_setup=False)\n"
        "print('address', client.base_url, flush=True)\n"
        "time.sleep(10_000)\n"
    )
    return [str(peers / "tz/bin/python"), "-c", script]


def _litellm(folder: Path, peers: Path) -> list[str]:
    (folder / "litellm.yaml").write_text(
        f"""model_list:
  - model_name: gpt-x
    litellm_params: {{ model: openai/gpt-x, api_base: "http://127.0.0.1:{UPSTREAM_PORT}/v1", api_key: x }}
"""
    )
    return [str(peers / "ll/bin/litellm"), "--config", str(folder / "litellm.yaml"), "--port", str(PORT),
            "--num_workers", "1"]  # fmt: skip


@contextlib.contextmanager
def running(command: list[str], core: str, environ: dict[str, str], folder: Path) -> Iterator[subprocess.Popen[str]]:
    with (folder / "output.txt").open("w") as output:
        process = subprocess.Popen(
            ["taskset", "-c", core, *command],
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, **environ},
            text=True,
            start_new_session=True,
        )
        try:
            yield process
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def wait_for(port: int, seconds: float = 90) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 0.2):
            return
        time.sleep(0.05)
    raise TimeoutError(f"nothing listens on {port}")


def port_of(contender: Contender, folder: Path) -> int:
    """TensorZero's embedded gateway chooses its own port and says so."""
    if contender.name != "tensorzero":
        wait_for(PORT)
        return PORT
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if found := re.search(r"address http://[^:]+:(\d+)", (folder / "output.txt").read_text()):
            wait_for(int(found[1]))
            return int(found[1])
        time.sleep(0.1)
    raise TimeoutError((folder / "output.txt").read_text()[-500:])


# ----------------------------------------------------------------------------------------------------------- measuring


def wrk(
    url: str, headers: dict[str, str], body: str, connections: int, seconds: float, folder: Path
) -> dict[str, float]:
    script = folder / "post.lua"
    lines = [f'wrk.headers["{name}"] = "{value}"' for name, value in headers.items()]
    script.write_text("\n".join(['wrk.method = "POST"', *lines, f"wrk.body = [[{body}]]"]))
    command = ["taskset", "-c", _OTHER_CORE, "wrk", "-t1", f"-c{connections}", f"-d{seconds:g}s", "--latency",
               "--timeout", "10s", "-s", str(script), url]  # fmt: skip
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    if "Non-2xx" in output:
        raise RuntimeError(output)
    found = {name: _milliseconds(value) for name, value in re.findall(r"(50|99)%\s+([\d.]+\w+)", output)}
    rate = re.search(r"Requests/sec:\s+([\d.]+)", output)
    assert rate, output
    count = re.search(r"(\d+) requests in", output)
    assert count, output
    return {"calls": float(rate[1]), "count": float(count[1]), "p50": found["50"], "p99": found["99"]}


def _milliseconds(text: str) -> float:
    number, unit = re.fullmatch(r"([\d.]+)(\w+)", text).groups()  # type: ignore[union-attr]
    return float(number) * {"us": 0.001, "ms": 1.0, "s": 1000.0}[unit]


async def first_bytes(port: int, path: str, headers: dict[str, str], body: str, times: int) -> float:
    """Median milliseconds from the end of the request to the first byte of the answer's body.

    One stream after the other, each read to its end: to end one early is work that would be counted against the next.
    """
    head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    text = f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\n{head}content-length: {len(body)}\r\n\r\n{body}".encode()
    taken = []
    for _ in range(times):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(text)
        started = time.perf_counter()
        await reader.readuntil(b"\r\n\r\n")
        await reader.read(1)
        taken.append((time.perf_counter() - started) * 1000)
        with contextlib.suppress(asyncio.IncompleteReadError, TimeoutError):  # not everybody says that it is done
            await asyncio.wait_for(reader.readuntil(b"[DONE]"), 0.2)
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
    return statistics.median(taken)


def processor_seconds(group: int) -> float:
    """What the processes of a group have used so far; unlike calls a second it hardly minds what else is running."""
    ticks = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = stat.read_text().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12]) if int(fields[2]) == group else 0
    return ticks / os.sysconf("SC_CLK_TCK")


def measure(contender: Contender, seconds: float, streams: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with running(contender.command(folder), _CORE, contender.environ, folder) as process:
            port = port_of(contender, folder)
            headers = {
                "authorization": f"Bearer {contender.key(folder)}",
                "content-type": "application/json",
                **contender.headers,
            }
            url = f"http://127.0.0.1:{port}{contender.path}"
            wrk(url, headers, contender.body(), 8, 2, folder)  # warms up
            before = processor_seconds(process.pid)
            many = wrk(url, headers, contender.body(), 64, seconds, folder)
            spent = (processor_seconds(process.pid) - before) / many["count"] * 1e6
            one = wrk(url, headers, contender.body(), 1, max(1, seconds // 2), folder)
            stream = asyncio.run(first_bytes(port, contender.path, headers, contender.body(stream=True), streams))
            return {"calls": many["calls"], "p99": many["p99"], "spent": spent, "p50": one["p50"], "first": stream}


def main(short: bool = False, peers: str = "", seconds: float = 10, only: str = "") -> None:
    if not shutil.which("wrk"):
        print("bench.chat needs wrk, a load generator that most systems package; left out")
        return
    seconds, streams = (2.0, 20) if short else (seconds, 300)
    wanted = set(only.split(",")) if only else {"penstock"} if short else set()
    with tempfile.TemporaryDirectory() as name:
        upstream = [sys.executable, "-m", "bench.upstream", str(UPSTREAM_PORT), "3", "0.001"]
        with running(upstream, _OTHER_CORE, {}, Path(name)):
            wait_for(UPSTREAM_PORT)
            base = asyncio.run(first_bytes(UPSTREAM_PORT, "/v1/chat/completions", {}, '{"stream":true}', streams))
            columns = f"{'calls/s at 64':>15}{'p99 ms at 64':>14}{'CPU us a call':>15}{'p50 ms at 1':>13}"
            print(f"{'':12}{columns}{'first byte +ms':>16}")
            for one in contenders(Path(peers)):
                if wanted and one.name not in wanted:
                    continue
                if not one.installed():
                    print(f"{one.name:12}{'not installed':>15}")
                    continue
                got = measure(one, seconds, streams)
                print(
                    f"{one.name:12}{got['calls']:15.0f}{got['p99']:14.2f}{got['spent']:15.0f}{got['p50']:13.3f}"
                    f"{got['first'] - base:16.3f}",
                    flush=True,
                )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", default="")
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--only", default="")
    parser.add_argument("--short", action="store_true")
    asked = parser.parse_args()
    main(asked.short, asked.peers, asked.seconds, asked.only)
