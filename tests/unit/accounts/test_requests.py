"""Requests: opened and ended once; pages and summaries agree with a simple model of them."""

import asyncio
import random
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import product
from typing import Any

import pytest

from penstock.accounts import transfers
from penstock.accounts.request_filters import Filters
from penstock.accounts.requests import (
    STATUSES,
    RequestEnd,
    Requests,
    count_usage,
    end_request,
    ended_request_row,
    new_request_row,
    trace_id,
)
from penstock.errors import InvalidRequest, NotFound
from penstock.schema import SLOT_MS, Call, Caller, Request
from penstock.store.base import Store, Transaction
from penstock.store.paging import Page
from penstock.values import ZERO, Nanos, OrgId, dollars, iso, new_id
from tests.databases import Database, nothing_waits
from tests.manual_clock import ManualClock

NOW = 1_700_000_000_000
KEYS = ("key_a", "key_b")
REQUEST = Request(task="image", model="image-model", values={"user": "ann", "session_id": "s-body"})


async def create_org(store: Store) -> OrgId:
    org_id = OrgId(new_id("org", NOW))

    async def write(tx: Transaction) -> None:
        await tx.run("add_org", id=org_id, name="o", billing="prepaid", created_at_ms=NOW)
        await transfers.add_credit(tx, org_id, Nanos(10**12), NOW, "test credit")

    await store.write(write)
    return org_id


def make_call(org_id: OrgId, at_ms: int = NOW, key_id: str = "key_a", **fields: Any) -> Call:
    defaults: dict[str, Any] = {
        "id": new_id("req", at_ms),
        "caller": Caller(OrgId(org_id), key_id),
        "endpoint": "/compat/v1/images/generations",
        "at_ms": at_ms,
        "started": 1000.0,
        "size_bytes": 7,
    }
    return Call(**{**defaults, **fields})


async def open_one(store: Store, call: Call, hold: int = 50) -> None:
    async def write(tx: Transaction) -> None:
        await transfers.hold_all(tx, [transfers.NewHold(call.caller.org_id, call.id, Nanos(hold), call.at_ms)], {})
        await tx.put("add_request", **new_request_row(call, REQUEST, Nanos(hold)))

    await store.write(write)


async def start_one(store: Store, call: Call, provider: str = "lab") -> None:
    values = {
        "id": call.id,
        "org_id": call.caller.org_id,
        "provider": provider,
        "upstream_model": "easel",
        "account_id": None,
    }
    await store.write(lambda tx: tx.run("start_request", **values))


async def end_one(store: Store, call: Call, status: str, cost: int = 0, **fields: Any) -> bool:
    end = RequestEnd(status, Nanos(cost), **fields)

    async def write(tx: Transaction) -> bool:
        usage = await end_request(tx, call.caller.org_id, call.id, end)
        if usage:
            await count_usage(tx, [usage])
        return usage is not None

    return await store.write(write)


# --------------------------------------------------------------------------------------------------------- call record


async def test_a_request_from_opening_to_end(database: Database) -> None:
    async with database.open() as store:
        requests = Requests(store, ManualClock(NOW), nothing_waits)
        call = make_call(await create_org(store))
        await open_one(store, call)
        assert await requests.get_record(call.caller.org_id, call.id) == {
            "id": call.id,
            "object": "request",
            "created_at": "2023-11-14T22:13:20.000Z",
            "model": "image-model",
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
            "labels": {},
            "drill": None,
            "user": "ann",
            "request_size_bytes": 7,
            "response_size_bytes": None,
            "kind": "image",
            "provider": None,
            "executed_model": None,
            "input_tokens": None,
            "cached_tokens": None,
            "output_tokens": None,
            "vendor_cost": None,
            "cost_lines": [],
            "purged_at": None,
        }
        await start_one(store, call)
        found = await requests.get_record(call.caller.org_id, call.id)
        assert found is not None
        assert found["status"] == "processing"
        assert await end_one(store, call, "completed", 40_000_000, duration_ms=1234, response_bytes=99)
        found = await requests.get_record(call.caller.org_id, call.id)
        assert found is not None
        shown = [found[name] for name in ("status", "cost", "duration_ms", "response_size_bytes")]
        assert shown == ["completed", Decimal("0.04"), 1234, 99]


