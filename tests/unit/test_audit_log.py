"""The audit log: written with the change, one chain, and a row that is changed by hand is noticed."""

import asyncio
import hashlib
import json
from contextlib import closing

import apsw
import psycopg
import pytest

from penstock.audit_log import (
    EVERYTHING,
    GATEWAY,
    NO_HASH,
    Act,
    Actor,
    Note,
    act_as,
    changed,
    note_act,
    read_events,
    read_head,
    verify_chain,
    write_audited,
)
from penstock.store.base import Store, Transaction
from penstock.values import OrgId
from tests.databases import Database
from tests.gateway import OpenGateway

WITHOUT_TRIGGERS = {
    "sqlite": "DROP TRIGGER audit_events_stay; DROP TRIGGER audit_events_remain; ",
    "postgres": "SET session_replication_role = replica; ",
}
ACME = OrgId("org_acme")
NO_FILTERS = dict.fromkeys(("actor", "action", "target", "created_after", "created_before"))


async def change_by_hand(database: Database, statements: str) -> None:
    """Do what somebody can who has the database itself."""
    whole = WITHOUT_TRIGGERS[database.dialect] + statements
    if database.dialect == "sqlite":
        with closing(apsw.Connection(database.address)) as connection:
            connection.execute(whole)
        return
    async with await psycopg.AsyncConnection.connect(database.address, autocommit=True) as other:
        await other.execute(whole.encode())


async def events(store: Store, org_id: OrgId = EVERYTHING) -> list[dict[str, object]]:
    return [row.record() async for row in read_events(store, org_id, **NO_FILTERS)]


async def test_each_event_is_chained_to_the_one_before(database: Database) -> None:
    async with database.open() as store:
        assert await read_head(store) == {"id": None, "hash": NO_HASH}
        assert (await verify_chain(store)) == (0, NO_HASH, None)
        act_as(Actor("key_1", "10.0.0.7", "req_1"))
        await note_act(store, 1_000, Act("key.created", "key_2", ACME, after={"name": "é", "usd_per_day": "2.5"}))
        act_as(GATEWAY)
        await note_act(store, 2_000, Act("account.added", "acc_1"))
        first, second = await events(store)
        assert (first["actor"], first["address"], first["request_id"]) == ("key_1", "10.0.0.7", "req_1")
        assert (second["actor"], second["previous"]) == ("gateway", first["hash"])
        assert await read_head(store) == {"id": second["id"], "hash": second["hash"]}
        assert (await verify_chain(store)) == (2, second["hash"], None)


async def test_a_stranger_can_compute_the_chain_from_an_export(database: Database) -> None:
    async with database.open() as store:
        for number in range(3):
            await note_act(store, number, changed("key.changed", "key_ü", ACME, {"name": "\n\u2028"}, {"name": number}))
        last = NO_HASH
        for event in await events(store):
            previous, digest = event.pop("previous"), event.pop("hash")
            body = json.dumps(event, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
            assert previous == last
            assert digest == hashlib.sha256((last + body).encode()).hexdigest()
            last = str(digest)


async def test_an_event_is_written_with_its_change_or_not_at_all(database: Database) -> None:
    async with database.open() as store:

        async def fail(tx: Transaction, note: Note) -> None:
            await tx.run("add_fact", name="colour", value="blue")
            note(Act("colour.changed", "colour"))
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await write_audited(store, 0, fail)
        assert await events(store) == []
        assert await store.one("get_fact", name="colour") is None


async def test_events_of_many_tasks_at_once_are_one_chain(database: Database) -> None:
    async with database.open() as one, database.open() as other:
        stores = (one, other) if database.dialect == "postgres" else (one, one)
        await asyncio.gather(*(note_act(stores[n % 2], n, Act("key.revoked", f"key_{n}", ACME)) for n in range(20)))
        found = await verify_chain(one)
        assert (found.events, found.problem) == (20, None)
        assert sorted(str(event["target"]) for event in await events(one)) == sorted(f"key_{n}" for n in range(20))


async def test_the_database_refuses_to_change_and_to_delete_events(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        for statement in ("DELETE FROM audit_events", "UPDATE audit_events SET actor = 'nobody'"):
            with pytest.raises(Exception, match="events of the audit log"):
                await running.change(statement)
        assert (await verify_chain(running.gateway.store)).problem is None


@pytest.mark.parametrize(
    ("tampering", "problem"),
    [
        ("DELETE FROM audit_events WHERE id LIKE '%2'", "2 is missing"),
        ("DELETE FROM audit_events WHERE id LIKE '%4'", "was added"),
        ("DELETE FROM audit_events", "was added"),
        ("UPDATE audit_events SET body = replace(body, 'key_3', 'key_9') WHERE id LIKE '%3'", "3 was changed"),
        ("UPDATE audit_events SET actor = 'nobody' WHERE id LIKE '%2'", "a column differs"),
        ("UPDATE audit_events SET at_ms = at_ms + 1 WHERE id LIKE '%2'", "a column differs"),
        ("UPDATE audit_events SET hash = previous WHERE id LIKE '%4'", "4 was changed"),
        ("UPDATE audit_heads SET hash = 'x'", "not the event that was added last"),
    ],
)
async def test_what_is_done_to_the_rows_by_hand_is_noticed(database: Database, tampering: str, problem: str) -> None:
    async with database.open() as store:
        for number in range(1, 5):
            await note_act(store, number, Act("key.revoked", f"key_{number}", ACME))
        assert (await verify_chain(store)).problem is None
    await change_by_hand(database, tampering)
    async with database.open() as store:
        assert problem in str((await verify_chain(store)).problem)


async def test_a_chain_that_was_written_anew_lacks_the_hash_that_was_kept_elsewhere(database: Database) -> None:
    async with database.open() as store:
        await note_act(store, 1, Act("key.revoked", "key_1", ACME))
        kept = str((await read_head(store))["hash"])
        await note_act(store, 2, Act("key.revoked", "key_2", ACME))
        assert (await verify_chain(store, kept)).problem is None
    await change_by_hand(database, "DELETE FROM audit_events; DELETE FROM audit_heads")
    async with database.open() as store:
        await note_act(store, 1, Act("key.revoked", "key_3", ACME))
        assert (await verify_chain(store)).problem is None
        assert kept in str((await verify_chain(store, kept)).problem)
