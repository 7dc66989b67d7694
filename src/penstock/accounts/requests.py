"""Keep one row per request: open it, end it, count it, list it."""

import re
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import msgspec

from penstock import states
from penstock.accounts.labels import decode_labels, encode_labels, label_rows
from penstock.accounts.request_filters import HIGHEST_ID, LOWEST_ID, Filters
from penstock.accounts.request_records import RequestRow, encode_attempts, encode_lines, request_record
from penstock.clock import Clock
from penstock.errors import InvalidRequest, Problem
from penstock.schema import (
    LISTEN_TASKS,
    MODALITY,
    SLOT_MS,
    Call,
    CostLine,
    FailedAttempt,
    PlannedCandidate,
    Request,
)
from penstock.store.base import Row, Store, Transaction
from penstock.store.paging import Page, Pager
from penstock.values import ZERO, Nanos, OrgId, dollars, first_id, month_text

KINDS = ("image", "edit", "upscale", "video", "chat", "speech", "sound", "transcription")
STATUSES = tuple(states.REQUEST)
_MAX_MESSAGE_CHARS = 1000
_ROWS_AT_ONCE = 500
SESSION_HEADER = "x-service-session-id"
_MAX_SESSION_CHARS = 256
_TRACEPARENT = re.compile(r"00-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")


class RequestEnd(msgspec.Struct, frozen=True):
    """How a request ended: its final status, what it costs the caller, and the error if it failed."""

    status: str
    cost: Nanos = ZERO
    duration_ms: int | None = None
    response_bytes: int | None = None
    error_code: str | None = None
    error_message: str | None = None
    provider: str | None = None  # None: the one that was last asked, if any
    upstream_model: str | None = None
    account_id: str | None = None  # of the provider; None: the credential of the environment
    vendor_cost: Nanos | None = None  # at the list price, where an account of the organization served
    input_tokens: int | None = None
    cached_tokens: int | None = None
    output_tokens: int | None = None
    cost_lines: Sequence[CostLine] = ()  # of the cost before it was limited to the hold
    attempts: Sequence[FailedAttempt] = ()  # of a chat call

    def columns(self) -> Row:
        return {
            "status": self.status,
            "cost": self.cost,
            "duration_ms": self.duration_ms,
            "response_bytes": self.response_bytes,
            "error_code": self.error_code,
            "error_message": self.error_message[:_MAX_MESSAGE_CHARS] if self.error_message else None,
            "provider": self.provider,
            "upstream_model": self.upstream_model,
            "account_id": self.account_id,
            "vendor_cost": self.vendor_cost,
            "input_tokens": self.input_tokens,
            "cached_tokens": self.cached_tokens,
            "output_tokens": self.output_tokens,
            "cost_lines": encode_lines(self.cost_lines) if self.cost_lines else None,
            "attempts": encode_attempts(self.attempts) if self.attempts else None,
        }


class RequestUsage(NamedTuple):
    """An ended request, as the usage slots count it."""

    org_id: OrgId
    key_id: str
    status: str
    slot: int
    cost: int
    labels: str | None = None  # as stored
    account_id: str | None = None  # at the vendor
    vendor_cost: int | None = None  # what it cost there, if that is not the cost


def check_session_id(headers: Mapping[str, str]) -> None:
    """Raise InvalidRequest if the header with the id of the session is longer than the field may be."""
    if len(headers.get(SESSION_HEADER, "")) > _MAX_SESSION_CHARS:
        raise InvalidRequest(f"The header X-Service-Session-Id may have at most {_MAX_SESSION_CHARS} characters.")


def trace_id(call: Call) -> str | None:
    """Return the id of the trace that the call belongs to: where tracing is on, that of its span, otherwise that of the
    `traceparent` header; None if there is none or it is malformed.
    """
    if call.trace_id is not None or "traceparent" not in call.headers:
        return call.trace_id
    match = _TRACEPARENT.fullmatch(call.headers["traceparent"])
    return match[1] if match else None


# ---------------------------------------------------------------------------------------------------------- one request


def new_request_row(
    call: Call,
    request: Request,
    hold: Nanos,
    *,
    status: str = "pending",
    modality: str | None = None,
    process_id: str | None = None,
    sent_to: PlannedCandidate | None = None,
) -> Row:
    """Return the row of an accepted request, for `add_request`; its modality is the task's unless one is given.

    `sent_to` is the candidate to which it is sent as soon as it is accepted.
    """
    return {
        **_request_columns(call, request, modality or MODALITY.get(request.task)),
        **_NOT_ENDED,
        "status": "processing" if sent_to else status,
        "hold": hold,
        "process_id": process_id,
        "provider": sent_to.provider if sent_to else None,
        "upstream_model": sent_to.upstream if sent_to else None,
        "account_id": (sent_to.account or None) if sent_to else None,
    }


