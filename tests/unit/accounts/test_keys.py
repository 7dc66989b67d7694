"""Keys are made, checked, listed and revoked; everything wrong with one is answered alike."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.accounts import keys as module
from penstock.accounts.keys import Keys, NewKey, is_well_formed, write_key
from penstock.clock import ManualClock
from penstock.errors import AuthenticationFailed, InvalidRequest, NotFound, Problem
from penstock.store.base import Row, Store, Transaction
from penstock.values import new_id
from penstock.vault import SecretRefused, Vault
from tests.databases import Database

VAULT = Vault("v" * 43)


class Counting:
    """A store that counts its reads: the seam under auth."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.reads = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def one(self, name: str, /, **values: Any) -> Row | None:
        self.reads += name == "get_caller"
        return await self._store.one(name, **values)


@asynccontextmanager
async def opened(database: Database) -> AsyncIterator[tuple[Keys, ManualClock, Counting]]:
    async with database.open() as store:
        clock, counting = ManualClock(), Counting(store)
        yield Keys(counting, VAULT, clock), clock, counting


def bearer(new: NewKey) -> str:
    return f"Bearer {new.key}"


async def nothing(tx: Transaction, org_id: str) -> None:
    """No credit for this organization."""


async def refused(auth: Keys, authorization: str | None) -> dict[str, Any]:
    with pytest.raises(AuthenticationFailed) as caught:
        await auth.caller(authorization)
    return {"status": caught.value.status, "headers": caught.value.headers, **caught.value.body()}


# ------------------------------------------------------------------------------------------------------- the key's text


def test_a_key_holds_its_id_a_secret_and_a_checksum() -> None:
    key_id = new_id("key", 1_700_000_000_000)
    key = write_key(key_id)
    start, secret = key.rsplit("_", 1) if key.count("_") == 2 else (key[:35], key[36:])
    assert start == f"pk_{key_id.removeprefix('key_')}"
    assert len(secret) == 49
    assert is_well_formed(key)
    assert len({write_key(key_id) for _ in range(100)}) == 100


@given(st.integers(0, 84), st.characters(codec="ascii"))
def test_one_changed_character_is_noticed(index: int, character: str) -> None:
    key = "pk_01hf4v8g00aaaaaaaaaaaaaaaaaaaaaa_" + "A" * 43
    key += module._check(key)
    assert len(key) == 85
    changed = key[:index] + character + key[index + 1 :]
    assert is_well_formed(changed) is (changed == key)


# -------------------------------------------------------------------------------------------------------------- calling


async def test_a_new_key_calls_for_its_organization(database: Database) -> None:
    async with opened(database) as (auth, _, _):
        org = await auth.create_org("Acme", "postpaid")
        new = await auth.create_key(
            org.id,
            name="ci",
            scopes=["admin"],
            requests_per_minute=60,
            concurrent_requests=4,
            usd_per_day="2.50",
            replay_mode="replay-or-record",
        )
        caller = await auth.caller(bearer(new))
        assert (caller.org_id, caller.key_id, caller.prepaid) == (org.id, new.record["id"], False)
        assert caller.scopes == {"admin"}
        assert (caller.requests_per_minute, caller.concurrent_requests, caller.nanos_per_day) == (60, 4, 2_500_000_000)
        assert caller.replay_mode == "replay-or-record"
        assert caller == await auth.caller(f"bearer {new.key}")

        plain = await auth.caller(bearer(await auth.create_key(org.id)))
        assert plain.scopes == frozenset()
        assert not plain.is_limited


