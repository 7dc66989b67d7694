"""What every store does, on both databases."""

import asyncio
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from penstock.store.base import ConstraintViolated, QueryMisused, StorageUnavailable, Transaction, single
from tests.unit.store.small_schema import Database, Work, add_account, add_note

ROOT = Path(__file__).parents[3]


def test_single_accepts_no_row_or_one() -> None:
    assert single("get_x", []) is None
    assert single("get_x", [{"a": 1}]) == {"a": 1}
    with pytest.raises(QueryMisused, match="get_x must return one row at most, but returned 2"):
        single("get_x", [{"a": 1}, {"a": 2}])


async def test_a_transaction_is_written_and_read_back(database: Database) -> None:
    async def work(transaction: Transaction) -> Any:
        assert await transaction.run("add_account", id="a", available=7) == 1
        assert await transaction.one("get_account", id="b") is None
        assert await transaction.all("list_accounts") == [{"id": "a", "available": 7}]
        return await transaction.one("put_amount", id="a", amount=3)

    async with database.open() as store:
        assert store.dialect == database.dialect
        assert await store.write(work) == {"id": "a", "available": 10}
        assert await store.one("get_account", id="a") == {"id": "a", "available": 10}
        assert await store.all("list_accounts") == [{"id": "a", "available": 10}]
        assert await store.slow("list_accounts") == [{"id": "a", "available": 10}]
    async with database.open() as store:
        assert await store.one("get_account", id="a") == {"id": "a", "available": 10}


async def test_run_counts_the_rows_it_changed(database: Database) -> None:
    async def work(transaction: Transaction) -> list[int]:
        return [
            await transaction.run("add_account", id="a", available=1),
            await transaction.run("take_amount", id="a", amount=5),
            await transaction.run("put_amount", id="a", amount=5),  # its rows of RETURNING are not read
            await transaction.run("take_amount", id="a", amount=5),
            await transaction.run("drop_notes", account="a"),
        ]

    async with database.open() as store:
        assert await store.write(work) == [1, 0, 1, 1, 0]


async def test_run_many_counts_all_changed_rows(database: Database) -> None:
    async def work(transaction: Transaction) -> list[int]:
        several = [{"id": name, "available": 1} for name in "abc"]
        taken = [{"id": name, "amount": amount} for name, amount in (("a", 1), ("b", 5), ("c", 1))]
        return [
            await transaction.run_many("add_account", several),
            await transaction.run_many("take_amount", taken),
            await transaction.run_many("take_amount", []),
        ]

    async def misused(transaction: Transaction) -> int:
        return await transaction.run_many("add_account", [{"id": "d", "available": 1}, {"id": "e"}])

    async with database.open() as store:
        assert await store.write(work) == [3, 2, 0]
        with pytest.raises(QueryMisused, match="add_account: missing"):
            await store.write(misused)
        assert [row["id"] for row in await store.all("list_accounts")] == ["a", "b", "c"]


async def test_each_returns_the_rows_of_every_statement_in_its_place(database: Database) -> None:
    async def work(transaction: Transaction) -> Any:
        return await transaction.each(
            [
                ("add_account", {"id": "a", "available": 1}),
                ("add_account", {"id": "b", "available": 2}),
                ("put_amount", {"id": "a", "amount": 5}),
                ("put_amount", {"id": "nobody", "amount": 5}),
                ("put_amount", {"id": "b", "amount": 5}),
                ("take_amount", {"id": "a", "amount": 1}),
                ("get_account", {"id": "a"}),
            ]
        )

    async with database.open() as store:
        a, b = {"id": "a", "available": 6}, {"id": "b", "available": 7}
        assert await store.write(work) == [[], [], [a], [], [b], [], [{"id": "a", "available": 5}]]


async def test_run_each_returns_how_many_rows_the_queries_of_each_name_changed(database: Database) -> None:
    async def work(transaction: Transaction) -> Counter[str]:
        return await transaction.run_each(
            [
                ("add_account", {"id": "a", "available": 1}),
                ("add_account", {"id": "b", "available": 2}),
                ("take_amount", {"id": "a", "amount": 1}),
                ("take_amount", {"id": "a", "amount": 1}),
                ("take_amount", {"id": "b", "amount": 1}),
                ("add_account", {"id": "c", "available": 3}),
            ]
        )

    async def read(transaction: Transaction) -> Counter[str]:
        return await transaction.run_each([("get_account", {"id": "a"})])

    async with database.open() as store:
        assert await store.write(work) == {"add_account": 3, "take_amount": 2}
        assert await store.one("get_account", id="b") == {"id": "b", "available": 1}
        with pytest.raises(QueryMisused, match="get_account changes nothing"):
            await store.write(read)


