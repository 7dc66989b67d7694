"""How many durable writes a store takes in a second, what each costs, and how many waits for the disk they share.

    python bench/store.py [--seconds 2] [--postgres postgresql://…/empty_database]

A write is three statements in one transaction, as for a request that is accepted: insert a row, move money under a
condition, insert a transfer. `cpu` is processor time of the whole process, system calls included. Waits for the disk
are counted in a second pass, because counting them goes through Python and takes time itself.
"""

import argparse
import asyncio
import itertools
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import apsw
import uvloop

from penstock.store.base import Store, Transaction
from penstock.store.migrate import read_migrations
from penstock.store.postgres import open_postgres
from penstock.store.queries import parse_queries
from penstock.store.sqlite import open_sqlite

WRITERS = (1, 10, 64, 100, 1000)

SCHEMA = """
CREATE TABLE accounts (id TEXT PRIMARY KEY, available BIGINT NOT NULL, held BIGINT NOT NULL);
CREATE TABLE requests (id TEXT PRIMARY KEY, account TEXT NOT NULL, status TEXT NOT NULL, body {blob}) {without_rowid};
CREATE TABLE transfers (id {serial}, request_id TEXT NOT NULL, amount BIGINT NOT NULL);
INSERT INTO accounts VALUES ('org_1', 1000000000000000, 0);
"""
QUERIES = """
-- name: add_request
-- One row per request.
INSERT INTO requests (id, account, status, body) VALUES (:id, :account, 'pending', :body)

-- name: hold_amount
-- Set money aside if it is there.
UPDATE accounts SET available = available - :amount, held = held + :amount
WHERE id = :account AND available >= :amount

-- name: add_transfer
-- Write down that it was.
INSERT INTO transfers (request_id, amount) VALUES (:request_id, :amount)

-- name: get_request
-- One request.
SELECT id, account, status FROM requests WHERE id = :id
"""
BODY = b'{"model":"atelier/sketch","prompt":"a lighthouse in the rain"}' * 4


class CountingSystem(apsw.VFS):
    """The system's files, with every wait for the disk counted."""

    def __init__(self) -> None:
        self.waits = 0
        super().__init__("counting", "unix")

    def xOpen(self, name: Any, flags: Any) -> Any:  # noqa: N802
        return CountingFile(self, name, flags)


class CountingFile(apsw.VFSFile):
    def __init__(self, system: CountingSystem, name: Any, flags: Any) -> None:
        self._system = system
        super().__init__("unix", name, flags)

    def xSync(self, flags: Any) -> None:  # noqa: N802
        self._system.waits += 1
        super().xSync(flags)


async def write_for(store: Store, writers: int, seconds: float) -> tuple[int, float, float, list[float]]:
    """Writes done, wall seconds, processor seconds, and how long each write took."""
    ids = itertools.count(time.time_ns())
    delays: list[float] = []
    end = time.perf_counter() + seconds

    async def writer() -> None:
        while (start := time.perf_counter()) < end:
            await accept(store, f"req_{next(ids):020d}")
            delays.append(time.perf_counter() - start)

    wall, processor = time.perf_counter(), time.process_time()
    await asyncio.gather(*(writer() for _ in range(writers)))
    return len(delays), time.perf_counter() - wall, time.process_time() - processor, sorted(delays)


async def accept(store: Store, request_id: str) -> None:
    async def work(transaction: Transaction) -> int:
        await transaction.run("add_request", id=request_id, account="org_1", body=BODY)
        await transaction.run("hold_amount", account="org_1", amount=40_000_000)
        return await transaction.run("add_transfer", request_id=request_id, amount=40_000_000)

    assert await store.write(work) == 1


async def measure(opened: Callable[[], Awaitable[Store]], seconds: float, system: CountingSystem | None) -> None:
    for writers in WRITERS:
        store = await opened()
        await write_for(store, writers, 0.2)
        count, wall, processor, delays = await write_for(store, writers, seconds)
        await store.close()
        line = f"{writers:>7} {count / wall:>9.0f} {processor / count * 1e6:>8.1f}"
        line += f" {delays[len(delays) // 2] * 1e3:>8.2f} {delays[int(len(delays) * 0.99)] * 1e3:>8.2f}"
        line += f" {delays[-1] * 1e3:>8.2f}"
        if system is not None:
            line += f" {await waits_per_write(opened, writers, system):>10.3f}"
        print(line, flush=True)


async def waits_per_write(opened: Callable[[], Awaitable[Store]], writers: int, system: CountingSystem) -> float:
    apsw.set_default_vfs("counting")
    store = await opened()
    before = system.waits
    count, *_ = await write_for(store, writers, 0.5)
    waits = system.waits - before
    await store.close()
    apsw.set_default_vfs("unix")
    return waits / count


async def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the store.")
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--postgres", help="address of an empty database")
    asked = parser.parse_args()
    queries = parse_queries(QUERIES)
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "0001_begin.sql").write_text(SCHEMA)
        migrations = read_migrations(Path(folder))
        names = (Path(folder) / f"{number}.db" for number in itertools.count())
        heading = "writers  writes/s   cpu µs   p50 ms   p99 ms   max ms"
        print(f"SQLite\n{heading} waits/write")
        await measure(lambda: open_sqlite(next(names), queries, migrations), asked.seconds, CountingSystem())
        if asked.postgres:
            print(f"Postgres\n{heading}")
            await measure(lambda: open_postgres(asked.postgres, queries, migrations), asked.seconds, None)


if __name__ == "__main__":
    uvloop.run(main())