async def test_a_request_ends_only_once(database: Database) -> None:
    async with database.open() as store:
        call = make_call(await create_org(store))
        await open_one(store, call)
        ends = [("completed", 40), ("upstream_failure", 0), ("cancelled", 0)] * 30
        won = await asyncio.gather(*(end_one(store, call, status, cost) for status, cost in ends))
        assert sum(won) == 1
        status, cost = ends[won.index(True)]
        found = await Requests(store, ManualClock(), nothing_waits).get_record(call.caller.org_id, call.id)
        assert found is not None
        assert (found["status"], found["cost"]) == (status, dollars(Nanos(cost)))
        assert await store.slow("audit_usage") == []


async def test_a_rejected_call_is_recorded(database: Database) -> None:
    async with database.open() as store:
        clock = ManualClock(NOW)
        call = make_call(
            await create_org(store), headers={"x-service-session-id": "s-header"}, started=clock.monotonic()
        )
        clock.advance(0.25)
        problem = InvalidRequest("x" * 2000, param="size")
        await Requests(store, clock, nothing_waits).reject(call, problem, "image-model", "image")
        found = await Requests(store, clock, nothing_waits).get_record(call.caller.org_id, call.id)
        assert found is not None
        names = ("status", "error_code", "duration_ms", "session_id", "model", "modality", "cost")
        assert [found[name] for name in names] == [
            "rejected", "INVALID_REQUEST", 250, "s-header", "image-model", "image", 0
        ]  # fmt: skip
        assert len(found["error_message"]) == 1000
        assert await store.slow("audit_usage") == []


async def test_the_session_header_wins_over_the_body(database: Database) -> None:
    async with database.open() as store:
        call = make_call(await create_org(store), headers={"x-service-session-id": "s-header"})
        await open_one(store, call)
        found = await Requests(store, ManualClock(), nothing_waits).get_record(call.caller.org_id, call.id)
        assert found is not None
        assert found["session_id"] == "s-header"


async def test_another_organization_does_not_see_a_request(database: Database) -> None:
    async with database.open() as store:
        call = make_call(await create_org(store))
        other = await create_org(store)
        await open_one(store, call)
        assert await Requests(store, ManualClock(), nothing_waits).get_record(other, call.id) is None


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
def test_only_a_valid_traceparent_gives_a_trace_id(header: str, found: str | None) -> None:
    assert trace_id(make_call(OrgId("org_x"), headers={"traceparent": header})) == found


def test_times_are_written_as_iso_8601() -> None:
    assert iso(NOW + 7) == "2023-11-14T22:13:20.007Z"


# --------------------------------------------------------------------------------------------------------------- pages


@dataclass(frozen=True)
class Expected:
    """What a request should look like, as these tests remember it."""

    id: str
    at_ms: int
    key_id: str
    status: str
    cost: int

    def matches(self, filters: Filters) -> bool:
        after, before = filters.created_after_ms, filters.created_before_ms
        return (
            filters.key_id in (None, self.key_id)
            and filters.status in (None, self.status)
            and (after is None or self.at_ms >= after)
            and (before is None or self.at_ms <= before)
        )


async def make_requests(store: Store, org_id: OrgId, count: int, chance: random.Random) -> list[Expected]:
    """Make requests of every status over an hour and a half, several per millisecond; newest first."""
    requests, made = Requests(store, ManualClock(NOW), nothing_waits), []
    for _ in range(count):
        at_ms = NOW - chance.choice([0, 1, SLOT_MS, 2 * SLOT_MS + 1, chance.randrange(9 * SLOT_MS)])
        call = make_call(org_id, at_ms, chance.choice(KEYS))
        status, cost = chance.choice(STATUSES), 0
        if status == "rejected":
            await requests.reject(call, InvalidRequest("no"), "image-model")
        else:
            await open_one(store, call)
            if status == "processing":
                await start_one(store, call)
            elif status != "pending":
                cost = chance.randrange(10**9) if status == "completed" else 0
                await end_one(store, call, status, cost)
        made.append(Expected(call.id, at_ms, call.caller.key_id, status, cost))
    return sorted(made, key=lambda request: request.id, reverse=True)


def expected_page(made: list[Expected], filters: Filters) -> tuple[list[str], str | None, str | None]:
    """Return ids, next cursor and previous cursor of a page."""
    matching = [request.id for request in made if request.matches(filters)]
    older = [found for found in matching if filters.starting_after is None or found < filters.starting_after]
    newer = [found for found in matching if filters.ending_before is None or found > filters.ending_before]
    page = newer[-filters.limit :] if filters.ending_before else older[: filters.limit]
    if not page:
        return [], None, None
    following, previous = matching[-1] != page[-1], matching[0] != page[0]
    return page, page[-1] if following else None, page[0] if previous else None


