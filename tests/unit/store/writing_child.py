"""A process that writes notes and prints those that were acknowledged, until it has written enough or is killed."""

import asyncio
import itertools
import os
import sys
from pathlib import Path

from penstock.store.base import Store, Transaction
from tests.unit.store import small_schema


async def write(store: Store, note: str) -> None:
    async def work(transaction: Transaction) -> None:
        await transaction.run("add_note", id=note, account="a", body=b"x" * 500, size=500)
        await transaction.run("put_amount", id="a", amount=1)

    await store.write(work)
    os.write(1, f"{note}\n".encode())


async def main() -> None:
    dialect, address, migrations, *number = sys.argv[1:]
    limit = int(number[0]) if number else 1_000_000
    notes = (f"n{count:06}" for count in itertools.count())
    async with small_schema.database(
        "sqlite" if dialect == "sqlite" else "postgres", address, Path(migrations)
    ).open() as store:
        await store.write(small_schema.add_account("a"))
        for _ in range(limit // 20):
            await asyncio.gather(*(write(store, next(notes)) for _ in range(20)))


if __name__ == "__main__":
    asyncio.run(main())
