"""What telemetry costs: processor time of the gateway per call, with and without access lines and traces, side by side.

    python -m bench.telemetry [--kind chat] [--calls 2000] [--rounds 5]

A gateway of each kind runs all the time, and their rounds take turns, so that other work on the machine meets all of
them. Each is compared with the one without access lines and traces in the same round; the figures are medians. Log
lines are written to a file, and traces are sent to a receiver in this process.
"""

import argparse
import asyncio
import statistics
import sys
from contextlib import ExitStack
from pathlib import Path

from bench.costs import Provider, call, kinds, start
from tests.otlp_receiver import otlp_receiver


def processor_nanoseconds(pid: int) -> int:
    """The processor time of all threads of a process so far, finer than the ticks of the system's clock."""
    return sum(int((task / "schedstat").read_text().split()[0]) for task in Path(f"/proc/{pid}/task").iterdir())


async def measure(kind_name: str, calls: int, rounds: int) -> None:
    kind = kinds()[kind_name]
    Provider.response = kind.response
    server = await asyncio.get_running_loop().create_server(Provider, "127.0.0.1", 0, backlog=4096)
    provider_port = server.sockets[0].getsockname()[1]
    with ExitStack() as stack:
        collector = stack.enter_context(otlp_receiver())
        endpoint = {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{collector.port}"}
        off = {"PENSTOCK_ACCESS_LOG": "false"}
        variants = {
            "without access lines and traces": off,
            "the same again, to show the noise": off,
            "access lines": {},
            "traces, none sampled": {**off, **endpoint, "OTEL_TRACES_SAMPLER": "always_off"},
            "traces, one in ten sampled": {
                **off,
                **endpoint,
                "OTEL_TRACES_SAMPLER": "traceidratio",
                "OTEL_TRACES_SAMPLER_ARG": "0.1",
            },
            "traces, all sampled": {**off, **endpoint},
        }
        gateways = [
            stack.enter_context(start(sys.executable, provider_port, "", False, environ))
            for environ in variants.values()
        ]
        for gateway in gateways:
            await call(gateway.port, gateway.key, kind, max(100, calls // 5))  # not counted
        for _ in range(rounds):
            for gateway in gateways:
                before = processor_nanoseconds(gateway.process.pid)
                await call(gateway.port, gateway.key, kind, calls)
                gateway.microseconds.append((processor_nanoseconds(gateway.process.pid) - before) / calls / 1000)
        print(f"{kind_name}, {rounds} rounds of {calls} calls, {len(collector.spans)} spans received")
        for name, gateway in zip(variants, gateways, strict=True):
            median = statistics.median(gateway.microseconds)
            pairs = zip(gateway.microseconds, gateways[0].microseconds, strict=True)
            more = statistics.median([taken - plain for taken, plain in pairs])
            spread = f"{min(gateway.microseconds):.0f}-{max(gateway.microseconds):.0f}"
            print(f"  {name:35} {median:6.0f} µs a call ({spread}), {more:+6.1f} µs")
    server.close()


def main() -> None:
    import uvloop

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kind", default="chat", choices=("chat", "image", "image-b64"))
    parser.add_argument("--calls", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    uvloop.run(measure(options.kind, options.calls, options.rounds))


if __name__ == "__main__":
    main()