async def test_every_bad_header_gets_the_same_answer(database: Database) -> None:
    async with opened(database) as (auth, _, store):
        org = await auth.create_org("Acme", "prepaid")
        revoked = await auth.create_key(org.id)
        await auth.revoke_key(org.id, revoked.record["id"])
        good = await auth.create_key(org.id)
        unknown = write_key(new_id("key", 1))
        long = len(good.key)
        headers = [
            None, "", "Bearer", "Bearer ", good.key, f"Basic {good.key}", f"Bearer  {good.key}", f"Bearer {good.key} ",
            f"Bearer {good.key[:-1]}", f"Bearer {good.key}x", f"Bearer {good.key.upper()}", f"Bearer,{good.key}",
            "Bearer ' OR 1=1--".ljust(long + 7, "-"), "Bearer " + "%" * long, "Bearer " + "\0" * long,
            "Bearer " + "é" * long, "Bearer " + "\udc80" * long, "Bearer " + "a" * 2**20,
        ]  # fmt: skip
        answers = [await refused(auth, header) for header in headers]
        assert store.reads == 0, "malformed keys must not reach the database"
        answers += [await refused(auth, f"Bearer {key}") for key in (unknown, revoked.key)]
        assert store.reads == 2
        assert all(answer == answers[0] for answer in answers)
        assert answers[0]["status"] == 401
        assert answers[0]["headers"] == {"www-authenticate": "Bearer"}
        assert answers[0]["error"]["code"] == "AUTHENTICATION_FAILED"
        assert (await auth.caller(bearer(good))).org_id == org.id


async def test_a_megabyte_of_header_costs_nothing(sqlite: Database) -> None:
    async with opened(sqlite) as (auth, _, _):
        header = "Bearer " + "a" * 2**20
        started = time.perf_counter()
        for _ in range(1000):
            await refused(auth, header)
        assert time.perf_counter() - started < 1.0


async def test_no_part_of_a_key_stands_for_the_whole(sqlite: Database) -> None:
    async with opened(sqlite) as (auth, _, _):
        org = await auth.create_org("Acme", "prepaid")
        new = await auth.create_key(org.id)
        await auth.caller(bearer(new))
        start = new.key[:36]
        for filler in ("A", "B", "-"):
            sister = start + filler * 43
            await refused(auth, f"Bearer {sister}{module._check(sister)}")


