"""Usage over time: every figure against the same sum from the rows, and the buckets of time."""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import apsw
import msgspec
import psycopg
import pytest
from psycopg.rows import dict_row

from penstock.accounts import usage
from penstock.accounts.usage import BUCKETS, MAX_BUCKETS, UsageFilters, UsageReports, bucket_spans
from penstock.errors import InvalidRequest
from penstock.values import Nanos, OrgId, dollars, first_id, iso, new_id
from tests.databases import Database, nothing_waits

COUNT = 20_000
START = 1_700_000_000_000
STEP = 250_000  # 20,000 requests in 58 days
END = START + COUNT * STEP
COLUMN = {
    "model": "model",
    "provider": "provider",
    "key": "key_id",
    "kind": "kind",
    "user": "end_user",
    "session": "session_id",
    "label:customer": "customer",
    "label:project.code": "project",
}

# Rows made by the database itself, because sending them takes longer. {n} counts them.
ROWS = """
INSERT INTO requests (org_id, id, key_id, created_at_ms, endpoint, model, status, cost, duration_ms, kind, provider,
    end_user, input_tokens, output_tokens, error_code, error_message, session_id, labels)
SELECT '{org}', 'req_' || {time} || {number}, CASE WHEN n % 3 = 0 THEN 'key_a' ELSE 'key_b' END, {start} + n * {step},
    '/x',
    CASE WHEN n % 17 = 0 THEN NULL ELSE 'model-' || (n % 7) END,
    CASE WHEN n % 10 < 6 THEN 'completed' WHEN n % 10 = 6 THEN 'upstream_failure' WHEN n % 10 = 7 THEN 'rejected'
        WHEN n % 10 = 8 THEN 'cancelled' WHEN n % 20 = 9 THEN 'pending' ELSE 'processing' END,
    CASE WHEN n % 10 < 6 THEN (n * 7919) % 1000003 ELSE 0 END,
    CASE WHEN n % 10 = 9 THEN NULL ELSE (n * 104729) % 60013 END,
    CASE n % 5 WHEN 0 THEN 'image' WHEN 1 THEN 'video' ELSE 'chat' END,
    CASE WHEN n % 11 = 0 THEN NULL WHEN n % 2 = 0 THEN 'lab' ELSE 'annex' END,
    CASE WHEN n % 4 = 0 THEN 'ann' END, n % 1000, n % 300, 'CODE_' || (n % 3), 'message ' || n,
    CASE WHEN n % 8 = 0 THEN 's' || (n % 40) END,
    CASE n % 3 WHEN 0 THEN '{{"customer":"c' || (n % 5) || '","project.code":"p' || (n % 2) || '"}}'
        WHEN 1 THEN '{{"customer":"c' || (n % 4) || '"}}' END
FROM {series}
"""
SQLITE = {
    "time": f"printf('%012x', {START} + n * {STEP})",
    "number": "printf('%020x', n)",
    "series": "(WITH RECURSIVE s (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM s LIMIT {count}) SELECT n FROM s)",
}
POSTGRES = {
    "time": f"lpad(to_hex({START} + n * {STEP}), 12, '0')",
    "number": "lpad(to_hex(n), 20, '0')",
    "series": "generate_series(0::bigint, {count} - 1) AS n",
}


def fill(database: Database, org_id: OrgId, count: int = COUNT) -> list[dict[str, Any]]:
    """Add the rows, and return them as the database has them."""
    made = SQLITE if database.dialect == "sqlite" else POSTGRES
    series = made["series"].format(count=count)
    insert = ROWS.format(org=org_id, start=START, step=STEP, **{**made, "series": series})
    select = f"SELECT * FROM requests WHERE org_id = '{org_id}' ORDER BY id"  # noqa: S608
    if database.dialect == "sqlite":
        with closing(apsw.Connection(database.address)) as connection:
            connection.execute(insert)
            cursor = connection.execute(select)
            columns = [name for name, _ in cursor.get_description()]
            return [with_labels(dict(zip(columns, row, strict=True))) for row in cursor]
    with psycopg.connect(database.address, row_factory=dict_row, autocommit=True) as connection:
        connection.execute(insert.encode())
        return [with_labels(row) for row in connection.execute(select.encode())]


def with_labels(row: dict[str, Any]) -> dict[str, Any]:
    labels = msgspec.json.decode(row["labels"] or "{}")
    customer, project = labels.get("customer"), labels.get("project.code")
    return {**row, "customer": customer, "project": project, "both": f"{customer}{project}"}


def rounded_down(duration_ms: int) -> int:
    """To three digits."""
    digits = str(duration_ms)
    return int(digits[:3].ljust(len(digits), "0"))


