"""Compare chat through several gateways: calls a second, latency, and the delay of a stream's first byte.

    python -m bench.chat [--peers FOLDER] [--seconds 10] [--rounds 1] [--only penstock,nginx]

In each round the gateways take turns. Each runs on one core; the provider and the load share the other. Penstock runs
with its defaults: it checks the key, holds an amount, and writes a durable record and a capture for every call.
Gateways that are not installed are named and left out. FOLDER contains `ll` and `tz`, virtual environments with
`litellm[proxy]` and `tensorzero openai`, and `pk`, where `npm i @portkey-ai/gateway` was run; nginx and wrk are
packages of the system. The forwarder is Penstock's HTTP server and client and nothing else (see forwarder.py).
"""

import argparse
import asyncio
import contextlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from bench.processes import (
    GATEWAY_CORE,
    LOAD_CORE,
    create_key,
    processor_seconds,
    run_process,
    serve_command,
    wait_for_port,
)

PROVIDER_PORT = 9100
GATEWAY_PORT = 9101
_MESSAGES = '[{"role":"system","content":"You are helpful."},{"role":"user","content":"Say hello to the world."}]'


@dataclass(frozen=True)
class Gateway:
    """How to start a gateway and how to call it."""

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


def gateways(peers: Path) -> list[Gateway]:
    return [
        Gateway("nginx", _nginx, lambda: shutil.which("nginx") is not None),
        Gateway("forwarder", _forwarder, lambda: True),
        Gateway(
            "penstock",
            _penstock,
            lambda: True,
            model="lab/gpt-x",
            path="/compat/v1/chat/completions",
            environ={"LAB_KEY": "x"},
            key=create_key,
        ),
        Gateway(
            "tensorzero",
            partial(_tensorzero, peers=peers),
            (peers / "tz/bin/python").exists,
            model="tensorzero::model_name::gpt-x",
            path="/openai/v1/chat/completions",
            environ={"LAB_KEY": "x"},
        ),
        Gateway(
            "portkey",
            lambda folder: [
                "node",
                str(peers / "pk/node_modules/@portkey-ai/gateway/build/start-server.js"),
                "--headless",
                f"--port={GATEWAY_PORT}",
            ],
            (peers / "pk/node_modules/@portkey-ai/gateway").exists,
            headers={"x-portkey-provider": "openai", "x-portkey-custom-host": f"http://127.0.0.1:{PROVIDER_PORT}/v1"},
        ),
        Gateway(
            "litellm",
            partial(_litellm, peers=peers),
            (peers / "ll/bin/litellm").exists,
            environ={"LITELLM_MASTER_KEY": "sk-bench", "LITELLM_LOG": "ERROR"},
            key=lambda folder: "sk-bench",
        ),
    ]


# ----------------------------------------------------------------------------------------------------------- starting


def _penstock(folder: Path) -> list[str]:
    (folder / "penstock.toml").write_text(
        f"""starting_credit_usd = "1000000"
[providers.lab]
speaks = "openai"
base_url = "http://127.0.0.1:{PROVIDER_PORT}/v1"
key_env = "LAB_KEY"
[[providers.lab.models]]
id = "lab/gpt-x"
upstream = "gpt-x"
task = "chat"
price = {{ unit = "token", input_usd = "0.000001", output_usd = "0.000002" }}
"""
    )
    return serve_command(folder, GATEWAY_PORT)


def _forwarder(folder: Path) -> list[str]:
    return [
        sys.executable,
        "-m",
        "bench.forwarder",
        str(GATEWAY_PORT),
        f"http://127.0.0.1:{PROVIDER_PORT}/v1/chat/completions",
    ]