async def test_values_have_the_same_types_on_both_databases(database: Database) -> None:
    body = bytes(range(256))
    async with database.open() as store:
        assert await store.one("sum_notes") == {"count": 0, "total": None, "mean": None, "found": 0}
        await store.write(add_account("a", 2**63 - 1))
        await store.write(add_note("n", "a", body))
        assert await store.one("get_note", id="n") == {"id": "n", "account": "a", "body": body, "size": 256}
        assert await store.one("get_account", id="a") == {"id": "a", "available": 2**63 - 1}
        summed = await store.one("sum_notes")
        assert summed == {"count": 1, "total": 256, "mean": 256.0, "found": 1}
        assert [type(value) for value in summed.values()] == [int, int, float, int]
        echoed = await store.one("echo_values", text="ü%:x", number=True)
        assert echoed == {"text": "ü%:x", "number": 1, "twice": 2, "all": "100%"}
        assert type(echoed["number"]) is int
        # The sum needs a larger type than its parameters.
        assert (await store.one("echo_values", text=None, number=30_000) or {})["twice"] == 60_000


async def test_a_failed_transaction_changes_nothing_and_does_not_affect_others(database: Database) -> None:
    async def failing(transaction: Transaction) -> None:
        await transaction.run("add_account", id="bad", available=1)
        raise LookupError("no")

    async with database.open() as store:
        works: list[Work] = [add_account(f"good{number}") for number in range(10)]
        works.insert(5, failing)
        outcomes = await asyncio.gather(*map(store.write, works), return_exceptions=True)
        assert [outcome for outcome in outcomes if outcome != 1] == [outcomes[5]]
        assert isinstance(outcomes[5], LookupError)
        assert [row["id"] for row in await store.all("list_accounts")] == [f"good{number}" for number in range(10)]


async def test_a_caught_failure_still_rolls_back_the_transaction(database: Database) -> None:
    seen: list[Exception] = []

    async def stubborn(transaction: Transaction) -> str:
        await transaction.run("add_account", id="b", available=1)
        for _ in range(2):
            try:
                await transaction.run("add_account", id="a", available=1)
            except ConstraintViolated as error:
                seen.append(error)
        return "fine"

    async with database.open() as store:
        await store.write(add_account("a"))
        with pytest.raises(ConstraintViolated):
            await store.write(stubborn)
        assert seen[0] is seen[1]
        assert await store.one("get_account", id="b") is None


@pytest.mark.parametrize(
    ("kind", "name", "values"),
    [
        ("unique", "add_account", {"id": "a", "available": 1}),
        ("check", "take_blindly", {"id": "a", "amount": 9}),
        ("not_null", "add_account", {"id": "b", "available": None}),
        ("foreign_key", "add_note", {"id": "n", "account": "nobody", "body": None, "size": None}),
    ],
)
async def test_violated_constraints_are_named(database: Database, kind: str, name: str, values: dict[str, Any]) -> None:
    async with database.open() as store:
        await store.write(add_account("a", 5))
        with pytest.raises(ConstraintViolated) as caught:
            await store.write(lambda transaction: transaction.run(name, **values))
        assert caught.value.kind == kind
        assert await store.all("list_accounts") == [{"id": "a", "available": 5}]


async def test_balance_for_seven_is_spent_exactly_seven_times(database: Database) -> None:
    async def take(transaction: Transaction) -> None:
        if not await transaction.run("take_amount", id="a", amount=10):
            raise LookupError("nothing left")

    async with database.open() as store:
        await store.write(add_account("a", 75))
        outcomes = await asyncio.gather(*(store.write(take) for _ in range(200)), return_exceptions=True)
        assert sum(outcome is None for outcome in outcomes) == 7
        assert sum(isinstance(outcome, LookupError) for outcome in outcomes) == 193
        assert await store.one("get_account", id="a") == {"id": "a", "available": 5}


async def test_reads_never_see_what_is_not_committed(database: Database) -> None:
    """Every read sees 100 in both accounts together."""

    async def move(transaction: Transaction) -> None:
        await transaction.run("take_blindly", id="a", amount=1)
        await transaction.run("put_amount", id="b", amount=1)

    async with database.open() as store, database.open() as other:
        await store.write(add_account("a", 100))
        await store.write(add_account("b", 0))
        moves = [asyncio.create_task(store.write(move)) for _ in range(50)]
        while not all(task.done() for task in moves):
            for reader in (store.all, store.slow, other.all):
                rows = await reader("list_accounts")
                assert sum(row["available"] for row in rows) == 100
            await asyncio.sleep(0)
        await asyncio.gather(*moves)
        assert await store.one("get_account", id="b") == {"id": "b", "available": 50}


