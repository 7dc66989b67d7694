"""One row per request: open, complete, fail, purge, list."""

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from penstock.clock import Clock
from penstock.errors import Problem
from penstock.schema import MODALITY, SLOT_MS, Call, Request
from penstock.store.base import Row, Store, Transaction
from penstock.store.paging import DEFAULT_LIMIT, Page, Pager
from penstock.values import ZERO, Nanos, dollars, first_id, iso

OPEN = ("pending", "processing")
STATUSES = ("completed", "pending", "processing", "upstream_failure", "rejected", "cancelled")
_LOWEST, _HIGHEST = "req_", "req_~"
_TRACEPARENT = re.compile(r"00-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """What a caller wants listed; times are inclusive."""

    limit: int = DEFAULT_LIMIT
    starting_after: str | None = None
    ending_before: str | None = None
    created_after_ms: int | None = None
    created_before_ms: int | None = None
    key_id: str | None = None
    status: str | None = None
    summary: bool = False

    @property
    def low(self) -> str | None:
        """The id above which the rows lie."""
        return None if self.created_after_ms is None else first_id("req", self.created_after_ms)

    @property
    def high(self) -> str | None:
        """The id below which the rows lie."""
        return None if self.created_before_ms is None else first_id("req", self.created_before_ms + 1)

    @property
    def equal(self) -> dict[str, str]:
        """Columns that must have one value."""
        wanted = {"key_id": self.key_id, "status": self.status}
        return {name: value for name, value in wanted.items() if value is not None}

    @property
    def suffix(self) -> str:
        """Which of the four index-shaped queries serves these filters."""
        by = [name.removesuffix("_id") for name in self.equal]
        return "_of_" + "_and_".join(by) if by else ""


def record(row: Row) -> dict[str, Any]:
    """A row as the interface shows it."""
    return {
        "id": row["id"],
        "object": "request",
        "created_at": iso(row["created_at_ms"]),
        "model": row["model"],
        "modality": row["modality"],
        "endpoint": row["endpoint"],
        "status": row["status"],
        "cost": dollars(Nanos(row["cost"])),
        "currency": "usd",
        "duration_ms": row["duration_ms"],
        "key_id": row["key_id"],
        "error_code": row["error_code"],
        "error_message": row["error_message"],
        "session_id": row["session_id"],
        "trace_id": row["trace_id"],
        "user": row["end_user"],
        "request_size_bytes": row["request_bytes"],
        "response_size_bytes": row["response_bytes"],
    }


def trace_id(call: Call) -> str | None:
    match = _TRACEPARENT.fullmatch(call.headers.get("traceparent", ""))
    return match[1] if match else None


# ------------------------------------------------------------------------------------------------------ one request


async def begin(
    tx: Transaction,
    call: Call,
    request: Request,
    hold: Nanos,
    *,
    status: str = "pending",
    modality: str | None = None,
) -> None:
    await _add(
        tx,
        call,
        **_wishes(call, request),
        modality=modality or MODALITY.get(request.task),
        status=status,
        hold=hold,
    )


async def end(
    tx: Transaction,
    request_id: str,
    org_id: str,
    status: str,
    at_ms: int,
    *,
    cost: Nanos = ZERO,
    duration_ms: int | None = None,
    error_code: str | None = None,
    error_message: str | None = None,
    response_bytes: int | None = None,
) -> bool:
    """Close an open record and count it; False when it was closed already."""
    row = await tx.one(
        "close_request",
        id=request_id,
        org_id=org_id,
        status=status,
        cost=cost,
        duration_ms=duration_ms,
        error_code=error_code,
        error_message=error_message[:1000] if error_message else None,
        response_bytes=response_bytes,
    )
    if row is None:
        return False
    slot = row["created_at_ms"] // SLOT_MS
    await count(tx, org_id, slot, row["key_id"], status, 1, cost)
    return True


async def count(tx: Transaction, org_id: str, slot: int, key_id: str, status: str, number: int, cost: int) -> None:
    """Ended requests, in every way that a summary may ask for them."""
    for key, state in ((key_id, status), (key_id, ""), ("", status), ("", "")):
        await tx.run("count_usages", org_id=org_id, slot=slot, key_id=key, status=state, count=number, cost=cost)


def ended(call: Call, request: Request, **values: Any) -> Row:
    """A record that is written once, when all is known."""
    return {**_NO_ANSWER, **_columns(call), **_wishes(call, request), **values}


async def write_ended(tx: Transaction, records: Sequence[Row]) -> int:
    """How many of them were not there yet. Who writes them counts them."""
    return await tx.run_many("add_ended_request", records)


async def _add(tx: Transaction, call: Call, **values: Any) -> None:
    await tx.run("add_request", **{**_NO_ANSWER, **_columns(call), **values})


_NO_ANSWER = {
    "hold": 0,
    "cost": 0,
    "error_code": None,
    "error_message": None,
    "duration_ms": None,
    "response_bytes": None,
}


def _columns(call: Call) -> dict[str, Any]:
    return {
        "id": call.id,
        "org_id": call.caller.org_id,
        "key_id": call.caller.key_id,
        "created_at_ms": call.at_ms,
        "endpoint": call.endpoint,
        "trace_id": trace_id(call) if "traceparent" in call.headers else None,
        "request_bytes": call.size_bytes,
    }


def _wishes(call: Call, request: Request) -> dict[str, Any]:
    return {
        "model": request.model,
        "end_user": request.values.get("user"),
        "session_id": call.headers.get("x-service-session-id") or request.values.get("session_id"),
    }


class Requests:
    """Request records, for those who write and those who ask."""

    def __init__(self, store: Store, clock: Clock, catch_up: Callable[[], Awaitable[None]] | None = None) -> None:
        self._store = store
        self._clock = clock
        self._pager = Pager(store, "request", "req")
        self._catch_up = catch_up  # writes what waits to be written, so that who looks finds the call just made

    async def reject(self, call: Call, problem: Problem, model: str | None, modality: str | None = None) -> None:
        """A call that was refused before any provider heard of it still leaves a record."""

        async def write(tx: Transaction) -> None:
            await _add(
                tx,
                call,
                model=model,
                modality=modality,
                status="rejected",
                error_code=problem.code,
                error_message=problem.message[:1000],
                duration_ms=int((self._clock.monotonic() - call.started) * 1000),
                end_user=None,
                session_id=call.headers.get("x-service-session-id"),
            )
            slot = call.at_ms // SLOT_MS
            await count(tx, call.caller.org_id, slot, call.caller.key_id, "rejected", 1, ZERO)

        await self._store.write(write)

    async def row(self, org_id: str, request_id: str) -> Row | None:
        if self._catch_up:
            await self._catch_up()
        return await self._store.one("get_request", id=request_id, org_id=org_id)

    async def find(self, org_id: str, request_id: str) -> dict[str, Any] | None:
        row = await self.row(org_id, request_id)
        return record(row) if row else None

    async def page(self, org_id: str, filters: Filters) -> Page:
        """Return records that match, newest first, and their summary if the filters ask for one."""
        if self._catch_up:
            await self._catch_up()
        page = await self._pager.page(
            org_id,
            filters.limit,
            filters.starting_after,
            filters.ending_before,
            low=filters.low,
            high=filters.high,
            query_suffix=filters.suffix,
            **filters.equal,
        )
        summary = await self._summary(org_id, filters) if filters.summary else None
        return replace(page, data=[record(row) for row in page.data], summary=summary)

    async def _summary(self, org_id: str, filters: Filters) -> dict[str, Any]:
        """Whole slots from their counts, the edges from the rows; the page plays no part."""
        first = -(-(filters.created_after_ms or 0) // SLOT_MS)
        until = filters.created_before_ms
        end = (self._clock.now_ms() if until is None else until + 1) // SLOT_MS
        low, high = filters.low or _LOWEST, filters.high or _HIGHEST
        chosen = {"key_id": filters.key_id or "", "status": filters.status or ""}
        if first < end:
            left, right = first_id("req", first * SLOT_MS), first_id("req", end * SLOT_MS)
            edges = {"low": low, "left": left, "right": right, "high": high}
            parts = await self._store.slow("sum_requests", org_id=org_id, first=first, end=end, **edges, **chosen)
        else:
            parts = await self._store.slow("sum_range", org_id=org_id, low=low, high=high)
        fitting = [part for part in parts if all(name in ("", part[word]) for word, name in chosen.items())]
        spent = Nanos(sum(int(part["cost"]) for part in fitting))
        return {"total_cost": dollars(spent), "currency": "usd", "count": sum(int(part["count"]) for part in fitting)}