def expected_summary(made: list[Expected], filters: Filters) -> dict[str, Any]:
    matching = [request for request in made if request.matches(filters)]
    spent = dollars(Nanos(sum(request.cost for request in matching)))
    return {"total_cost": spent, "currency": "usd", "count": len(matching)}


def ids_and_cursors(page: Page[dict[str, Any]]) -> tuple[list[str], str | None, str | None]:
    return [record["id"] for record in page.data], page.next_cursor, page.previous_cursor


def combinations(made: list[Expected], chance: random.Random) -> list[Filters]:
    edges = [None, NOW - 3 * SLOT_MS, NOW - 3 * SLOT_MS + 1, NOW - SLOT_MS - 7, NOW, chance.choice(made).at_ms]
    chosen = [
        Filters(created_after_ms=after, created_before_ms=before, key_id=key, status=status, summary=True)
        for after, before, key, status in product(edges, edges, (None, *KEYS, "key_none"), (None, *STATUSES))
    ]
    return chance.sample(chosen, 50)


async def test_pages_and_summaries_agree_with_the_model(database: Database) -> None:
    """Every filter, both directions, cursors that match the filters and cursors that do not."""
    chance = random.Random(11)
    async with database.open() as store:
        org_id = await create_org(store)
        made = await make_requests(store, org_id, 120, chance)
        await make_requests(store, await create_org(store), 10, chance)  # of another organization
        requests = Requests(store, ManualClock(NOW), nothing_waits)
        for filters in combinations(made, chance):
            for cursors in (
                {},
                {"starting_after": chance.choice(made).id},
                {"ending_before": chance.choice(made).id},
            ):
                asked = replace(filters, limit=chance.choice((1, 3, 20, 100)), **cursors)  # type: ignore[arg-type]
                page = await requests.list_records(org_id, asked)
                assert ids_and_cursors(page) == expected_page(made, asked), asked
                assert page.summary == expected_summary(made, asked), asked


@pytest.mark.parametrize("limit", [1, 7, 50])
async def test_pages_join_without_gaps_in_both_directions(database: Database, limit: int) -> None:
    chance = random.Random(limit)
    async with database.open() as store:
        org_id = await create_org(store)
        made = await make_requests(store, org_id, 40, chance)
        requests, seen = Requests(store, ManualClock(NOW), nothing_waits), list[str]()
        page = await requests.list_records(org_id, Filters(limit=limit))
        assert page.previous_cursor is None
        seen += [record["id"] for record in page.data]
        while page.next_cursor:
            page = await requests.list_records(org_id, Filters(limit=limit, starting_after=page.next_cursor))
            seen += [record["id"] for record in page.data]
        assert seen == [request.id for request in made]
        back = [record["id"] for record in page.data]
        while page.previous_cursor:
            page = await requests.list_records(org_id, Filters(limit=limit, ending_before=page.previous_cursor))
            back = [record["id"] for record in page.data] + back
        assert back == seen


async def test_an_unknown_cursor_is_not_found(database: Database) -> None:
    async with database.open() as store:
        org_id, foreign = await create_org(store), make_call(await create_org(store))
        await open_one(store, foreign)
        for cursor in (new_id("req", NOW), foreign.id):
            for name in ("starting_after", "ending_before"):
                with pytest.raises(NotFound):
                    await Requests(store, ManualClock(), nothing_waits).list_records(org_id, Filters(**{name: cursor}))  # type: ignore[arg-type]


async def test_an_empty_list(database: Database) -> None:
    async with database.open() as store:
        page = await Requests(store, ManualClock(), nothing_waits).list_records(
            await create_org(store), Filters(summary=True)
        )
        assert page == Page([], summary={"total_cost": Decimal(0), "currency": "usd", "count": 0})


async def test_summaries_are_exact(database: Database) -> None:
    """A million dollars and three nano-dollars, which a float cannot represent."""
    async with database.open() as store:
        org_id = await create_org(store)
        for cost in (10**15, 1, 1, 1):
            call = make_call(org_id)
            row = new_request_row(call, REQUEST, ZERO)
            await store.write(lambda tx, row=row: tx.put("add_request", **row))  # type: ignore[misc]
            await end_one(store, call, "completed", cost)
        page = await Requests(store, ManualClock(NOW), nothing_waits).list_records(org_id, Filters(summary=True))
        assert page.summary is not None
        assert page.summary["total_cost"] == Decimal("1000000.000000003")