def _nginx(folder: Path) -> list[str]:
    (folder / "nginx.conf").write_text(
        f"""daemon off; worker_processes 1; pid {folder}/nginx.pid; error_log /dev/null;
events {{ worker_connections 4096; }}
http {{ access_log off; client_body_temp_path {folder}; proxy_temp_path {folder};
fastcgi_temp_path {folder}; uwsgi_temp_path {folder}; scgi_temp_path {folder};
upstream lab {{ server 127.0.0.1:{PROVIDER_PORT}; keepalive 256; }}
server {{ listen 127.0.0.1:{GATEWAY_PORT}; keepalive_requests 1000000;
location / {{ proxy_pass http://lab; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_buffering off; }}
}} }}
"""
    )
    return ["nginx", "-c", str(folder / "nginx.conf"), "-p", str(folder)]


def _tensorzero(folder: Path, peers: Path) -> list[str]:
    (folder / "tz.toml").write_text(
        f"""[gateway]
bind_address = "127.0.0.1:{GATEWAY_PORT}"
observability.enabled = false
[models.gpt-x]
routing = ["lab"]
[models.gpt-x.providers.lab]
type = "openai"
model_name = "gpt-x"
api_base = "http://127.0.0.1:{PROVIDER_PORT}/v1/"
api_key_location = "env::LAB_KEY"
"""
    )
    script = (
        "import sys, time, openai, tensorzero\n"
        "client = openai.OpenAI(api_key='x')\n"
        f"client = tensorzero.patch_openai_client(client, config_file=r'{folder}/tz.toml', async_setup=False)\n"
        "print('listening', client.base_url, flush=True)\n"
        "time.sleep(10_000)\n"
    )
    return [str(peers / "tz/bin/python"), "-c", script]


