"""Every call leaves one record, opened and closed once; pages and sums agree with counting by hand."""

import asyncio
import random
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import product
from typing import Any

import pytest

from penstock.accounts import requests, transfers
from penstock.accounts.requests import Filters, Requests
from penstock.clock import ManualClock
from penstock.errors import InvalidRequest, NotFound
from penstock.schema import SLOT_MS, Call, Caller, Request
from penstock.store.base import Store, Transaction
from penstock.store.paging import Page
from penstock.values import ZERO, Nanos, dollars, iso, new_id
from tests.databases import Database

NOW = 1_700_000_000_000
KEYS = ("key_a", "key_b")
REQUEST = Request(task="image", model="picture", values={"user": "ann", "session_id": "s-body"})


async def org(store: Store) -> str:
    org_id = new_id("org", NOW)

    async def write(tx: Transaction) -> None:
        await tx.run("add_org", id=org_id, name="o", billing="prepaid", created_at_ms=NOW)
        await transfers.add_credit(tx, org_id, Nanos(10**12), NOW, "a start")

    await store.write(write)
    return org_id


def call(org_id: str, at_ms: int = NOW, key_id: str = "key_a", **said: Any) -> Call:
    usual: dict[str, Any] = {
        "id": new_id("req", at_ms),
        "caller": Caller(org_id, key_id),
        "endpoint": "/compat/v1/images/generations",
        "at_ms": at_ms,
        "started": 1000.0,
        "size_bytes": 7,
    }
    return Call(**{**usual, **said})


async def begun(store: Store, one: Call, hold: int = 50) -> None:
    async def write(tx: Transaction) -> None:
        await transfers.hold(tx, one.caller.org_id, one.id, Nanos(hold), one.at_ms)
        await requests.begin(tx, one, REQUEST, Nanos(hold))

    await store.write(write)


async def ended(store: Store, one: Call, status: str, cost: int = 0, **said: Any) -> bool:
    return await store.write(
        lambda tx: requests.end(tx, one.id, one.caller.org_id, status, NOW, cost=Nanos(cost), **said)
    )


# --------------------------------------------------------------------------------------------------------- one record


async def test_a_record_from_beginning_to_end(database: Database) -> None:
    async with database.open() as store:
        books, one = Requests(store, ManualClock(NOW)), call(await org(store))
        await begun(store, one)
        assert await books.find(one.caller.org_id, one.id) == {
            "id": one.id,
            "object": "request",
            "created_at": "2023-11-14T22:13:20.000Z",
            "model": "picture",
            "modality": "image",
            "endpoint": "/compat/v1/images/generations",
            "status": "pending",
            "cost": Decimal(0),
            "currency": "usd",
            "duration_ms": None,
            "key_id": "key_a",
            "error_code": None,
            "error_message": None,
            "session_id": "s-body",
            "trace_id": None,
            "user": "ann",
            "request_size_bytes": 7,
            "response_size_bytes": None,
        }
        await store.write(lambda tx: tx.run("start_request", id=one.id, org_id=one.caller.org_id))
        found = await books.find(one.caller.org_id, one.id)
        assert found is not None
        assert found["status"] == "processing"
        assert await ended(store, one, "completed", 40_000_000, duration_ms=1234, response_bytes=99)
        found = await books.find(one.caller.org_id, one.id)
        assert found is not None
        shown = [found[name] for name in ("status", "cost", "duration_ms", "response_size_bytes")]
        assert shown == ["completed", Decimal("0.04"), 1234, 99]


async def test_a_record_ends_once(database: Database) -> None:
    async with database.open() as store:
        one = call(await org(store))
        await begun(store, one)
        ends = [("completed", 40), ("upstream_failure", 0), ("cancelled", 0)] * 30
        won = await asyncio.gather(*(ended(store, one, status, cost) for status, cost in ends))
        assert sum(won) == 1
        status, cost = ends[won.index(True)]
        found = await Requests(store, ManualClock()).find(one.caller.org_id, one.id)
        assert found is not None
        assert (found["status"], found["cost"]) == (status, dollars(Nanos(cost)))
        assert await store.slow("audit_usage") == []