async def end_request(tx: Transaction, org_id: OrgId, request_id: str, end: RequestEnd) -> RequestUsage | None:
    """End an open request; return what the caller counts with `count_usage`, or None if it had ended already."""
    row = await tx.one("end_request", **request_end_values(org_id, request_id, end))
    if row is None:
        return None
    slot = row["created_at_ms"] // SLOT_MS
    return RequestUsage(
        org_id, row["key_id"], end.status, slot, end.cost, row["labels"], row["account_id"], end.vendor_cost
    )


def request_end_values(org_id: OrgId, request_id: str, end: RequestEnd) -> Row:
    """Return the values for the query `end_request`."""
    return {"id": request_id, "org_id": org_id, **end.columns()}


def ended_request_row(call: Call, request: Request, modality: str | None, end: RequestEnd) -> Row:
    """Return the row of a request that is written only after it has ended, for `add_ended_requests`."""
    return {**_request_columns(call, request, modality), **end.columns(), "hold": 0}


async def add_ended_requests(tx: Transaction, rows: Sequence[Row]) -> int:
    """Add rows and return how many were new. They are not counted; the caller calls `count_usage`."""
    added = await tx.run_many("add_ended_request", rows)
    if labels := label_rows(rows):
        await tx.put_many("add_request_label", labels)
    return added


async def count_usage(tx: Transaction, ended: Iterable[RequestUsage]) -> None:
    """Add ended requests to the usage slots by key and status, by key, by status, and in total; and to what their
    labels and their accounts have spent.

    Each slot is changed once, in the order of their primary keys: many transactions share them.
    """
    same = defaultdict[tuple[OrgId, str, str, int], list[int]](list)
    spent = defaultdict[tuple[str, str, str, str], int](int)
    by_account = defaultdict[tuple[str, str], int](int)
    for org_id, key_id, status, slot, cost, labels, account_id, vendor_cost in ended:
        same[org_id, key_id, status, slot].append(cost)
        if account_id is not None and (spent_there := cost if vendor_cost is None else vendor_cost):
            by_account[month_text(slot * SLOT_MS), account_id] += spent_there
        if labels is not None and cost:
            for name, value in decode_labels(labels).items():
                spent[month_text(slot * SLOT_MS), org_id, name, value] += cost
    counts = defaultdict[tuple[str, str, str, int], int](int)
    costs = defaultdict[tuple[str, str, str, int], int](int)
    for (org_id, key_id, status, slot), several in same.items():
        for slot_key, slot_status in ((key_id, status), (key_id, ""), ("", status), ("", "")):
            counts[org_id, slot_key, slot_status, slot] += len(several)
            costs[org_id, slot_key, slot_status, slot] += sum(several)
    names = ("org_id", "key_id", "status", "slot")
    rows = [dict(zip(names, key, strict=True), count=counts[key], cost=costs[key]) for key in sorted(counts)]
    if rows:
        await tx.put_many("add_usage", rows)
    if spent:
        names = ("month", "org_id", "name", "value")
        sums = [dict(zip(names, key, strict=True), spent=spent[key]) for key in sorted(spent)]
        await tx.put_many("add_label_spend", sums)
    if by_account:
        await tx.put_many(
            "add_account_spend",
            [
                {"month": month, "account_id": account_id, "spent": cost}
                for (month, account_id), cost in sorted(by_account.items())
            ],
        )


_NOT_ENDED: Row = {
    "cost": ZERO,
    "duration_ms": None,
    "response_bytes": None,
    "error_code": None,
    "error_message": None,
}


def _request_columns(call: Call, request: Request, modality: str | None) -> Row:
    return {
        **_call_columns(call),
        "model": request.model,
        "modality": modality,
        "kind": "transcription" if request.task in LISTEN_TASKS else request.task,
        "end_user": request.values.get("user"),
        "session_id": call.headers.get(SESSION_HEADER) or request.values.get("session_id"),
        "labels": encode_labels(request.labels) if request.labels else None,
        "drill": request.drill or None,
    }


def _call_columns(call: Call) -> Row:
    return {
        "id": call.id,
        "org_id": call.caller.org_id,
        "key_id": call.caller.key_id,
        "created_at_ms": call.at_ms,
        "endpoint": call.endpoint,
        "trace_id": trace_id(call),
        "request_bytes": call.size_bytes,
    }


# -------------------------------------------------------------------------------------------------------- many requests


