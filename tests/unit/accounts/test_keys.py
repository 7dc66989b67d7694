"""Keys: created, authenticated, listed and revoked; every bad key gets the same error."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from hashlib import blake2b
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.accounts import keys as module
from penstock.accounts.keys import Keys, NewKey, generate_key, is_well_formed
from penstock.accounts.orgs import Org, create_org
from penstock.accounts.requests import RequestUsage, count_usage
from penstock.errors import AuthenticationFailed, Conflict, InvalidRequest, NotFound, Problem
from penstock.schema import SLOT_MS
from penstock.store.base import Row, Store
from penstock.values import Nanos, OrgId, dollars, iso, new_id
from penstock.vault import Vault
from tests.databases import Database
from tests.manual_clock import ManualClock

VAULT = Vault("v" * 43)


class CountingStore:
    """A store that counts how often a caller is read from it."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.reads = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def one(self, name: str, /, **values: Any) -> Row | None:
        self.reads += name == "get_caller"
        return await self._store.one(name, **values)


@asynccontextmanager
async def open_keys(database: Database) -> AsyncIterator[tuple[Keys, ManualClock, CountingStore]]:
    async with database.open() as store:
        clock, counting = ManualClock(), CountingStore(store)
        yield Keys(counting, VAULT, clock), clock, counting


async def new_org(keys: Keys, name: str, billing: str = "prepaid") -> Org:
    return await create_org(keys._store, keys._clock, name, billing)


def bearer(new: NewKey) -> str:
    return f"Bearer {new.key}"


async def authentication_error(keys: Keys, authorization: str | None) -> dict[str, Any]:
    with pytest.raises(AuthenticationFailed) as caught:
        await keys.authenticate(authorization)
    return {"status": caught.value.status, "headers": caught.value.headers, **caught.value.body()}


# ------------------------------------------------------------------------------------------------------- the key's text


def test_a_key_consists_of_its_id_a_secret_and_a_checksum() -> None:
    key_id = new_id("key", 1_700_000_000_000)
    key = generate_key(key_id)
    start, secret = key.rsplit("_", 1) if key.count("_") == 2 else (key[:35], key[36:])
    assert start == f"pk_{key_id.removeprefix('key_')}"
    assert len(secret) == 49
    assert is_well_formed(key)
    assert len({generate_key(key_id) for _ in range(100)}) == 100


@given(st.integers(0, 84), st.characters(codec="ascii"))
def test_the_checksum_reveals_one_changed_character(index: int, character: str) -> None:
    key = "pk_01hf4v8g00aaaaaaaaaaaaaaaaaaaaaa_" + "A" * 43
    key += module._checksum(key)
    assert len(key) == 85
    changed = key[:index] + character + key[index + 1 :]
    assert is_well_formed(changed) is (changed == key)


# -------------------------------------------------------------------------------------------------------------- calling


async def test_a_new_key_authenticates_as_its_organization(database: Database) -> None:
    async with open_keys(database) as (keys, _, _):
        org = await new_org(keys, "Acme", "postpaid")
        new = await keys.create_key(
            org.id,
            name="ci",
            scopes=["admin"],
            requests_per_minute=60,
            concurrent_requests=4,
            usd_per_day="2.50",
            replay_mode="replay-or-record",
        )
        caller = await keys.authenticate(bearer(new))
        assert (caller.org_id, caller.key_id, caller.prepaid) == (org.id, new.id, False)
        assert caller.scopes == {"admin"}
        assert (caller.requests_per_minute, caller.concurrent_requests, caller.nanos_per_day) == (60, 4, 2_500_000_000)
        assert caller.replay_mode == "replay-or-record"
        assert caller == await keys.authenticate(f"bearer {new.key}")

        plain = await keys.authenticate(bearer(await keys.create_key(org.id)))
        assert plain.scopes == frozenset()
        assert not plain.is_limited


