"""Measure chat, images and videos on Postgres, each kind alone and all together, for one organization and for eight.

    python -m bench.mixed [--seconds 12] [--rounds 4] [--callers 8] [--short]

One process runs the gateway, the callers and a fake provider that responds at once; Postgres is another process, which
waits for the disk. The share is the sum, over the kinds, of the calls a second in the mix divided by those alone: about
1 where the kinds only share the processor, less where they wait for each other. Each measurement is made in rounds that
take turns, so that other work on the machine disturbs all of them alike. Deadlocks are counted by Postgres.
"""

import argparse
import asyncio
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from functools import partial
from itertools import cycle
from pathlib import Path

import msgspec
import psycopg

from penstock.accounts.orgs import create_org
from penstock.accounts.transfers import add_credit
from penstock.app.background import run_background_work
from penstock.app.build import build_gateway
from penstock.app.first_start import ensure_first_key
from penstock.chat.endpoint import complete_chat
from penstock.clock import Clock
from penstock.gateway import Gateway
from penstock.generations import endpoints
from penstock.schema import Call, Caller
from penstock.settings import Settings
from penstock.store.base import Transaction
from penstock.values import OrgId, nanos, new_id
from tests import postgres
from tests.fake_providers.scripted import KEY, KEY_ENV, scripted_provider

IDLE_SECONDS = 60
BODIES = {
    "chat": {"model": "lab/chat", "messages": [{"role": "user", "content": "hello"}], "max_tokens": 10},
    "images": {"model": "image-1", "prompt": "a pear", "size": "64x64"},
    "videos": {"model": "video-1", "prompt": "a train", "seconds": 1},
}
ENDPOINTS: dict[str, Callable[[Gateway, Call], Awaitable[object]]] = {
    "chat": complete_chat,
    "images": endpoints.make_images,
    "videos": endpoints.start_video,
}


class Bench:
    """A running gateway and the callers of its organizations."""

    def __init__(self, gateway: Gateway) -> None:
        self.gateway = gateway

    async def callers(self, orgs: int) -> list[Caller]:
        found = []
        for _ in range(orgs):
            org = await create_org(self.gateway.store, self.gateway.clock, "bench", "prepaid")
            await self.gateway.store.write(partial(_add_credit, org.id))
            key = await self.gateway.keys.create_key(org.id)
            found.append(await self.gateway.keys.authenticate(f"Bearer {key.key}"))
        return found

    async def call(self, kind: str, caller: Caller) -> None:
        at_ms = self.gateway.clock.now_ms()
        data = msgspec.json.encode(BODIES[kind])
        call = Call(
            id=new_id("req", at_ms),
            caller=caller,
            endpoint=kind,
            at_ms=at_ms,
            started=self.gateway.clock.monotonic(),
            headers={},
            query={},
            path={},
            body=data,
            json=msgspec.json.decode(data),
            size_bytes=len(data),
            base_url="http://gateway.test",
        )
        await ENDPOINTS[kind](self.gateway, call)

    async def measure(
        self, kinds: Sequence[str], callers: Sequence[Caller], at_once: int, seconds: float
    ) -> Counter[str]:
        """Calls of each kind in this time, with `at_once` calls of each kind at a time."""
        counts: Counter[str] = Counter()
        end = time.monotonic() + seconds
        turns = cycle(callers)

        async def repeat(kind: str, caller: Caller) -> None:
            while time.monotonic() < end:
                await self.call(kind, caller)
                counts[kind] += 1

        await asyncio.gather(*(repeat(kind, next(turns)) for kind in kinds for _ in range(at_once)))
        limit = time.monotonic() + IDLE_SECONDS
        while self.gateway.jobs.running and time.monotonic() < limit:  # noqa: ASYNC110 - there is no event for it
            await asyncio.sleep(0.1)
        return counts


async def _add_credit(org_id: OrgId, tx: Transaction) -> None:
    await add_credit(tx, org_id, nanos(1_000_000), 0, "bench")


def deadlocks(database: str) -> int:
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("SELECT pg_stat_clear_snapshot()")
        row = connection.execute("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()").fetchone()
    assert row is not None
    return int(row[0])


async def run(database: str, folder: Path, at_once: int, seconds: float, rounds: int) -> None:
    async with AsyncExitStack() as stack:
        lab = await stack.enter_async_context(scripted_provider())
        settings = Settings(
            data=folder,
            database=database,
            secret="b" * 43,
            providers={"lab": lab.settings()},
            disabled_providers=("atelier",),
        )
        gateway = await stack.enter_async_context(build_gateway(settings, Clock(), {KEY_ENV: KEY}))
        await ensure_first_key(gateway)
        await stack.enter_async_context(run_background_work(gateway))
        bench = Bench(gateway)
        kinds = list(BODIES)
        for orgs in (1, 8):
            callers = await bench.callers(orgs)
            alone: Counter[str] = Counter()
            mixed: Counter[str] = Counter()
            for _ in range(rounds):
                for kind in kinds:
                    alone += await bench.measure([kind], callers, at_once, seconds / rounds)
                mixed += await bench.measure(kinds, callers, at_once, seconds / rounds)
            share = sum(mixed[kind] / max(1, alone[kind]) for kind in kinds)
            print(f"{orgs} organization{'s' if orgs > 1 else ''}, {at_once} calls of each kind at a time")
            for kind in kinds:
                print(f"  {kind:8}{alone[kind] / seconds:9.1f}/s alone {mixed[kind] / seconds:9.1f}/s in the mix")
            print(f"  share of the mix {share:.2f}, deadlocks so far {deadlocks(database)}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=12, help="for each measurement, in all rounds together")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--callers", type=int, default=8)
    parser.add_argument("--short", action="store_true")
    options = parser.parse_args()
    seconds = 1.0 if options.short else options.seconds
    with postgres.server(postgres.COMMON) as url, tempfile.TemporaryDirectory() as folder:
        with psycopg.connect(f"{url}/postgres", autocommit=True) as connection:
            connection.execute("CREATE DATABASE bench")
        rounds = 1 if options.short else options.rounds
        asyncio.run(run(f"{url}/bench", Path(folder), options.callers, seconds, rounds))


if __name__ == "__main__":
    main()