class Requests:
    """Reads requests and records rejected calls.

    `catch_up` writes requests that wait in memory, so that a caller finds the request it has just made.
    """

    def __init__(self, store: Store, clock: Clock, catch_up: Callable[[OrgId], Awaitable[None]]) -> None:
        self._store = store
        self._clock = clock
        self._pager = Pager(store, "request", "req", RequestRow)
        self._catch_up = catch_up

    async def reject(
        self,
        call: Call,
        problem: Problem,
        model: str | None,
        modality: str | None = None,
        kind: str | None = None,
        *,
        user: str | None = None,
        session_id: str | None = None,
        labels: Mapping[str, str] | None = None,
        response_bytes: int | None = None,
    ) -> None:
        """Record a call that was refused before any provider was called; the rest is what its body says."""
        duration_ms = int((self._clock.monotonic() - call.started) * 1000)
        end = RequestEnd(
            "rejected",
            duration_ms=duration_ms,
            response_bytes=response_bytes,
            error_code=problem.code,
            error_message=problem.message,
        )
        row = {
            **_call_columns(call),
            **end.columns(),
            "model": model,
            "modality": modality,
            "kind": kind,
            "hold": 0,
            "end_user": user,
            "session_id": call.headers.get(SESSION_HEADER, "")[:_MAX_SESSION_CHARS] or session_id,
            "labels": encode_labels(labels or {}),
            "drill": None,
        }

        async def write(tx: Transaction) -> None:
            if await add_ended_requests(tx, [row]):
                usage = RequestUsage(call.caller.org_id, call.caller.key_id, end.status, call.at_ms // SLOT_MS, ZERO)
                await count_usage(tx, [usage])

        await self._store.write(write, org_id=call.caller.org_id)

    async def get(self, org_id: OrgId, request_id: str) -> RequestRow | None:
        await self._catch_up(org_id)
        row = await self._store.one("get_request", id=request_id, org_id=org_id)
        return RequestRow(**row) if row else None

    async def get_record(self, org_id: OrgId, request_id: str) -> dict[str, Any] | None:
        row = await self.get(org_id, request_id)
        return request_record(row) if row else None

    async def list_records(self, org_id: OrgId, filters: Filters) -> Page[dict[str, Any]]:
        """Return the matching records, newest first, and their summary if the filters ask for it."""
        page = await self.list_page(org_id, filters)
        return page.with_data([request_record(row) for row in page.data])

    async def list_page(self, org_id: OrgId, filters: Filters) -> Page[RequestRow]:
        """Return the matching rows, as `list_records` does."""
        await self._catch_up(org_id)
        page = await self._pager.page(
            org_id,
            filters.limit,
            filters.starting_after,
            filters.ending_before,
            low=filters.low,
            high=filters.high,
            query_suffix=filters.query_suffix,
            **filters.list_columns,
        )
        return replace(page, summary=await self._summary(org_id, filters) if filters.summary else None)

    async def iterate(self, org_id: OrgId, filters: Filters) -> AsyncIterator[RequestRow]:
        """Yield all matching rows, newest first, reading a part of them at a time."""
        await self._catch_up(org_id)
        high = filters.high
        columns: Row = dict(filters.list_columns)
        more = True
        while more:
            rows, more = await self._pager.rows(
                org_id, _ROWS_AT_ONCE, low=filters.low, high=high, query_suffix=filters.query_suffix, **columns
            )
            for row in rows:
                yield row
            high = rows[-1].id if rows else None

    async def _summary(self, org_id: OrgId, filters: Filters) -> dict[str, Any]:
        """Return count and cost of everything that matches, on all pages.

        Whole slots are read from the table of slots, the time before the first and after the last from the rows.
        """
        first_slot = -(-(filters.created_after_ms or 0) // SLOT_MS)
        before_ms = filters.created_before_ms
        end_slot = (self._clock.now_ms() if before_ms is None else before_ms + 1) // SLOT_MS
        low = filters.low or LOWEST_ID
        high = filters.high or HIGHEST_ID
        if not filters.is_plain:
            sums = await self._store.slow("sum_matching_requests", org_id=org_id, low=low, high=high, **filters.columns)
            return _summary(sums)
        wanted = {"key_id": filters.key_id or "", "status": filters.status or ""}
        if first_slot < end_slot:
            sums = await self._store.slow(
                "sum_requests",
                org_id=org_id,
                first=first_slot,
                end=end_slot,
                low=low,
                left=first_id("req", first_slot * SLOT_MS),
                right=first_id("req", end_slot * SLOT_MS),
                high=high,
                **wanted,
            )
        else:
            sums = await self._store.slow("sum_range", org_id=org_id, low=low, high=high)
        return _summary([row for row in sums if all(value in ("", row[name]) for name, value in wanted.items())])


def _summary(sums: Iterable[Row]) -> dict[str, Any]:
    rows = list(sums)
    cost = Nanos(sum(int(row["cost"]) for row in rows))
    return {"total_cost": dollars(cost), "currency": "usd", "count": sum(int(row["count"]) for row in rows)}
