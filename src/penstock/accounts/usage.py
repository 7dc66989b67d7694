"""Sum up requests over time: costs, counts, success and latency, by one or two of their properties; and failures."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import msgspec

from penstock.accounts.key_records import read_key_names
from penstock.accounts.labels import label_columns
from penstock.errors import InvalidRequest
from penstock.store.base import Row, Store
from penstock.values import Nanos, OrgId, dollars, first_id, iso

BUCKETS = ("hour", "day", "week", "month")
GROUPS = ("model", "provider", "key", "kind", "user", "session", "account")  # and `label:` with the name of a label
LABEL_GROUP = "label:"
MAX_GROUPS = 2  # by which sums can be grouped at once
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
    session_id: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)

    @property
    def columns(self) -> Row:
        return {
            "key_id": self.key_id,
            "model": self.model,
            "provider": self.provider,
            "kind": self.kind,
            "end_user": self.user,
            "session_id": self.session_id,
            **label_columns(self.labels),
        }


class _UsageRow(msgspec.Struct, frozen=True, kw_only=True):
    """Sums over the requests of one status in one bucket and one group."""

    bucket: int  # the number of the bucket, from 0
    name: str | None  # of the group
    second: str | None  # of the group within it, if there are two
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


Names = tuple[str | None, ...]  # of a group: one by each property that is grouped by


@dataclass(slots=True)
class _Sums:
    """Figures of each bucket, each group, each group in each bucket, and all."""

    total: _Figures = field(default_factory=_Figures)
    buckets: dict[int, _Figures] = field(default_factory=dict)
    groups: dict[Names, _Figures] = field(default_factory=dict)
    cells: dict[tuple[int, Names], _Figures] = field(default_factory=dict)

    def add(self, row: _UsageRow, depth: int) -> None:
        """Add a row, whose group has as many names as the depth says."""
        names = (row.name, row.second)[:depth]
        durations = _decode_durations(row.durations or "{}")
        self.total.add(row, durations)
        self.buckets.setdefault(row.bucket, _Figures()).add(row, durations)
        self.groups.setdefault(names, _Figures()).add(row, durations)
        self.cells.setdefault((row.bucket, names), _Figures()).add(row, durations)


class Accounts(NamedTuple):
    """The accounts at vendors that a caller may know of: their names by their ids, and whether these are all."""

    names: Mapping[str, str] = {}
    are_all: bool = False


def _sum_up(rows: Iterable[Row], group_by: Sequence[str], accounts: Accounts) -> _Sums:
    sums = _Sums()
    columns = [column for column, by in zip(("name", "second"), group_by, strict=False) if by == "account"]
    for row in rows:
        for column in columns:
            if not accounts.are_all and row[column] not in accounts.names:
                row[column] = None
        sums.add(_UsageRow(**row), len(group_by))
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

    async def report(
        self,
        org_id: OrgId,
        filters: UsageFilters,
        bucket: str,
        group_by: Sequence[str] = (),
        accounts: Accounts = Accounts(),  # noqa: B008 - it cannot be changed
    ) -> dict[str, Any]:
        """Return the figures of each bucket of time, also of the empty ones, and of the whole time; and those of each
        group, by up to two properties. Accounts that the caller may not know of are one group without a name.

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
            **_group_columns(group_by),
            limit=MAX_SUMS + 1,
            **filters.columns,
        )
        if len(rows) > MAX_SUMS:
            message = "There are too many groups: choose a shorter time, longer buckets, or filter by what they have."
            raise InvalidRequest(message, param="group_by")
        sums = await asyncio.to_thread(_sum_up, rows, group_by, accounts)
        places = [place for place, name in enumerate(group_by) if name == "key"]
        ids = {key_id for names in sums.groups for place in places if (key_id := names[place])}
        names = {**accounts.names, **await read_key_names(self._store, sorted(ids), org_id)}
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


def _group_columns(group_by: Sequence[str]) -> Row:
    """What `sum_usage` groups by: names of columns, and of labels."""
    columns: Row = {"group_by": None, "label": None, "and_by": None, "and_label": None}
    for (column, label), name in zip((("group_by", "label"), ("and_by", "and_label")), group_by, strict=False):
        kind, _, label_name = name.partition(":")
        columns |= {column: kind, label: label_name or None}
    return columns


def _report_body(
    sums: _Sums,
    spans: list[tuple[int, int]],
    bucket: str,
    group_by: Sequence[str],
    shown_names: Mapping[str, str | None],
) -> dict[str, Any]:
    def largest(names: Names) -> tuple[int, int, list[str]]:
        figures = sums.groups[names]
        return -figures.cost, -sum(figures.counts.values()), [name or "" for name in names]

    order = sorted(sums.groups, key=largest)

    def group(names: Names, figures: _Figures) -> dict[str, Any]:
        shown = [
            shown_names.get(name or "", name) if by in ("key", "account") else name
            for by, name in zip(group_by, names, strict=True)
        ]
        if len(names) == 1:
            return {"group": names[0], "name": shown[0], **figures.body()}
        return {"group": list(names), "name": shown, **figures.body()}

    return {
        "object": "usage",
        "bucket": bucket,
        "group_by": ",".join(group_by) or None,
        "start": iso(spans[0][0]),
        "end": iso(spans[-1][1]),
        "currency": "usd",
        "total": sums.total.body(),
        "groups": [group(names, sums.groups[names]) for names in order] if group_by else [],
        "data": [
            {
                "start": iso(start),
                "end": iso(end),
                **sums.buckets.get(number, _Figures()).body(),
                "groups": [
                    group(names, sums.cells[number, names])
                    for names in order
                    if group_by and (number, names) in sums.cells
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