# --------------------------------------------------------------------------------------------------- combined filters


async def add_ended(store: Store, rows: list[dict[str, Any]]) -> None:
    await store.write(lambda tx: tx.run_many("add_ended_request", rows))


def ended_row(org_id: OrgId, at_ms: int, **columns: Any) -> dict[str, Any]:
    call = make_call(org_id, at_ms)
    end = RequestEnd(columns.pop("status", "completed"), Nanos(columns.pop("cost", 0)), 5)
    return {**ended_request_row(call, REQUEST, "image", end), **columns}


async def test_filters_can_be_combined_in_every_way_and_paged(database: Database) -> None:
    """Against a plain list in memory: every combination of filters, page by page both ways, and the summary."""
    chance = random.Random(5)
    choices = {
        "model": ["flux", "veo", None],
        "provider": ["lab", "annex", None],
        "kind": ["image", "video", "chat"],
        "end_user": ["ann@a.example", "bob", None],
        "status": ["completed", "upstream_failure"],
        "key_id": list(KEYS),
    }
    async with database.open() as store:
        org_id, other = await create_org(store), await create_org(store)
        rows = [
            ended_row(
                org_id,
                NOW + number,
                cost=number,
                **{name: chance.choice(values) for name, values in choices.items()},  # type: ignore[arg-type]
            )
            for number in range(90)
        ]
        await add_ended(store, [*rows, *(ended_row(other, NOW + number) for number in range(9))])
        requests = Requests(store, ManualClock(NOW + 1000), nothing_waits)
        wanted: dict[str, list[Any]] = {
            "model": [None, "flux"],
            "provider": [None, "annex"],
            "kind": [None, "video", "chat"],
            "user": [None, "bob"],
            "status": [None, "completed"],
            "key_id": [None, "key_a"],
            "search": [None, "@a.ex"],
        }
        for values in product(*wanted.values()):
            asked = dict(zip(wanted, values, strict=True))
            columns = {"end_user" if name == "user" else name: value for name, value in asked.items()}
            text = columns.pop("search")
            matching = [
                row
                for row in reversed(rows)
                if all(value is None or row[name] == value for name, value in columns.items())
                and (text is None or text in (row["end_user"] or ""))
            ]
            filters = Filters(limit=7, summary=True, **asked)
            page = await requests.list_records(org_id, filters)
            assert page.summary is not None
            assert page.summary["count"] == len(matching), asked
            assert page.summary["total_cost"] == dollars(Nanos(sum(row["cost"] for row in matching))), asked
            found = [record["id"] for record in page.data]
            while page.next_cursor:
                page = await requests.list_records(org_id, replace(filters, starting_after=page.next_cursor))
                found += [record["id"] for record in page.data]
            assert found == [row["id"] for row in matching], asked
            if page.previous_cursor:
                back = await requests.list_records(org_id, replace(filters, ending_before=page.previous_cursor))
                start = len(found) - len(page.data)
                assert [record["id"] for record in back.data] == found[max(0, start - 7) : start], asked


async def test_a_search_finds_parts_of_the_id_and_of_the_user(database: Database) -> None:
    async with database.open() as store:
        org_id = await create_org(store)
        rows = [ended_row(org_id, NOW + number, end_user=f"user{number}%_") for number in range(12)]
        await add_ended(store, rows)
        requests = Requests(store, ManualClock(NOW + 1000), nothing_waits)

        async def found(text: str, **more: Any) -> list[str]:
            page = await requests.list_records(org_id, Filters(limit=100, search=text, summary=True, **more))
            assert page.summary is not None
            assert page.summary["count"] == len(page.data)
            return [record["id"] for record in page.data]

        everything = [row["id"] for row in reversed(rows)]
        sought = rows[4]["id"]
        assert await found(sought) == [sought]
        assert await found(sought[8:]) == [sought]
        assert await found(sought[:-12]) == [sought]
        assert await found("req_") == everything
        assert await found(sought[:9]) == everything
        assert await found("req_f") == await found("req_zz") == await found("nobody") == []
        assert await found("req_\ue000") == await found("req_\U00010000") == await found("req_\x01") == []
        assert await found("user7") == await found("r7%") == [rows[7]["id"]]
        assert await found("%_") == everything, "they are letters like any others"
        assert await found("user1", created_after_ms=NOW + 5) == [rows[11]["id"], rows[10]["id"]]
        assert await found(sought, created_after_ms=NOW + 5) == []
