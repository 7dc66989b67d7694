"""Measure how many durable writes a store takes in a second, what each costs, and how many disk syncs they need.

    python -m bench.store [--seconds 2] [--postgres postgresql://…/empty_database]

A write is three statements in one transaction, as for a request that is accepted: insert a row, hold an amount if it is
available, insert a transfer. `cpu` is the processor time of the whole process with its system calls. Disk syncs are
counted in a second pass, because counting them takes time itself.
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
-- Hold an amount if it is available.
UPDATE accounts SET available = available - :amount, held = held + :amount
WHERE id = :account AND available >= :amount

-- name: add_transfer
-- Record the hold.
INSERT INTO transfers (request_id, amount) VALUES (:request_id, :amount)

-- name: get_request
-- One request.
SELECT id, account, status FROM requests WHERE id = :id
"""
BODY = b'{"model":"atelier/sketch","prompt":"a lighthouse in the rain"}' * 4


class CountingSystem(apsw.VFS):
    """The file system of SQLite, with every disk sync counted."""

    def __init__(self) -> None:
        self.syncs = 0
        super().__init__("counting", "unix")

    def xOpen(self, name: Any, flags: Any) -> Any:  # noqa: N802
        return CountingFile(self, name, flags)


class CountingFile(apsw.VFSFile):
    """A file that counts its disk syncs."""

    def __init__(self, system: CountingSystem, name: Any, flags: Any) -> None:
        self._system = system
        super().__init__("unix", name, flags)

    def xSync(self, flags: Any) -> None:  # noqa: N802
        self._system.syncs += 1
        super().xSync(flags)


async def write_for(store: Store, writers: int, seconds: float) -> tuple[int, float, float, list[float]]:
    """Return the number of writes, wall seconds, processor seconds, and how long each write took."""
    ids = itertools.count(time.time_ns())
    delays: list[float] = []
    end = time.perf_counter() + seconds

    async def writer() -> None:
        while (start := time.perf_counter()) < end:
            await write_request(store, f"req_{next(ids):020d}")
            delays.append(time.perf_counter() - start)

    wall = time.perf_counter()
    processor = time.process_time()
    await asyncio.gather(*(writer() for _ in range(writers)))
    return len(delays), time.perf_counter() - wall, time.process_time() - processor, sorted(delays)


async def write_request(store: Store, request_id: str) -> None:
    async def write(transaction: Transaction) -> int:
        await transaction.run("add_request", id=request_id, account="org_1", body=BODY)
        await transaction.run("hold_amount", account="org_1", amount=40_000_000)
        return await transaction.run("add_transfer", request_id=request_id, amount=40_000_000)

    assert await store.write(write) == 1


async def measure(open_store: Callable[[], Awaitable[Store]], seconds: float, system: CountingSystem | None) -> None:
    for writers in WRITERS:
        store = await open_store()
        await write_for(store, writers, 0.2)
        count, wall, processor, delays = await write_for(store, writers, seconds)
        await store.close()
        line = f"{writers:>7} {count / wall:>9.0f} {processor / count * 1e6:>8.1f}"
        line += f" {delays[len(delays) // 2] * 1e3:>8.2f} {delays[int(len(delays) * 0.99)] * 1e3:>8.2f}"
        line += f" {delays[-1] * 1e3:>8.2f}"
        if system is not None:
            line += f" {await syncs_per_write(open_store, writers, system):>10.3f}"
        print(line, flush=True)


async def syncs_per_write(open_store: Callable[[], Awaitable[Store]], writers: int, system: CountingSystem) -> float:
    apsw.set_default_vfs("counting")
    store = await open_store()
    before = system.syncs
    count, *_ = await write_for(store, writers, 0.5)
    syncs = system.syncs - before
    await store.close()
    apsw.set_default_vfs("unix")
    return syncs / count


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--postgres", help="URL of an empty database")
    options = parser.parse_args()
    queries = parse_queries(QUERIES)
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "0001_begin.sql").write_text(SCHEMA)
        migrations = read_migrations(Path(folder))
        names = (Path(folder) / f"{number}.db" for number in itertools.count())
        heading = "writers  writes/s   cpu µs   p50 ms   p99 ms   max ms"
        print(f"SQLite\n{heading} syncs/write")
        await measure(lambda: open_sqlite(next(names), queries, migrations), options.seconds, CountingSystem())
        if options.postgres:
            print(f"Postgres\n{heading}")
            await measure(lambda: open_postgres(options.postgres, queries, migrations), options.seconds, None)


if __name__ == "__main__":
    uvloop.run(main())
