"""What each promise of a chat call costs: gateways without one of them take turns with a whole one.

    python -m bench.promises [--calls 3000] [--rounds 5] [--short]

Each gateway leaves out one thing that a call gets, and is good for nothing else. The difference is processor time of
the process, and the number of Python functions that its event loop calls, which other work on the machine does not
change.
"""

import argparse
import asyncio
import importlib
import os
import pstats
import statistics
import sys
from collections.abc import Callable
from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import Any, NamedTuple

from bench import costs
from penstock.values import ZERO


class Promise(NamedTuple):
    """What a call gets, and how a gateway is kept from it: by a setting or by a function that changes its code."""

    told: str
    leave_out: Callable[[], None] | None = None
    variables: tuple[tuple[str, str], ...] = ()


# ---------------------------------------------------------------------------------------------------- in the gateway


def _without_records() -> None:
    from penstock.accounts.chat_settlement import ChatSettlement

    def settle_later(self: ChatSettlement, reservation: Any, end: Any, *_: Any, **__: Any) -> None:
        self.reservations.end(reservation, ZERO)

    ChatSettlement.settle_later = settle_later  # type: ignore[method-assign]


def _without_checks() -> None:
    """Read the first call only, and take every other one for the same."""
    endpoint: Any = importlib.import_module("penstock.chat.endpoint")
    read, route = endpoint.read_chat_request, endpoint.route_chat
    known: dict[str, Any] = {}

    def read_once(call: Any, *others: Any) -> Any:
        known["chat"] = known.get("chat") or read(call, *others)
        return known["chat"]

    async def route_once(*arguments: Any, **options: Any) -> Any:
        known["routed"] = known.get("routed") or await route(*arguments, **options)
        return known["routed"]

    endpoint.read_chat_request = read_once
    endpoint.route_chat = route_once


def _without_bills() -> None:
    """Read the first answer only, and take every other one for the same."""
    from penstock.chat import endpoint

    read = endpoint._read_whole
    known: list[Any] = []

    def read_once(reserved: Any, candidate: Any, api: Any, watch: Any, body: Any) -> Any:
        if not known:
            known.append(read(reserved, candidate, api, watch, body)[1])
        return body, known[0], []

    endpoint._read_whole = read_once


def _without_metrics() -> None:
    from penstock.models.health import Health
    from penstock.telemetry.metrics import Metrics
    from penstock.upstream.watch import AttemptWatch

    def nothing(*_: Any, **__: Any) -> None:
        pass

    for name in vars(Metrics):
        if name.startswith("count_"):
            setattr(Metrics, name, nothing)
    AttemptWatch._count = nothing  # type: ignore[method-assign]
    Health.record_success = nothing  # type: ignore[method-assign]


def _without_interrupts() -> None:
    from penstock.interrupts import Interrupts

    Interrupts.allowed = lambda self, line: nullcontext()  # type: ignore[method-assign,assignment,return-value]


PROMISES = {
    "whole": Promise("everything"),
    "records": Promise("a record, a capture and their commit, in groups", _without_records),
    "checks": Promise("every field checked, candidates chosen, the most it may cost", _without_checks),
    "bills": Promise("the answer read, usage counted, the operator's key looked for", _without_bills),
    "metrics": Promise("metrics and the health of candidates", _without_metrics),
    "hang-ups": Promise("a caller who hangs up, or a stop, ends the provider's call", _without_interrupts),
    "access": Promise("a line in the access log", variables=(("PENSTOCK_ACCESS_LOG", "false"),)),
}


def run_gateway() -> None:
    """Run a gateway as `bench.costs` does, without the promise that BENCH_WITHOUT names."""
    if leave_out := PROMISES[os.environ["BENCH_WITHOUT"]].leave_out:
        leave_out()
    costs.run_gateway()


# -------------------------------------------------------------------------------------------------------- measurement


def _functions_called(file: Path, calls: int) -> float:
    profile: Any = pstats.Stats(str(file))
    return float(profile.total_calls / calls)


async def measure(rounds: int, calls: int) -> None:
    kind = costs.kinds()["chat"]
    costs.Provider.response = kind.response
    costs.Provider.pieces = kind.pieces
    server = await asyncio.get_running_loop().create_server(costs.Provider, "127.0.0.1", 0, backlog=4096)
    port = server.sockets[0].getsockname()[1]
    functions: dict[str, float] = {}
    with ExitStack() as stack:
        started = {
            name: stack.enter_context(_start(name, promise, port, profile=False)) for name, promise in PROMISES.items()
        }
        for gateway in started.values():
            await costs.call(gateway.port, gateway.key, kind, 500)  # not counted
        for _ in range(rounds):
            for gateway in started.values():
                busy = gateway.processor_seconds()
                await costs.call(gateway.port, gateway.key, kind, calls)
                gateway.microseconds.append((gateway.processor_seconds() - busy) / calls * 1e6)
    few = 500
    for name, promise in PROMISES.items():

        def note(file: Path, name: str = name) -> None:
            functions[name] = _functions_called(file, few)

        with _start(name, promise, port, profile=True, note=note) as gateway:
            await costs.call(gateway.port, gateway.key, kind, few)
            gateway.read_counts()
            await costs.call(gateway.port, gateway.key, kind, few)
            gateway.read_counts()
    server.close()
    whole = started["whole"].microseconds
    spread = f"{min(whole):.0f}-{max(whole):.0f}"
    print(f"{statistics.median(whole):.0f} µs ({spread}) and {functions['whole']:.0f} functions for a call")
    for name, promise in PROMISES.items():
        if name != "whole":
            saved = [most - less for most, less in zip(whole, started[name].microseconds, strict=True)]
            spread = f"{min(saved):.0f}-{max(saved):.0f}"
            count = functions["whole"] - functions[name]
            print(f"  {statistics.median(saved):5.0f} µs ({spread}), {count:4.0f} functions: {promise.told}")


def _start(name: str, promise: Promise, port: int, *, profile: bool, note: Callable[[Path], None] | None = None) -> Any:
    variables = {"BENCH_WITHOUT": name, **dict(promise.variables)}
    return costs.start(sys.executable, port, "", profile, variables, note, program="bench.promises")


def main(short: bool = False, calls: int = 3000, rounds: int = 5) -> None:
    import uvloop

    uvloop.run(measure(1, 300) if short else measure(rounds, calls))


if __name__ == "__main__":
    if sys.argv[1:2] == ["serve"]:
        run_gateway()
        sys.exit()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=3000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--short", action="store_true")
    options = parser.parse_args()
    main(options.short, options.calls, options.rounds)