async def test_the_cache_saves_reads_and_is_bounded(sqlite: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_KNOWN", 3)
    async with opened(sqlite) as (auth, clock, store):
        org = await auth.create_org("Acme", "prepaid")
        keys = [await auth.create_key(org.id) for _ in range(5)]
        for _ in range(10):
            await auth.caller(bearer(keys[0]))
        assert store.reads == 1
        clock.advance(1.0)
        await auth.caller(bearer(keys[0]))
        assert store.reads == 2
        for new in keys:
            await auth.caller(bearer(new))
            assert len(auth._known) <= 3
        assert not any(new.key.encode() in seen or seen in new.key.encode() for new in keys for seen in auth._known)


# ----------------------------------------------------------------------------------------------------------- revocation


async def test_a_revoked_key_stops_at_once_here_and_soon_elsewhere(database: Database) -> None:
    async with opened(database) as (here, clock, _), opened(database) as (there, there_clock, _):
        org = await here.create_org("Acme", "prepaid")
        new = await here.create_key(org.id)
        assert await here.caller(bearer(new)) == await there.caller(bearer(new))
        clock.advance(60)
        await here.caller(bearer(new))
        record = await here.revoke_key(org.id, new.record["id"])
        await refused(here, bearer(new))
        there_clock.advance(1.9)
        await refused(there, bearer(new))

        assert record["status"] == "revoked"
        assert record["revoked_at"] == "2023-11-14T22:14:20.000Z"
        clock.advance(60)
        assert await here.revoke_key(org.id, new.record["id"]) == record  # again: the first moment stays


async def test_a_slow_read_gains_a_revoked_key_no_time(sqlite: Database) -> None:
    async with sqlite.open() as store:
        clock = ManualClock()

        class Slow(Counting):
            async def one(self, name: str, /, **values: Any) -> Row | None:
                row = await super().one(name, **values)
                if name == "get_caller":
                    clock.advance(1.5)
                return row

        auth = Keys(Slow(store), VAULT, clock)
        org = await auth.create_org("Acme", "prepaid")
        new = await auth.create_key(org.id)
        await auth.caller(bearer(new))
        other = Keys(store, VAULT, clock)
        await other.revoke_key(org.id, new.record["id"])
        await refused(auth, bearer(new))


async def test_only_the_organization_revokes_its_keys(database: Database) -> None:
    async with opened(database) as (auth, _, _):
        ours, theirs = await auth.create_org("Ours", "prepaid"), await auth.create_org("Theirs", "prepaid")
        new = await auth.create_key(theirs.id)
        problems = []
        for key_id in (new.record["id"], new_id("key", 1), "key_", "'--", "key_\0"):
            with pytest.raises(NotFound) as caught:
                await auth.revoke_key(ours.id, key_id)
            problems.append(caught.value.message.replace(key_id, "ID"))
        assert len(set(problems)) == 1
        assert (await auth.caller(bearer(new))).org_id == theirs.id
        assert await auth.org_of_key(new.record["id"]) == theirs.id
        for key_id in (new_id("key", 1), "\0"):
            with pytest.raises(NotFound):
                await auth.org_of_key(key_id)


# -------------------------------------------------------------------------------------------------------------- listing


async def make_keys(auth: Keys, clock: ManualClock, org_id: str, count: int) -> list[str]:
    """Ids of new keys, newest first; every third is revoked."""
    ids: list[str] = []
    for number in range(count):
        clock.advance(0.001)
        new = await auth.create_key(org_id, name=f"k{number}")
        ids.insert(0, new.record["id"])
        if number % 3 == 0:
            await auth.revoke_key(org_id, new.record["id"])
    return ids


async def test_a_record_shows_what_the_interface_says(database: Database) -> None:
    async with opened(database) as (auth, _, _):
        org = await auth.create_org("Acme", "prepaid")
        new = await auth.create_key(org.id, name="ci")
        (record,) = (await auth.keys_page(org.id)).data
        assert record == new.record
        assert record == {
            "id": new.record["id"],
            "object": "key",
            "name": "ci",
            "last_four": new.key[-4:],
            "status": "active",
            "created_at": "2023-11-14T22:13:20.000Z",
            "revoked_at": None,
        }
        assert new.key not in repr(new)


async def test_pages_join_without_gap_in_both_directions(database: Database) -> None:
    async with opened(database) as (auth, clock, _):
        org = await auth.create_org("Acme", "prepaid")
        other = await auth.create_org("Other", "prepaid")
        ids = await make_keys(auth, clock, org.id, 7)
        await make_keys(auth, clock, other.id, 2)
        down, cursor, pages = [], None, []
        while True:
            page = await auth.keys_page(org.id, 3, starting_after=cursor)
            pages.append(page)
            down += [record["id"] for record in page.data]
            if (cursor := page.next_cursor) is None:
                break
        assert down == ids
        assert [page.previous_cursor for page in pages] == [None, ids[3], ids[6]]
        up = await auth.keys_page(org.id, 3, ending_before=pages[2].previous_cursor)
        assert [record["id"] for record in up.data] == ids[3:6]
        assert (up.next_cursor, up.previous_cursor) == (ids[5], ids[3])
        top = await auth.keys_page(org.id, 3, ending_before=up.previous_cursor)
        assert [record["id"] for record in top.data] == ids[:3]
        assert (top.next_cursor, top.previous_cursor) == (ids[2], None)
        past = await auth.keys_page(org.id, 3, starting_after=ids[-1])
        assert (past.data, past.next_cursor, past.previous_cursor) == ([], None, None)


async def test_a_filter_also_decides_whether_there_are_further_pages(database: Database) -> None:
    async with opened(database) as (auth, clock, _):
        org = await auth.create_org("Acme", "prepaid")
        ids = await make_keys(auth, clock, org.id, 7)  # newest first; 0, 3 and 6 are revoked
        gone = [ids[0], ids[3], ids[6]]
        page = await auth.keys_page(org.id, 2, status="revoked")
        assert [record["id"] for record in page.data] == gone[:2]
        assert page.next_cursor == gone[1]
        assert {record["status"] for record in page.data} == {"revoked"}
        page = await auth.keys_page(org.id, 2, status="active", starting_after=ids[0])
        assert [record["id"] for record in page.data] == ids[1:3]
        assert page.previous_cursor is None, "the cursor itself is no active key"
        page = await auth.keys_page(org.id, 4, status="active", ending_before=ids[6])
        assert page.next_cursor is None


async def test_cursors_are_keys_of_the_organization(database: Database) -> None:
    async with opened(database) as (auth, _, _):
        org, other = await auth.create_org("Acme", "prepaid"), await auth.create_org("Other", "prepaid")
        foreign = (await auth.create_key(other.id)).record["id"]
        own = (await auth.create_key(org.id)).record["id"]
        problems: list[Problem] = []
        for cursor in (foreign, new_id("key", 1), "key_\0", ""):
            with pytest.raises(NotFound) as caught:
                await auth.keys_page(org.id, starting_after=cursor)
            problems.append(caught.value)
            with pytest.raises(NotFound):
                await auth.keys_page(org.id, ending_before=cursor)
        assert problems[0].message.replace(foreign, "") == problems[3].message
        with pytest.raises(InvalidRequest):
            await auth.keys_page(org.id, starting_after=own, ending_before=own)
        for limit in (0, 101):
            with pytest.raises(InvalidRequest, match="1 to 100"):
                await auth.keys_page(org.id, limit)
        with pytest.raises(InvalidRequest, match="active, revoked"):
            await auth.keys_page(org.id, status="gone")


# ------------------------------------------------------------------------------------------------------------ creating


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", 5),
        ("name", "x" * 201),
        ("name", "a\0b"),
        ("name", "\udc80"),
        ("scopes", ["root"]),
        ("scopes", [{}]),
        ("scopes", "admin"),
        ("scopes", None),
        ("requests_per_minute", 0),
        ("requests_per_minute", True),
        ("requests_per_minute", 1.5),
        ("concurrent_requests", -1),
        ("concurrent_requests", 2**31),
        ("usd_per_day", "-1"),
        ("usd_per_day", "much"),
        ("usd_per_day", "NaN"),
        ("usd_per_day", "Infinity"),
        ("usd_per_day", "1e999999"),
        ("usd_per_day", "1e12"),
        ("usd_per_day", [1]),
        ("replay_mode", "sometimes"),
        ("replay_mode", ["off"]),
    ],
)
async def test_bad_fields_are_named(sqlite: Database, field: str, value: Any) -> None:
    async with opened(sqlite) as (auth, _, _):
        org = await auth.create_org("Acme", "prepaid")
        with pytest.raises(InvalidRequest) as caught:
            await auth.create_key(org.id, **{field: value})
        assert caught.value.param == field
        assert (await auth.keys_page(org.id)).data == []