async def test_a_refused_call_is_recorded(database: Database) -> None:
    async with database.open() as store:
        clock = ManualClock(NOW)
        one = call(await org(store), headers={"x-service-session-id": "s-header"}, started=clock.monotonic())
        clock.advance(0.25)
        problem = InvalidRequest("x" * 2000, param="size")
        await Requests(store, clock).reject(one, problem, "picture", "image")
        found = await Requests(store, clock).find(one.caller.org_id, one.id)
        assert found is not None
        names = ("status", "error_code", "duration_ms", "session_id", "model", "modality", "cost")
        assert [found[name] for name in names] == [
            "rejected", "INVALID_REQUEST", 250, "s-header", "picture", "image", 0
        ]  # fmt: skip
        assert len(found["error_message"]) == 1000
        assert await store.slow("audit_usage") == []


async def test_the_header_names_the_session_before_the_body(database: Database) -> None:
    async with database.open() as store:
        one = call(await org(store), headers={"x-service-session-id": "s-header"})
        await begun(store, one)
        found = await Requests(store, ManualClock()).find(one.caller.org_id, one.id)
        assert found is not None
        assert found["session_id"] == "s-header"


async def test_others_see_nothing(database: Database) -> None:
    async with database.open() as store:
        one, other = call(await org(store)), await org(store)
        await begun(store, one)
        assert await Requests(store, ManualClock()).find(other, one.id) is None


TRACE = "0af7651916cd43dd8448eb211c80319c"


@pytest.mark.parametrize(
    ("header", "found"),
    [
        (f"00-{TRACE}-b7ad6b7169203331-01", TRACE),
        (f"00-{TRACE}-b7ad6b7169203331-00", TRACE),
        (f"00-{TRACE.upper()}-b7ad6b7169203331-01", None),
        (f"00-{'0' * 32}-b7ad6b7169203331-01", None),
        (f"00-{TRACE}-{'0' * 16}-01", None),
        (f"ff-{TRACE}-b7ad6b7169203331-01", None),
        (f"00-{TRACE}-b7ad6b7169203331", None),
        ("nonsense", None),
        ("", None),
    ],
)
def test_traces(header: str, found: str | None) -> None:
    assert requests.trace_id(call("org_x", headers={"traceparent": header})) == found


def test_moments() -> None:
    assert iso(NOW + 7) == "2023-11-14T22:13:20.007Z"


# --------------------------------------------------------------------------------------------------------------- pages


@dataclass(frozen=True)
class Written:
    """What the model of these tests knows of a record."""

    id: str
    at_ms: int
    key_id: str
    status: str
    cost: int

    def meets(self, filters: Filters) -> bool:
        after, before = filters.created_after_ms, filters.created_before_ms
        return (
            filters.key_id in (None, self.key_id)
            and filters.status in (None, self.status)
            and (after is None or self.at_ms >= after)
            and (before is None or self.at_ms <= before)
        )


async def written(store: Store, org_id: str, count: int, chance: random.Random) -> list[Written]:
    """Records over an hour and a half, several to a millisecond, in every state; newest first."""
    books, made = Requests(store, ManualClock(NOW)), []
    for _ in range(count):
        at_ms = NOW - chance.choice([0, 1, SLOT_MS, 2 * SLOT_MS + 1, chance.randrange(9 * SLOT_MS)])
        one = call(org_id, at_ms, chance.choice(KEYS))
        status, cost = chance.choice(requests.STATUSES), 0
        if status == "rejected":
            await books.reject(one, InvalidRequest("no"), "picture")
        else:
            await begun(store, one)
            if status == "processing":
                await store.write(lambda tx, one=one: tx.run("start_request", id=one.id, org_id=org_id))  # type: ignore[misc]
            elif status != "pending":
                cost = chance.randrange(10**9) if status == "completed" else 0
                await ended(store, one, status, cost)
        made.append(Written(one.id, at_ms, one.caller.key_id, status, cost))
    return sorted(made, key=lambda one: one.id, reverse=True)


def expected(made: list[Written], filters: Filters) -> tuple[list[str], str | None, str | None]:
    """The page by counting: ids, next cursor, previous cursor."""
    matching = [one.id for one in made if one.meets(filters)]
    older = [one for one in matching if filters.starting_after is None or one < filters.starting_after]
    newer = [one for one in matching if filters.ending_before is None or one > filters.ending_before]
    page = newer[-filters.limit :] if filters.ending_before else older[: filters.limit]
    if not page:
        return [], None, None
    following, previous = matching[-1] != page[-1], matching[0] != page[0]
    return page, page[-1] if following else None, page[0] if previous else None