async def test_every_bad_header_gets_the_same_error(database: Database) -> None:
    async with open_keys(database) as (keys, _, store):
        org = await new_org(keys, "Acme")
        revoked = await keys.create_key(org.id)
        await keys.revoke_key(org.id, revoked.id)
        good = await keys.create_key(org.id)
        unknown = generate_key(new_id("key", 1))
        long = len(good.key)
        headers = [
            None, "", "Bearer", "Bearer ", good.key, f"Basic {good.key}",
            f"Bearer{' ' * 10}{good.key}", f"Bearer\t{good.key}",
            f"Bearer {good.key[:-1]}", f"Bearer {good.key}x", f"Bearer {good.key.upper()}", f"Bearer,{good.key}",
            "Bearer ' OR 1=1--".ljust(long + 7, "-"), "Bearer " + "%" * long, "Bearer " + "\0" * long,
            "Bearer " + "é" * long, "Bearer " + "\udc80" * long, "Bearer " + "a" * 2**20,
        ]  # fmt: skip
        errors = [await authentication_error(keys, header) for header in headers]
        assert store.reads == 0, "malformed keys must not reach the database"
        errors += [await authentication_error(keys, f"Bearer {key}") for key in (unknown, revoked.key)]
        assert store.reads == 2
        assert all(error == errors[0] for error in errors)
        assert errors[0]["status"] == 401
        assert errors[0]["headers"] == {"www-authenticate": "Bearer"}
        assert errors[0]["error"]["code"] == "AUTHENTICATION_FAILED"
        for spaces in (" ", "  ", " " * 9):  # HTTP allows any number
            assert (await keys.authenticate(f"bearer{spaces}{good.key}")).org_id == org.id
            assert keys.recent_caller(f"bearer{spaces}{good.key}") is not None
        assert (await keys.authenticate(bearer(good))).org_id == org.id