def _litellm(folder: Path, peers: Path) -> list[str]:
    (folder / "litellm.yaml").write_text(
        f"""model_list:
  - model_name: gpt-x
    litellm_params: {{ model: openai/gpt-x, api_base: "http://127.0.0.1:{PROVIDER_PORT}/v1", api_key: x }}
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


def wait_for_gateway(gateway: Gateway, folder: Path) -> int:
    """Wait until the gateway listens; return its port, which TensorZero's embedded gateway chooses and prints."""
    if gateway.name != "tensorzero":
        wait_for_port(GATEWAY_PORT)
        return GATEWAY_PORT
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if match := re.search(r"listening http://[^:]+:(\d+)", (folder / "output.txt").read_text()):
            wait_for_port(int(match[1]))
            return int(match[1])
        time.sleep(0.1)
    raise TimeoutError((folder / "output.txt").read_text()[-500:])


# ----------------------------------------------------------------------------------------------------------- measuring


def wrk(
    url: str, headers: dict[str, str], body: str, connections: int, seconds: float, folder: Path
) -> dict[str, float]:
    script = folder / "post.lua"
    lines = [f'wrk.headers["{name}"] = "{value}"' for name, value in headers.items()]
    script.write_text("\n".join(['wrk.method = "POST"', *lines, f"wrk.body = [[{body}]]"]))
    command = [
        "taskset",
        "-c",
        LOAD_CORE,
        "wrk",
        "-t1",
        f"-c{connections}",
        f"-d{seconds:g}s",
        "--latency",
        "--timeout",
        "10s",
        "-s",
        str(script),
        url,
    ]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    if "Non-2xx" in output:
        raise RuntimeError(output)
    percentiles = {name: _milliseconds(value) for name, value in re.findall(r"(50|99)%\s+([\d.]+\w+)", output)}
    rate = re.search(r"Requests/sec:\s+([\d.]+)", output)
    assert rate, output
    count = re.search(r"(\d+) requests in", output)
    assert count, output
    return {"calls": float(rate[1]), "count": float(count[1]), "p50": percentiles["50"], "p99": percentiles["99"]}


def _milliseconds(text: str) -> float:
    number, unit = re.fullmatch(r"([\d.]+)(\w+)", text).groups()  # type: ignore[union-attr]
    return float(number) * {"us": 0.001, "ms": 1.0, "s": 1000.0}[unit]


async def first_byte_ms(port: int, path: str, headers: dict[str, str], body: str, times: int) -> float:
    """Return the median milliseconds from the end of the request to the first byte of the response body.

    The streams follow each other, and each is read to its end, so that none disturbs the next.
    """
    head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    text = f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\n{head}content-length: {len(body)}\r\n\r\n{body}".encode()
    times_ms = []
    for _ in range(times):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(text)
        started = time.perf_counter()
        await reader.readuntil(b"\r\n\r\n")
        await reader.read(1)
        times_ms.append((time.perf_counter() - started) * 1000)
        with contextlib.suppress(asyncio.IncompleteReadError, TimeoutError):  # not every gateway sends it
            await asyncio.wait_for(reader.readuntil(b"[DONE]"), 0.2)
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
    return statistics.median(times_ms)


def measure(gateway: Gateway, seconds: float, streams: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with run_process(gateway.command(folder), GATEWAY_CORE, gateway.environ, folder) as process:
            port = wait_for_gateway(gateway, folder)
            headers = {
                "authorization": f"Bearer {gateway.key(folder)}",
                "content-type": "application/json",
                **gateway.headers,
            }
            url = f"http://127.0.0.1:{port}{gateway.path}"
            wrk(url, headers, gateway.body(), 8, 2, folder)  # a first run, not counted
            before = processor_seconds(process.pid)
            many = wrk(url, headers, gateway.body(), 64, seconds, folder)
            spent = (processor_seconds(process.pid) - before) / many["count"] * 1e6
            single = wrk(url, headers, gateway.body(), 1, max(1, seconds // 2), folder)
            first_byte = asyncio.run(first_byte_ms(port, gateway.path, headers, gateway.body(stream=True), streams))
            return {
                "calls": many["calls"],
                "p99": many["p99"],
                "spent": spent,
                "p50": single["p50"],
                "first": first_byte,
            }


_COLUMNS = {
    "calls/s at 64": ("calls", 0),
    "p99 ms at 64": ("p99", 1),
    "CPU us a call": ("spent", 0),
    "p50 ms at 1": ("p50", 3),
    "first byte +ms": ("first", 3),
}


def print_results(name: str, rounds: list[dict[str, float]]) -> None:
    """Print the median of each figure; of several rounds also the lowest and the highest."""
    cells = []
    for key, digits in _COLUMNS.values():
        values = sorted(result[key] for result in rounds)
        spread = f" ({values[0]:.{digits}f}-{values[-1]:.{digits}f})" if len(rounds) > 1 else ""
        cells.append(f"{statistics.median(values):.{digits}f}{spread}")
    print(f"{name:12}" + "".join(f"{cell:>22}" for cell in cells), flush=True)


def main(short: bool = False, peers: str = "", seconds: float = 10, only: str = "", rounds: int = 1) -> None:
    if not shutil.which("wrk"):
        print("bench.chat is left out: it needs the load generator wrk")
        return
    seconds, streams = (2.0, 20) if short else (seconds, 300)
    wanted = set(only.split(",")) if only else {"penstock"} if short else set()
    chosen = [gateway for gateway in gateways(Path(peers)) if not wanted or gateway.name in wanted]
    results: dict[str, list[dict[str, float]]] = {gateway.name: [] for gateway in chosen if gateway.installed()}
    with tempfile.TemporaryDirectory() as name:
        provider = [sys.executable, "-m", "bench.chat_provider", str(PROVIDER_PORT), "3", "0.001"]
        with run_process(provider, LOAD_CORE, {}, Path(name)):
            wait_for_port(PROVIDER_PORT)
            for _ in range(rounds):
                base = asyncio.run(first_byte_ms(PROVIDER_PORT, "/v1/chat/completions", {}, '{"stream":true}', streams))
                for gateway in chosen:
                    if gateway.name in results:
                        result = measure(gateway, seconds, streams)
                        results[gateway.name].append({**result, "first": result["first"] - base})
    print(f"{'':12}" + "".join(f"{title:>22}" for title in _COLUMNS))
    for gateway in chosen:
        if gateway.name in results:
            print_results(gateway.name, results[gateway.name])
        else:
            print(f"{gateway.name:12}{'not installed':>22}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", default="")
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--only", default="")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--short", action="store_true")
    options = parser.parse_args()
    main(options.short, options.peers, options.seconds, options.only, options.rounds)
