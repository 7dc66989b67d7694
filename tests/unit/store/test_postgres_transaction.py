"""A transaction on Postgres: which statements are sent together, and how its errors end it."""

import pytest

from penstock.store.base import ConstraintViolated, Transaction
from tests.databases import watch_round_trips
from tests.unit.store.small_schema import Database, add_account, add_note, note


@pytest.fixture
def round_trips(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    return watch_round_trips(monkeypatch)


async def test_statements_without_a_result_wait_for_the_next_or_the_commit(
    postgres_database: Database, round_trips: list[list[str]]
) -> None:
    async with postgres_database.open() as store:
        await store.write(add_account("a", 1000))
        round_trips.clear()

        async def work(tx: Transaction) -> int:
            await tx.put("add_note", **note("n1"))
            await tx.put_many("add_note", [note("n2"), note("n3")])
            changed = await tx.run("take_amount", id="a", amount=1)
            await tx.put("put_amount", id="a", amount=1)
            return changed

        assert await store.write(work) == 1
        assert round_trips == [
            ["begin", "add_note", "add_note", "take_amount"],  # one statement for the two rows
            ["put_amount", "commit"],
        ]
        round_trips.clear()
        await store.write(lambda tx: tx.put("add_note", **note("n4")))
        # BEGIN alone: it shows whether the connection is still open before anything could be committed.
        assert round_trips == [["begin"], ["add_note", "commit"]]
        assert await store.one("get_account", id="a") == {"id": "a", "available": 1000}
        assert [row["id"] for row in await store.all("list_notes")] == ["n1", "n2", "n3", "n4"]


async def test_an_error_of_a_waiting_statement_undoes_the_transaction(database: Database) -> None:
    async with database.open() as store:
        await store.write(add_account("a", 1000))

        async def fail_at_commit(tx: Transaction) -> None:
            await tx.run("put_amount", id="a", amount=1)
            await tx.put("add_note", **note("n", account="missing"))
            await tx.put("put_amount", id="a", amount=1)

        async def fail_at_the_next(tx: Transaction) -> None:
            await tx.put("put_amount", id="a", amount=1)
            await tx.put("take_blindly", id="a", amount=5000)
            await tx.one("get_account", id="a")

        for work, kind in ((fail_at_commit, "foreign_key"), (fail_at_the_next, "check")):
            with pytest.raises(ConstraintViolated) as caught:
                await store.write(work)
            assert caught.value.kind == kind
            assert await store.one("get_account", id="a") == {"id": "a", "available": 1000}
        assert await store.write(add_note("n")) == 1