def figures(rows: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The figures of these rows, computed in the plainest way."""
    listed = list(rows)
    counts = Counter(row["status"] for row in listed)
    durations = sorted(rounded_down(row["duration_ms"]) for row in listed if row["status"] == "completed")
    tried = counts["completed"] + counts["upstream_failure"]

    def percentile(percent: int) -> int | None:
        return durations[-(-percent * len(durations) // 100) - 1] if durations else None

    return {
        "requests": len(listed),
        "completed": counts["completed"],
        "failed": counts["upstream_failure"],
        "rejected": counts["rejected"],
        "cancelled": counts["cancelled"],
        "open": counts["pending"] + counts["processing"],
        "success_rate": counts["completed"] / tried if tried else None,
        "cost": dollars(Nanos(sum(row["cost"] for row in listed))),
        "input_tokens": sum(row["input_tokens"] for row in listed),
        "output_tokens": sum(row["output_tokens"] for row in listed),
        "latency_ms": {"p50": percentile(50), "p95": percentile(95)},
    }


def shown(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {name: entry[name] for name in figures([])}


def names_of(group: Any) -> Any:
    return tuple(group) if isinstance(group, list) else group


async def check(reports: UsageReports, org_id: OrgId, rows: list[dict[str, Any]], bucket: str, *group_by: str) -> None:
    """Compare a report of the time from the first to the last of these rows with the rows."""
    filters = UsageFilters(start_ms=rows[0]["created_at_ms"], end_ms=rows[-1]["created_at_ms"] + 1)
    report = await reports.report(org_id, filters, bucket, group_by)
    assert (report["start"], report["end"]) == (iso(filters.start_ms), iso(filters.end_ms))
    assert shown(report["total"]) == figures(rows)
    starts = [(entry["start"], entry["end"]) for entry in report["data"]]
    assert [end for _, end in starts[:-1]] == [start for start, _ in starts[1:]], "without gaps"
    columns = [COLUMN[name] for name in group_by]
    cells = defaultdict[tuple[str, Any], list[dict[str, Any]]](list)
    groups = defaultdict[Any, list[dict[str, Any]]](list)
    place = 0
    for row in rows:
        while iso(row["created_at_ms"]) >= starts[place][1]:
            place += 1
        name = names_of(row[columns[0]] if len(columns) == 1 else [row[column] for column in columns])
        cells[starts[place][0], name].append(row)
        groups[name].append(row)
    for entry in report["data"]:
        inside = {name: found for (start, name), found in cells.items() if start == entry["start"]}
        assert shown(entry) == figures(row for found in inside.values() for row in found), (bucket, entry["start"])
        assert not columns or entry["groups"]
        for group in entry["groups"]:
            assert shown(group) == figures(inside.pop(names_of(group["group"]))), (entry["start"], group["group"])
        assert not columns or not inside
    for group in report["groups"]:
        assert shown(group) == figures(groups.pop(names_of(group["group"]))), group["group"]
    assert not columns or not groups
    costs = [group["cost"] for group in report["groups"]]
    assert costs == sorted(costs, reverse=True)


@pytest.mark.timeout(300)  # adding the rows takes long on a busy machine
async def test_every_figure_is_the_sum_over_the_rows(database: Database) -> None:
    """Over 20,000 rows by day and model; the other buckets and groups over the last 3,000 of them."""
    async with database.open() as store:
        org_id, other = OrgId(new_id("org", START)), OrgId(new_id("org", START))
        for each in (org_id, other):
            values = {"id": each, "name": "o", "billing": "prepaid", "created_at_ms": START}
            await store.write(lambda tx, values=values: tx.run("add_org", **values))  # type: ignore[misc]
        rows = await asyncio.to_thread(fill, database, org_id)
        assert len(rows) == COUNT
        reports = UsageReports(store, nothing_waits)
        await check(reports, org_id, rows, "day", "model")
        for bucket in BUCKETS:
            await check(reports, org_id, rows[-3000:], bucket)
        for group_by in COLUMN:
            await check(reports, org_id, rows[-3000:], "week", group_by)
        for pair in (
            ("label:customer", "model"),
            ("user", "label:project.code"),
            ("label:customer", "label:project.code"),
        ):
            await check(reports, org_id, rows[-3000:], "week", *pair)

        filters = UsageFilters(start_ms=START, end_ms=END)
        for filtered, column, value in (
            (replace(filters, key_id="key_a"), "key_id", "key_a"),
            (replace(filters, model="model-3"), "model", "model-3"),
            (replace(filters, provider="annex"), "provider", "annex"),
            (replace(filters, kind="video"), "kind", "video"),
            (replace(filters, user="ann"), "end_user", "ann"),
            (replace(filters, session_id="s16"), "session_id", "s16"),
            (replace(filters, labels={"customer": "c3"}), "customer", "c3"),
            (replace(filters, labels={"customer": "c3", "project.code": "p1"}), "both", "c3p1"),
        ):
            report = await reports.report(org_id, filtered, "month")
            assert shown(report["total"]) == figures(row for row in rows if row[column] == value), column
        empty = await reports.report(other, filters, "month", ["model"])
        assert (shown(empty["total"]), empty["groups"]) == (figures([]), [])

        failures = await reports.list_failures(org_id, filters, 5)
        counted = Counter(
            (row["error_code"], row["status"], row["model"], row["provider"])
            for row in rows
            if row["status"] in ("upstream_failure", "rejected")
        )
        assert [failure["count"] for failure in failures] == [count for _, count in counted.most_common(5)]
        for failure in failures:
            same = (failure["error_code"], failure["status"], failure["model"], failure["provider"])
            assert failure["count"] == counted[same]
            last = [row for row in rows if (row["error_code"], row["status"], row["model"], row["provider"]) == same][
                -1
            ]
            assert failure["last_request_id"] == last["id"]
            assert (failure["last_at"], failure["message"]) == (iso(last["created_at_ms"]), last["error_message"])
        assert await reports.list_failures(other, filters, 5) == []


async def test_too_many_groups_are_refused(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """A caller can invent names of models; what is read of them is limited."""
    async with database.open() as store:
        org_id = OrgId(new_id("org", START))
        await store.write(lambda tx: tx.run("add_org", id=org_id, name="o", billing="prepaid", created_at_ms=START))
        rows = await asyncio.to_thread(fill, database, org_id, 100)
        reports = UsageReports(store, nothing_waits)
        filters = UsageFilters(start_ms=START, end_ms=END)
        monkeypatch.setattr(usage, "MAX_SUMS", len({(row["model"], row["status"]) for row in rows}))
        assert (await reports.report(org_id, filters, "month", ["model"]))["total"]["requests"] == 100
        monkeypatch.setattr(usage, "MAX_SUMS", usage.MAX_SUMS - 1)
        with pytest.raises(InvalidRequest, match="too many groups") as refused:
            await reports.report(org_id, filters, "month", ["model"])
        assert refused.value.param == "group_by"


def moment(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


@pytest.mark.parametrize(
    ("bucket", "boundaries"),
    [
        ("hour", ["2026-02-28T22:00", "2026-02-28T23:00", "2026-03-01T00:00", "2026-03-01T01:00"]),
        ("day", ["2026-02-28T22:00", "2026-03-01", "2026-03-01T01:00"]),
        ("week", ["2026-02-28T22:00", "2026-03-01T01:00"]),
        ("month", ["2026-02-28T22:00", "2026-03-01", "2026-03-01T01:00"]),
    ],
)
def test_buckets_begin_where_hours_days_weeks_and_months_do(bucket: str, boundaries: list[str]) -> None:
    times = [moment(text) for text in boundaries]
    assert bucket_spans(times[0], times[-1], bucket) == list(pairwise(times))


def test_weeks_begin_on_monday_and_months_on_their_first_day() -> None:
    spans = bucket_spans(moment("2026-01-01"), moment("2026-03-15"), "week")
    assert {datetime.fromtimestamp(start / 1000, UTC).weekday() for start, _ in spans[1:]} == {0}
    spans = bucket_spans(moment("2025-11-20"), moment("2026-03-15"), "month")
    assert [iso(start)[:10] for start, _ in spans] == [
        "2025-11-20",
        "2025-12-01",
        "2026-01-01",
        "2026-02-01",
        "2026-03-01",
    ]


def test_too_many_buckets_and_an_empty_time_are_refused() -> None:
    start = moment("2026-01-01")
    assert len(bucket_spans(start, start + MAX_BUCKETS * 3_600_000, "hour")) == MAX_BUCKETS
    with pytest.raises(InvalidRequest, match="more than 1000 buckets"):
        bucket_spans(start, start + MAX_BUCKETS * 3_600_000 + 1, "hour")
    with pytest.raises(InvalidRequest, match="later"):
        bucket_spans(start, start, "day")


@pytest.mark.timeout(60)
async def test_durations_are_counted_in_the_database_not_listed(database: Database) -> None:
    """What is read for a group does not grow with its requests: durations within one percent are counted together."""
    async with database.open() as store:
        org_id = OrgId(new_id("org", START))
        await store.write(lambda tx: tx.run("add_org", id=org_id, name="o", billing="prepaid", created_at_ms=START))
        await asyncio.to_thread(fill, database, org_id)
        buckets = [(first_id("req", START), first_id("req", END), START)]
        rows = await store.all(
            "sum_usage",
            org_id=org_id,
            buckets=msgspec.json.encode(buckets).decode(),
            low=buckets[0][0],
            high=buckets[0][1],
            group_by=None,
            label=None,
            and_by=None,
            and_label=None,
            limit=10,
            **UsageFilters(start_ms=START, end_ms=END).columns,
        )
        found = {row["status"]: msgspec.json.decode(row["durations"] or "{}", type=dict[int, int]) for row in rows}
        assert sum(found["completed"].values()) == COUNT * 3 // 5
        assert all(duration == rounded_down(duration) for duration in found["completed"])
        assert len(found.pop("completed")) <= 1000 + 900 + 501  # below 1 s, below 10 s, from there to 60 s
        assert all(durations == {} for durations in found.values())
