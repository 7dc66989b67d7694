"""Sum up requests over time: costs, counts, success and latency, by model, provider, key or kind; and failures."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from penstock.accounts.key_records import read_key_names
from penstock.errors import InvalidRequest
from penstock.store.base import Row, Store
from penstock.values import Nanos, OrgId, dollars, first_id, iso

BUCKETS = ("hour", "day", "week", "month")
GROUPS = ("model", "provider", "key", "kind")
MAX_BUCKETS = 1000
MAX_SUMS = 50_000  # of a bucket, a group and a status: callers can invent names of models
DEFAULT_DAYS = 30

# How the statuses of requests are counted.
_COUNTED_AS = {
    "completed": "completed",
    "upstream_failure": "failed",
    "rejected": "rejected",
    "cancelled": "cancelled",
    "pending": "open",
    "processing": "open",
}


_decode_durations = msgspec.json.Decoder(dict[int, int]).decode


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageFilters:
    """Which requests to sum up: from `start_ms` to before `end_ms`."""

    start_ms: int
    end_ms: int
    key_id: str | None = None
    model: str | None = None
    provider: str | None = None
    kind: str | None = None
    user: str | None = None

    @property
    def columns(self) -> Row:
        return {
            "key_id": self.key_id,
            "model": self.model,
            "provider": self.provider,
            "kind": self.kind,
            "end_user": self.user,
        }


class _UsageRow(msgspec.Struct, frozen=True, kw_only=True):
    """Sums over the requests of one status in one bucket and one group."""

    bucket: int  # the number of the bucket, from 0
    name: str | None  # of the group
    status: str
    count: int
    cost: int
    input_tokens: int
    output_tokens: int
    durations: str | None  # how many completed requests had which, as JSON


class _FailureRow(msgspec.Struct, frozen=True, kw_only=True):
    """A kind of failure, how often it occurred, and its newest request."""

    error_code: str | None
    status: str
    model: str | None
    provider: str | None
    count: int
    last_id: str
    error_message: str | None
    created_at_ms: int


@dataclass(slots=True)
class _Figures:
    """Sums over some requests."""

    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_COUNTED_AS.values(), 0))
    cost: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    durations: Counter[int] = field(default_factory=Counter)  # how many completed requests had which

    def add(self, row: _UsageRow, durations: Mapping[int, int]) -> None:
        self.counts[_COUNTED_AS[row.status]] += row.count
        self.cost += row.cost
        self.input_tokens += row.input_tokens
        self.output_tokens += row.output_tokens
        self.durations.update(durations)

    def body(self) -> dict[str, Any]:
        tried = self.counts["completed"] + self.counts["failed"]
        return {
            "requests": sum(self.counts.values()),
            **self.counts,
            "success_rate": self.counts["completed"] / tried if tried else None,
            "cost": dollars(Nanos(self.cost)),
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "latency_ms": _percentiles(self.durations),
        }


@dataclass(slots=True)
class _Sums:
    """Figures of each bucket, each group, each group in each bucket, and all."""

    total: _Figures = field(default_factory=_Figures)
    buckets: dict[int, _Figures] = field(default_factory=dict)
    groups: dict[str | None, _Figures] = field(default_factory=dict)
    cells: dict[tuple[int, str | None], _Figures] = field(default_factory=dict)

    def add(self, row: _UsageRow) -> None:
        durations = _decode_durations(row.durations or "{}")
        self.total.add(row, durations)
        self.buckets.setdefault(row.bucket, _Figures()).add(row, durations)
        self.groups.setdefault(row.name, _Figures()).add(row, durations)
        self.cells.setdefault((row.bucket, row.name), _Figures()).add(row, durations)


def _sum_up(rows: Iterable[Row]) -> _Sums:
    sums = _Sums()
    for row in rows:
        sums.add(_UsageRow(**row))
    return sums


def _percentiles(durations: Mapping[int, int]) -> dict[str, int | None]:
    """Return the shortest durations that 50 and 95 percent do not exceed; `durations` says how often each occurs."""
    return {f"p{percent}": _percentile(durations, percent) for percent in (50, 95)}


def _percentile(durations: Mapping[int, int], percent: int) -> int | None:
    wanted = percent * sum(durations.values())
    reached = 0
    for duration in sorted(durations):
        reached += 100 * durations[duration]
        if reached >= wanted:
            return duration
    return None


class UsageReports:
    """Sums up requests. `catch_up` writes requests of an organization that wait in memory, so that they are counted."""

    def __init__(self, store: Store, catch_up: Callable[[OrgId], Awaitable[None]]) -> None:
        self._store = store
        self._catch_up = catch_up

    async def report(self, org_id: OrgId, filters: UsageFilters, bucket: str, group_by: str | None) -> dict[str, Any]:
        """Return the figures of each bucket of time, also of the empty ones, and of the whole time.

        Raises InvalidRequest for a time with too many buckets, or with too many groups in them.
        """
        await self._catch_up(org_id)
        spans = bucket_spans(filters.start_ms, filters.end_ms, bucket)
        buckets = [(first_id("req", start), first_id("req", end), start) for start, end in spans]
        rows = await self._store.slow(
            "sum_usage",
            org_id=org_id,
            buckets=msgspec.json.encode(buckets).decode(),
            low=buckets[0][0],
            high=buckets[-1][1],
            group_by=group_by,
            limit=MAX_SUMS + 1,
            **filters.columns,
        )
        if len(rows) > MAX_SUMS:
            message = "There are too many groups: choose a shorter time, longer buckets, or filter by what they have."
            raise InvalidRequest(message, param="group_by")
        sums = await asyncio.to_thread(_sum_up, rows)
        ids = [name for name in sums.groups if name] if group_by == "key" else []
        names = await read_key_names(self._store, ids, org_id)
        # In a thread, because it takes long with many buckets and groups.
        return await asyncio.to_thread(_report_body, sums, spans, bucket, group_by, names)

    async def list_failures(self, org_id: OrgId, filters: UsageFilters, limit: int) -> list[dict[str, Any]]:
        """Return the most frequent failures, with the message of the newest request of each."""
        await self._catch_up(org_id)
        low, high = first_id("req", filters.start_ms), first_id("req", filters.end_ms)
        rows = await self._store.slow(
            "count_failures", org_id=org_id, low=low, high=high, limit=limit, **filters.columns
        )
        return [_failure(_FailureRow(**row)) for row in rows]


def _failure(row: _FailureRow) -> dict[str, Any]:
    return {
        "object": "failure",
        "error_code": row.error_code,
        "status": row.status,
        "model": row.model,
        "provider": row.provider,
        "count": row.count,
        "last_at": iso(row.created_at_ms),
        "last_request_id": row.last_id,
        "message": row.error_message,
    }


def _report_body(
    sums: _Sums, spans: list[tuple[int, int]], bucket: str, group_by: str | None, names: dict[str, str | None]
) -> dict[str, Any]:
    order = sorted(
        sums.groups, key=lambda name: (-sums.groups[name].cost, -sum(sums.groups[name].counts.values()), name or "")
    )

    def group(name: str | None, figures: _Figures) -> dict[str, Any]:
        return {"group": name, "name": names.get(name or "", name), **figures.body()}

    return {
        "object": "usage",
        "bucket": bucket,
        "group_by": group_by,
        "start": iso(spans[0][0]),
        "end": iso(spans[-1][1]),
        "currency": "usd",
        "total": sums.total.body(),
        "groups": [group(name, sums.groups[name]) for name in order] if group_by else [],
        "data": [
            {
                "start": iso(start),
                "end": iso(end),
                **sums.buckets.get(number, _Figures()).body(),
                "groups": [
                    group(name, sums.cells[number, name]) for name in order if group_by and (number, name) in sums.cells
                ],
            }
            for number, (start, end) in enumerate(spans)
        ],
    }


# ------------------------------------------------------------------------------------------------------------- buckets


def bucket_spans(start_ms: int, end_ms: int, bucket: str) -> list[tuple[int, int]]:
    """Return start and end of each bucket in UTC. The first and the last are cut off where the time begins and ends.

    Raises InvalidRequest when there would be too many.
    """
    if end_ms <= start_ms:
        raise InvalidRequest("`created_before` must be later than `created_after`.", param="created_before")
    spans: list[tuple[int, int]] = []
    start = start_ms
    for boundary in _boundaries(start_ms, bucket):
        end = min(boundary, end_ms)
        if len(spans) == MAX_BUCKETS:
            raise InvalidRequest(
                f"`bucket` is too short: there would be more than {MAX_BUCKETS} buckets.", param="bucket"
            )
        spans.append((start, end))
        if end == end_ms:
            break
        start = end
    return spans


def _boundaries(after_ms: int, bucket: str) -> Iterator[int]:
    """The moments after a time at which a bucket ends and the next begins."""
    moment = datetime.fromtimestamp(after_ms // 1000, UTC).replace(minute=0, second=0, microsecond=0)
    if bucket != "hour":
        moment = moment.replace(hour=0)
    if bucket == "week":
        moment -= timedelta(days=moment.weekday())
    if bucket == "month":
        moment = moment.replace(day=1)
    while True:
        moment = _next_moment(moment, bucket)
        yield int(moment.timestamp()) * 1000


def _next_moment(moment: datetime, bucket: str) -> datetime:
    if bucket == "month":
        return (moment + timedelta(days=31)).replace(day=1)
    return moment + {"hour": timedelta(hours=1), "day": timedelta(days=1), "week": timedelta(weeks=1)}[bucket]