async def test_a_header_of_a_megabyte_is_not_hashed(sqlite: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its length alone is checked: neither the digest of the cache nor the checksum is computed."""
    async with open_keys(sqlite) as (keys, _, _):
        hashed: list[int] = []

        def counting(data: bytes, **options: Any) -> Any:
            hashed.append(len(data))
            return blake2b(data, **options)

        monkeypatch.setattr(module, "blake2b", counting)
        monkeypatch.setattr(module, "crc32", counting)
        await authentication_error(keys, "Bearer " + "a" * 2**20)
        assert hashed == []
        await authentication_error(keys, "Bearer " + "a" * 85)
        assert hashed == [92]


async def test_a_cached_key_does_not_authenticate_a_similar_one(sqlite: Database) -> None:
    async with open_keys(sqlite) as (keys, _, _):
        org = await new_org(keys, "Acme")
        new = await keys.create_key(org.id)
        await keys.authenticate(bearer(new))
        start = new.key[:36]
        for filler in ("A", "B", "-"):
            sister = start + filler * 43
            await authentication_error(keys, f"Bearer {sister}{module._checksum(sister)}")


async def test_only_a_key_that_was_just_used_is_known_without_a_read(sqlite: Database) -> None:
    async with open_keys(sqlite) as (keys, clock, _):
        new = await keys.create_key((await new_org(keys, "Acme")).id)
        for header in (None, "Bearer x", bearer(new)):
            assert keys.recent_caller(header) is None
        caller = await keys.authenticate(bearer(new))
        assert keys.recent_caller(bearer(new)) == caller
        clock.advance(2)
        assert keys.recent_caller(bearer(new)) is None
        await keys.authenticate(bearer(new))
        await keys.revoke_key(caller.org_id, caller.key_id)
        assert keys.recent_caller(bearer(new)) is None


async def test_the_cache_saves_reads_and_has_a_maximum_size(sqlite: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MAX_CACHED", 3)
    async with open_keys(sqlite) as (keys, clock, store):
        org = await new_org(keys, "Acme")
        new_keys = [await keys.create_key(org.id) for _ in range(5)]
        for _ in range(10):
            await keys.authenticate(bearer(new_keys[0]))
        assert store.reads == 1
        clock.advance(1.0)
        await keys.authenticate(bearer(new_keys[0]))
        assert store.reads == 2
        for new in new_keys:
            await keys.authenticate(bearer(new))
            assert len(keys._cache) <= 3
        assert not any(new.key.encode() in seen or seen in new.key.encode() for new in new_keys for seen in keys._cache)


# ----------------------------------------------------------------------------------------------------------- revocation


async def test_a_revoked_key_is_refused_at_once_here_and_soon_in_other_processes(database: Database) -> None:
    async with open_keys(database) as (here, clock, _), open_keys(database) as (there, there_clock, _):
        org = await new_org(here, "Acme")
        new = await here.create_key(org.id)
        assert await here.authenticate(bearer(new)) == await there.authenticate(bearer(new))
        clock.advance(60)
        await here.authenticate(bearer(new))
        revoked = await here.revoke_key(org.id, new.id)
        await authentication_error(here, bearer(new))
        there_clock.advance(1.9)
        await authentication_error(there, bearer(new))

        assert revoked.status == "revoked"
        assert revoked.revoked_at_ms == 1_700_000_060_000
        clock.advance(60)
        assert await here.revoke_key(org.id, new.id) == revoked  # revoking again keeps the first time


async def test_a_slow_read_does_not_extend_the_life_of_a_revoked_key(sqlite: Database) -> None:
    async with sqlite.open() as store:
        clock = ManualClock()

        class SlowStore(CountingStore):
            async def one(self, name: str, /, **values: Any) -> Row | None:
                row = await super().one(name, **values)
                if name == "get_caller":
                    clock.advance(1.5)
                return row

        keys = Keys(SlowStore(store), VAULT, clock)
        org = await new_org(keys, "Acme")
        new = await keys.create_key(org.id)
        await keys.authenticate(bearer(new))
        other = Keys(store, VAULT, clock)
        await other.revoke_key(org.id, new.id)
        await authentication_error(keys, bearer(new))


async def test_only_keys_of_the_own_organization_can_be_revoked(database: Database) -> None:
    async with open_keys(database) as (keys, _, _):
        ours, theirs = (
            await new_org(keys, "Ours"),
            await new_org(keys, "Theirs"),
        )
        new = await keys.create_key(theirs.id)
        problems = []
        for key_id in (new.id, new_id("key", 1), "key_", "'--", "key_\0"):
            with pytest.raises(NotFound) as caught:
                await keys.revoke_key(ours.id, key_id)
            problems.append(caught.value.message.replace(key_id, "ID"))
        assert len(set(problems)) == 1
        assert (await keys.authenticate(bearer(new))).org_id == theirs.id
        assert await keys.get_org_id(new.id) == theirs.id
        for key_id in (new_id("key", 1), "\0"):
            with pytest.raises(NotFound):
                await keys.get_org_id(key_id)


# -------------------------------------------------------------------------------------------------------------- listing


async def make_keys(keys: Keys, clock: ManualClock, org_id: OrgId, count: int) -> list[str]:
    """Ids of new keys, newest first; every third is revoked."""
    ids: list[str] = []
    for number in range(count):
        clock.advance(0.001)
        new = await keys.create_key(org_id, name=f"k{number}")
        ids.insert(0, new.id)
        if number % 3 == 0:
            await keys.revoke_key(org_id, new.id)
    return ids


async def test_a_key_record_has_the_fields_of_the_interface(database: Database) -> None:
    async with open_keys(database) as (keys, _, _):
        org = await new_org(keys, "Acme")
        new = await keys.create_key(org.id, name="ci")
        (record,) = (await keys.list_records(org.id)).data
        assert record == {
            "id": new.id,
            "object": "key",
            "name": "ci",
            "owner": None,
            "last_four": new.key[-4:],
            "status": "active",
            "created_at": "2023-11-14T22:13:20.000Z",
            "revoked_at": None,
            "scopes": [],
            "requests_per_minute": None,
            "concurrent_requests": None,
            "usd_per_day": None,
            "usd_per_month": None,
            "models": None,
            "labels": {},
            "replay_mode": None,
            "image_response_format": None,
            "expires_at": None,
            "last_used_at": None,
            "spent_today": 0,
            "spent_this_month": 0,
        }
        assert new.key not in repr(new)


async def test_limits_are_changed_and_removed(database: Database) -> None:
    async with open_keys(database) as (keys, _, _):
        org = await new_org(keys, "Acme")
        other = await new_org(keys, "Other")
        new = await keys.create_key(org.id, name="ci", requests_per_minute=5, usd_per_month="2.50", scopes=["admin"])
        assert (await keys.authenticate(bearer(new))).requests_per_minute == 5
        changes = {"requests_per_minute": None, "models": ["flux", "veo*"], "usd_per_day": "1"}
        row = await keys.change_key(org.id, new.id, changes)
        caller = await keys.authenticate(bearer(new))
        assert (caller.requests_per_minute, caller.nanos_per_day, caller.nanos_per_month) == (
            None,
            1_000_000_000,
            2_500_000_000,
        )
        assert (caller.models, caller.scopes) == (("flux", "veo*"), frozenset({"admin"}))
        assert (row.name, row.models) == ("ci", '["flux","veo*"]')
        for org_id, key_id in ((other.id, new.id), (org.id, new_id("key", 1))):
            with pytest.raises(NotFound):
                await keys.change_key(org_id, key_id, {"name": "mine"})
        bad: list[dict[str, Any]] = [
            {"models": []},
            {"models": ["a*b"]},
            {"expires_at": "soon"},
            {"usd_per_month": "x"},
        ]
        for options in bad:
            with pytest.raises(InvalidRequest) as problem:
                await keys.change_key(org.id, new.id, options)
            assert problem.value.param == next(iter(options))
        await keys.revoke_key(org.id, new.id)
        with pytest.raises(Conflict):
            await keys.change_key(org.id, new.id, {"name": "again"})


async def test_an_expired_key_is_refused_at_the_moment_it_expires(database: Database) -> None:
    async with open_keys(database) as (keys, clock, _):
        org = await new_org(keys, "Acme")
        new = await keys.create_key(org.id, expires_at=iso(clock.now_ms() + 500))
        await keys.authenticate(bearer(new))
        clock.advance(0.499)
        await keys.authenticate(bearer(new))
        clock.advance(0.001)
        await authentication_error(keys, bearer(new))
        await keys.change_key(org.id, new.id, {"expires_at": None})
        await keys.authenticate(bearer(new))


async def test_a_record_shows_the_last_use_and_the_spend_of_day_and_month(database: Database) -> None:
    async with open_keys(database) as (keys, clock, store):
        org = await new_org(keys, "Acme")
        new = await keys.create_key(org.id)
        day_ms = 86_400_000
        for days, cost in ((0, 1), (10, 20), (20, 300), (20, 4000)):  # from the 14th of November to the 4th of December
            at_ms = 1_700_000_000_000 + days * day_ms
            usage = RequestUsage(org.id, new.id, "completed", at_ms // SLOT_MS, cost)
            await store.write(lambda tx, usage=usage: count_usage(tx, [usage]))
            values = {"id": new_id("req", at_ms), "org_id": org.id, "key_id": new.id, "at_ms": at_ms}
            await store.write(lambda tx, values=values: tx.run("put_ended_request", **values))
        clock.advance(20 * 86_400)
        (record,) = (await keys.list_records(org.id)).data
        assert record["last_used_at"] == iso(1_700_000_000_000 + 20 * day_ms)
        assert (record["spent_today"], record["spent_this_month"]) == (dollars(Nanos(4300)), dollars(Nanos(4300)))
        assert (await keys.get_record_of(org.id, new.id)) == record
        other = await new_org(keys, "Other")
        with pytest.raises(NotFound):
            await keys.get_record_of(other.id, new.id)


async def test_pages_join_without_gaps_in_both_directions(database: Database) -> None:
    async with open_keys(database) as (keys, clock, _):
        org = await new_org(keys, "Acme")
        other = await new_org(keys, "Other")
        ids = await make_keys(keys, clock, org.id, 7)
        await make_keys(keys, clock, other.id, 2)
        down, cursor, pages = [], None, []
        while True:
            page = await keys.list_records(org.id, 3, starting_after=cursor)
            pages.append(page)
            down += [record["id"] for record in page.data]
            if (cursor := page.next_cursor) is None:
                break
        assert down == ids
        assert [page.previous_cursor for page in pages] == [None, ids[3], ids[6]]
        up = await keys.list_records(org.id, 3, ending_before=pages[2].previous_cursor)
        assert [record["id"] for record in up.data] == ids[3:6]
        assert (up.next_cursor, up.previous_cursor) == (ids[5], ids[3])
        top = await keys.list_records(org.id, 3, ending_before=up.previous_cursor)
        assert [record["id"] for record in top.data] == ids[:3]
        assert (top.next_cursor, top.previous_cursor) == (ids[2], None)
        past = await keys.list_records(org.id, 3, starting_after=ids[-1])
        assert (past.data, past.next_cursor, past.previous_cursor) == ([], None, None)


async def test_the_status_filter_decides_whether_there_are_further_pages(database: Database) -> None:
    async with open_keys(database) as (keys, clock, _):
        org = await new_org(keys, "Acme")
        ids = await make_keys(keys, clock, org.id, 7)  # newest first; 0, 3 and 6 are revoked
        gone = [ids[0], ids[3], ids[6]]
        page = await keys.list_records(org.id, 2, status="revoked")
        assert [record["id"] for record in page.data] == gone[:2]
        assert page.next_cursor == gone[1]
        assert {record["status"] for record in page.data} == {"revoked"}
        page = await keys.list_records(org.id, 2, status="active", starting_after=ids[0])
        assert [record["id"] for record in page.data] == ids[1:3]
        assert page.previous_cursor is None, "the key of the cursor is not active"
        page = await keys.list_records(org.id, 4, status="active", ending_before=ids[6])
        assert page.next_cursor is None


async def test_a_cursor_must_be_a_key_of_the_organization(database: Database) -> None:
    async with open_keys(database) as (keys, _, _):
        org, other = (
            await new_org(keys, "Acme"),
            await new_org(keys, "Other"),
        )
        foreign = (await keys.create_key(other.id)).id
        own = (await keys.create_key(org.id)).id
        problems: list[Problem] = []
        for cursor in (foreign, new_id("key", 1), "key_\0", ""):
            with pytest.raises(NotFound) as caught:
                await keys.list_records(org.id, starting_after=cursor)
            problems.append(caught.value)
            with pytest.raises(NotFound):
                await keys.list_records(org.id, ending_before=cursor)
        assert problems[0].message.replace(foreign, "") == problems[3].message
        with pytest.raises(InvalidRequest):
            await keys.list_records(org.id, starting_after=own, ending_before=own)
        for limit in (0, 101):
            with pytest.raises(InvalidRequest, match="1 to 100"):
                await keys.list_records(org.id, limit)
        with pytest.raises(InvalidRequest, match="active, revoked"):
            await keys.list_records(org.id, status="gone")


# ------------------------------------------------------------------------------------------------------------ creating


BAD_VALUES = [
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
    ("image_response_format", "png"),
    ("replay_mode", ["off"]),
]


async def test_bad_values_are_refused_by_name(sqlite: Database) -> None:
    async with open_keys(sqlite) as (keys, _, _):
        org = await new_org(keys, "Acme")
        wrong = []
        for field, value in BAD_VALUES:
            values: dict[str, Any] = {field: value}
            try:
                await keys.create_key(org.id, **values)
            except InvalidRequest as problem:
                if problem.param == field:
                    continue
            wrong.append((field, value))
        assert wrong == []
        assert (await keys.list_records(org.id)).data == []


async def test_a_key_needs_an_existing_organization(database: Database) -> None:
    async with open_keys(database) as (keys, _, _):
        with pytest.raises(NotFound):
            await keys.create_key(OrgId("org_none"))
