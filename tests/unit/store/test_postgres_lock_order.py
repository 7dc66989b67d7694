"""The order in which transactions lock tables: that the check works, and that no two transactions deadlock."""

import re
from pathlib import Path

import pytest

from penstock.store.base import Transaction
from penstock.store.migrate import package_migrations
from penstock.store.queries import package_queries
from tests import lock_order
from tests.databases import database_for


def test_every_table_has_a_place_in_the_order() -> None:
    schema = "".join(path.read_text() for path in Path(lock_order.PAGE.parents[2] / "src").rglob("migrations/*.sql"))
    tables = set(re.findall(r"^CREATE TABLE (\w+)", schema, re.MULTILINE))
    tables -= set(re.findall(r"^ALTER TABLE (\w+) RENAME TO", schema, re.MULTILINE))  # made anew under another name
    assert tables
    assert {*tables, "procrastinate_jobs"} == set(lock_order.ORDER)
    assert package_migrations()


def test_the_tables_of_every_query_are_found() -> None:
    queries = package_queries().postgres
    for query in queries.values():
        assert set(lock_order.locked_tables(query.sql)) <= set(lock_order.ORDER), query.name
        assert bool(lock_order.locked_tables(query.sql)) >= query.writes, query.name
    assert lock_order.locked_tables(queries["lock_key"].sql) == ["keys"]
    assert set(lock_order.locked_tables(queries["claim_generations"].sql)) == {"generations"}
    assert lock_order.locked_tables(queries["defer_generation"].sql) == ["procrastinate_jobs"]


async def test_another_order_is_found(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    violations = lock_order.watch(monkeypatch)

    async def lock_key_last(tx: Transaction) -> None:
        await tx.run("add_credit", org_id="org_x", amount=1)
        await tx.one("lock_key", id="key_x")

    async def lock_unsorted_keys(tx: Transaction) -> None:
        await tx.one("lock_key", id="key_y")
        await tx.one("lock_key", id="key_x")

    async with database_for(request, "postgres").open() as store:
        await store.write(lock_key_last)
        await store.write(lock_unsorted_keys)
    assert violations == ["keys after orgs: add_credit, lock_key", "rows of keys not in order: lock_key, lock_key"]