async def test_a_key_needs_an_organization(database: Database) -> None:
    async with opened(database) as (auth, _, _):
        with pytest.raises(NotFound):
            await auth.create_key("org_none")
        for name, billing in (("", "prepaid"), ("a\nb", "prepaid"), ("Acme", "free")):
            with pytest.raises(InvalidRequest):
                await auth.create_org(name, billing)
        assert await auth.list_orgs() == []


async def test_organizations_are_listed_oldest_first(database: Database) -> None:
    async with opened(database) as (auth, clock, _):
        first = await auth.create_org("One", "prepaid")
        clock.advance(1)
        second = await auth.create_org("Two", "postpaid")
        assert await auth.list_orgs() == [first, second]


async def test_the_first_start_makes_one_organization_however_many_processes(database: Database) -> None:
    given: list[str] = []

    async def give(tx: Transaction, org_id: str) -> None:
        await tx.run("add_credit", org_id=org_id, amount=10)
        given.append(org_id)

    async with opened(database) as (one, _, _), opened(database) as (two, _, _):
        keys = await asyncio.gather(*[auth.begin("prepaid", give) for auth in (one, two) * 5])
        made = [key for key in keys if key is not None]
        assert len(made) == 1
        (org,) = await one.list_orgs()
        assert (org.available, org.held) == (10, 0)
        assert set(given) == {org.id}
        caller = await two.caller(bearer(made[0]))
        assert (caller.org_id, caller.scopes) == (org.id, frozenset({"admin"}))
        assert await two.begin("prepaid", nothing) is None


async def test_another_master_secret_is_noticed_at_the_start(database: Database) -> None:
    async with database.open() as store:
        await Keys(store, VAULT, ManualClock()).check_secret()
        await Keys(store, VAULT, ManualClock()).check_secret()
        await Keys(store, Vault("w" * 43, "v" * 43), ManualClock()).check_secret()  # rotated: the old one is known
        with pytest.raises(SecretRefused, match=r"secret\.key"):
            await Keys(store, Vault("w" * 43), ManualClock()).check_secret()
