"""Rows that belong to others, read by ids."""

from pathlib import Path

from penstock.store.base import Row, Transaction
from penstock.store.related import read_related
from penstock.values import new_id
from tests.databases import sqlite_database


async def test_rows_are_read_by_ids_of_one_organization(tmp_path: Path) -> None:
    async with sqlite_database(tmp_path / "penstock.db").open() as store:
        org_id, other = new_id("org", 1), new_id("org", 2)
        keys = [new_id("key", number) for number in range(3)]
        for number, owner in enumerate((org_id, org_id, other)):
            columns = {
                "id": keys[number],
                "org_id": owner,
                "name": f"key '{number}'",
                "last_four": "abcd",
                "digest": bytes([number]),
                "scopes": "",
                "requests_per_minute": None,
                "concurrent_requests": None,
                "nanos_per_day": None,
                "nanos_per_month": None,
                "models": None,
                "expires_at_ms": None,
                "replay_mode": None,
                "image_response_format": None,
                "labels": None,
                "user_id": None,
                "created_at_ms": 1,
            }

            async def write(tx: Transaction, columns: Row = columns, owner: str = owner, number: int = number) -> None:
                if number != 1:
                    await tx.run("add_org", id=owner, name="o", billing="prepaid", created_at_ms=1)
                await tx.run("add_key", **columns)

            await store.write(write)
        rows = await read_related(store, "list_names_of_keys", keys, org_id=org_id)
        assert {row["id"]: row["name"] for row in rows} == {keys[0]: "key '0'", keys[1]: "key '1'"}
        assert await read_related(store, "list_names_of_keys", [], org_id=org_id) == []