async def test_misused_queries_are_refused(database: Database) -> None:
    leaked: list[Transaction] = []

    async def leak(transaction: Transaction) -> None:
        leaked.append(transaction)

    async def misread(transaction: Transaction) -> None:
        await transaction.run("get_account", id="a")

    async with database.open() as store:
        await store.write(leak)
        with pytest.raises(QueryMisused, match="has ended"):
            await leaked[0].run("add_account", id="a", available=1)
        with pytest.raises(QueryMisused, match="no query named get_nothing"):
            await store.one("get_nothing")
        with pytest.raises(QueryMisused, match=r"missing parameters \['id'\], unknown parameters \['ide'\]"):
            await store.one("get_account", ide="a")
        with pytest.raises(QueryMisused, match=r"unknown parameters \['x'\]"):
            await store.write(lambda transaction: transaction.all("list_accounts", x=1))
        with pytest.raises(QueryMisused, match="writes, so it needs a transaction"):
            await store.all("put_amount", id="a", amount=1)
        with pytest.raises(QueryMisused, match="changes nothing"):
            await store.write(misread)
        await store.write(add_account("a"))
        await store.write(add_account("b"))
        with pytest.raises(QueryMisused, match="must return one row at most, but returned 2"):
            await store.one("list_accounts")


async def test_a_slow_read_does_not_block_writes(database: Database) -> None:
    async with database.open() as store:
        for number in range(55):
            await store.write(add_account(f"a{number:02}"))
        for attempt in range(20):  # where writes take long, a read may end before the first of them
            slow = asyncio.create_task(store.slow("count_pairs"))
            written = 0
            while not slow.done():
                await store.write(add_account(f"b{attempt:02}{written:05}"))
                written += 1
            assert (await slow)[0]["count"] >= 55**2 * 55 * 56 // 2
            if written > 1:  # the first ended before the read did, or there would be no second one
                return
        pytest.fail("each write waited for the read")


async def test_a_cancelled_caller_does_not_affect_others(database: Database) -> None:
    async with database.open() as store:
        tasks = [asyncio.create_task(store.write(add_account(f"a{number}"))) for number in range(9)]
        await asyncio.sleep(0)
        tasks[4].cancel()
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        assert isinstance(outcomes.pop(4), asyncio.CancelledError)
        assert outcomes == [1] * 8
        there = {row["id"] for row in await store.all("list_accounts")}
        assert there >= {f"a{number}" for number in range(9) if number != 4}


async def test_close_finishes_accepted_writes_and_refuses_others(database: Database) -> None:
    async with database.open() as store:
        tasks = [asyncio.create_task(store.write(add_account(f"a{number:02}"))) for number in range(40)]
        await asyncio.sleep(0)
        await store.close()
        assert await asyncio.gather(*tasks) == [1] * 40
        with pytest.raises(StorageUnavailable):
            await store.write(add_account("b"))
        with pytest.raises(StorageUnavailable):
            await store.all("list_accounts")
        with pytest.raises(StorageUnavailable):
            await store.slow("list_accounts")
    async with database.open() as store:
        assert len(await store.all("list_accounts")) == 40


async def start_child(database: Database, migrations: Path, *number: str) -> asyncio.subprocess.Process:
    module = ("-m", "tests.unit.store.writing_child")
    target = (database.dialect, database.address, str(migrations), *number)
    return await asyncio.create_subprocess_exec(
        sys.executable, *module, *target, stdout=asyncio.subprocess.PIPE, cwd=ROOT
    )


async def test_nothing_acknowledged_is_lost_by_kill_9(database: Database, migrations: Path) -> None:
    child = await start_child(database, migrations)
    assert child.stdout is not None
    acknowledged = [(await child.stdout.readline()).decode().strip() for _ in range(300)]
    child.kill()
    # Lines that were written before the kill but not read yet; the last one may be incomplete.
    acknowledged += (await child.stdout.read()).decode().split("\n")[:-1]
    await child.wait()
    async with database.open() as store:
        kept = {row["id"] for row in await store.slow("list_notes")}
        account = await store.one("get_account", id="a")
    assert set(acknowledged) <= kept
    assert len(acknowledged) == len(set(acknowledged)) >= 300
    # Each note was written together with a change of the balance: both or neither.
    assert account == {"id": "a", "available": len(kept)}


async def test_two_processes_write_at_the_same_time(database: Database, migrations: Path) -> None:
    child = await start_child(database, migrations, "100")
    assert child.stdout is not None
    assert await child.stdout.readline()
    async with database.open() as store:

        async def write(number: int) -> None:
            async def work(transaction: Transaction) -> None:
                await transaction.run("add_note", id=f"mine{number:03}", account="a", body=None, size=None)
                await transaction.run("put_amount", id="a", amount=1)

            await store.write(work)

        await asyncio.gather(*(write(number) for number in range(100)))
        await child.communicate()
        assert child.returncode == 0
        assert len(await store.slow("list_notes")) == 200
        assert await store.one("get_account", id="a") == {"id": "a", "available": 200}