def total(made: list[Written], filters: Filters) -> dict[str, Any]:
    matching = [one for one in made if one.meets(filters)]
    spent = dollars(Nanos(sum(one.cost for one in matching)))
    return {"total_cost": spent, "currency": "usd", "count": len(matching)}


def told(page: Page) -> tuple[list[str], str | None, str | None]:
    return [one["id"] for one in page.data], page.next_cursor, page.previous_cursor


def combinations(made: list[Written], chance: random.Random) -> list[Filters]:
    edges = [None, NOW - 3 * SLOT_MS, NOW - 3 * SLOT_MS + 1, NOW - SLOT_MS - 7, NOW, chance.choice(made).at_ms]
    chosen = [
        Filters(created_after_ms=after, created_before_ms=before, key_id=key, status=status, summary=True)
        for after, before, key, status in product(edges, edges, (None, *KEYS, "key_none"), (None, *requests.STATUSES))
    ]
    return chance.sample(chosen, 50)


async def test_pages_and_sums_against_counting(database: Database) -> None:
    """Every filter, both directions, cursors that meet the filters and cursors that do not."""
    chance = random.Random(11)
    async with database.open() as store:
        org_id = await org(store)
        made = await written(store, org_id, 120, chance)
        await written(store, await org(store), 10, chance)  # somebody else's
        books = Requests(store, ManualClock(NOW))
        for filters in combinations(made, chance):
            for cursors in (
                {},
                {"starting_after": chance.choice(made).id},
                {"ending_before": chance.choice(made).id},
            ):
                asked = replace(filters, limit=chance.choice((1, 3, 20, 100)), **cursors)  # type: ignore[arg-type]
                page = await books.page(org_id, asked)
                assert told(page) == expected(made, asked), asked
                assert page.summary == total(made, asked), asked


@pytest.mark.parametrize("limit", [1, 7, 50])
async def test_walking_there_and_back(database: Database, limit: int) -> None:
    chance = random.Random(limit)
    async with database.open() as store:
        org_id = await org(store)
        made = await written(store, org_id, 40, chance)
        books, seen = Requests(store, ManualClock(NOW)), list[str]()
        page = await books.page(org_id, Filters(limit=limit))
        assert page.previous_cursor is None
        seen += [one["id"] for one in page.data]
        while page.next_cursor:
            page = await books.page(org_id, Filters(limit=limit, starting_after=page.next_cursor))
            seen += [one["id"] for one in page.data]
        assert seen == [one.id for one in made]
        back = [one["id"] for one in page.data]
        while page.previous_cursor:
            page = await books.page(org_id, Filters(limit=limit, ending_before=page.previous_cursor))
            back = [one["id"] for one in page.data] + back
        assert back == seen


async def test_unknown_cursors(database: Database) -> None:
    async with database.open() as store:
        org_id, foreign = await org(store), call(await org(store))
        await begun(store, foreign)
        for cursor in (new_id("req", NOW), foreign.id):
            for name in ("starting_after", "ending_before"):
                with pytest.raises(NotFound):
                    await Requests(store, ManualClock()).page(org_id, Filters(**{name: cursor}))  # type: ignore[arg-type]


async def test_nothing_to_list(database: Database) -> None:
    async with database.open() as store:
        page = await Requests(store, ManualClock()).page(await org(store), Filters(summary=True))
        assert page == Page([], summary={"total_cost": Decimal(0), "currency": "usd", "count": 0})


async def test_sums_are_exact(database: Database) -> None:
    """Three nano-dollars of which no float could keep count beside a million dollars."""
    async with database.open() as store:
        org_id = await org(store)
        for cost in (10**15, 1, 1, 1):
            one = call(org_id)
            await store.write(lambda tx, one=one: requests.begin(tx, one, REQUEST, ZERO))  # type: ignore[misc]
            await ended(store, one, "completed", cost)
        page = await Requests(store, ManualClock(NOW)).page(org_id, Filters(summary=True))
        assert page.summary is not None
        assert page.summary["total_cost"] == Decimal("1000000.000000003")
