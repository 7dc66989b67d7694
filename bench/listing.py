"""Measure how long a page of `/v1/requests` and a report of `/v1/usage` take when there are a million requests.

    python -m bench.listing [--records 1000000]

Builds a database of requests over thirty days, then reads pages at the beginning and in the middle with every filter,
summaries, and the reports of the overview. Each figure is the median of several reads.
"""

import argparse
import asyncio
import random
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import apsw

from penstock.accounts.request_filters import Filters
from penstock.accounts.requests import Requests
from penstock.accounts.usage import UsageFilters, UsageReports
from penstock.clock import Clock
from penstock.schema import SLOT_MS
from penstock.settings import Settings
from penstock.store.opening import open_store
from penstock.values import OrgId, first_id, new_id

DAY_MS = 86_400_000
DAYS = 30
STATUSES = ("completed",) * 90 + ("upstream_failure",) * 6 + ("rejected",) * 3 + ("cancelled",)
ORG = OrgId(new_id("org", 1))
REPORTS = (
    ("usage of a day by hour and model", 1, "hour", ("model",)),
    ("usage of a week by day and model", 7, "day", ("model",)),
    ("usage of all by day and model", DAYS, "day", ("model",)),
    ("usage of all by day", DAYS, "day", ()),
)


def build(path: Path, records: int, now_ms: int) -> list[str]:
    """Insert requests directly into the tables, as the gateway would have; return the ids of the keys."""
    random_numbers = random.Random(7)
    keys = [new_id("key", 1) for _ in range(20)]
    connection = apsw.Connection(str(path))
    connection.execute("PRAGMA synchronous = OFF")
    connection.execute("INSERT INTO orgs (id, name, billing, created_at_ms) VALUES (?, 'bench', 'prepaid', 1)", (ORG,))
    slots: dict[tuple[str, str, int], list[int]] = {}
    with connection:
        for number in range(records):
            at_ms = now_ms - DAYS * DAY_MS + number * DAYS * DAY_MS // records
            key, status, cost = (
                random_numbers.choice(keys),
                random_numbers.choice(STATUSES),
                random_numbers.randrange(10**8),
            )
            connection.execute(
                "INSERT INTO requests (org_id, id, key_id, created_at_ms, model, modality, endpoint, status, cost,"
                " duration_ms) VALUES (?, ?, ?, ?, ?, 'image', '/compat/v1/images/generations', ?, ?, ?)",
                (
                    ORG,
                    new_id("req", at_ms),
                    key,
                    at_ms,
                    f"model-{number % 8}",
                    status,
                    cost,
                    round(random_numbers.lognormvariate(7 + number % 8 / 2, 0.5)),
                ),
            )
            for name in ((key, status), (key, ""), ("", status), ("", "")):
                slot = slots.setdefault((*name, at_ms // SLOT_MS), [0, 0])
                slot[0] += 1
                slot[1] += cost
        connection.executemany(
            "INSERT INTO usage_slots (org_id, key_id, status, slot, count, cost) VALUES (?, ?, ?, ?, ?, ?)",
            [(ORG, *name, *sums) for name, sums in slots.items()],
        )
    connection.close()
    return keys


async def median_ms(
    work: Callable[[], Awaitable[object]], times: int = 15, clock: Callable[[], float] = time.perf_counter
) -> float:
    times_ms = []
    for _ in range(times):
        started = clock()
        await work()
        times_ms.append((clock() - started) * 1000)
    return statistics.median(times_ms)


async def _nothing_waits(org_id: OrgId) -> None:
    """All requests are in the database."""


async def measure(records: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        settings = Settings(data=Path(name))
        store = await open_store(settings)
        await store.close()
        now_ms = Clock().now_ms()
        started = time.perf_counter()
        keys = await asyncio.to_thread(build, settings.data / "penstock.db", records, now_ms)
        print(f"{records:,} records built in {time.perf_counter() - started:.0f} s")
        store = await open_store(settings)
        requests = Requests(store, Clock(), _nothing_waits)
        middle = now_ms - DAYS * DAY_MS // 2
        newer = {"low": first_id("req", middle), "high": "req_~"}
        (row,) = await store.slow("list_newer_requests", org_id=ORG, **newer, limit=1)
        end_of_day = middle + DAY_MS
        pages = {
            "first page": Filters(),
            "page of 100": Filters(limit=100),
            "page in the middle": Filters(starting_after=row["id"]),
            "page before the middle": Filters(ending_before=row["id"]),
            "one key": Filters(key_id=keys[3]),
            "one key, in the middle": Filters(key_id=keys[3], starting_after=row["id"]),
            "a rare status": Filters(status="cancelled"),
            "a rare status of one key": Filters(key_id=keys[3], status="cancelled"),
            "a status without requests": Filters(status="pending"),
            "one day of one key": Filters(key_id=keys[3], created_after_ms=middle, created_before_ms=end_of_day),
            "first page with a summary of a day": Filters(
                summary=True, created_after_ms=middle, created_before_ms=end_of_day
            ),
            "first page with a summary of all": Filters(summary=True),
        }
        first = await median_ms(lambda: requests.list_records(ORG, pages["first page"]))
        for label, filters in pages.items():
            took = await median_ms(lambda filters=filters: requests.list_records(ORG, filters))  # type: ignore[misc]
            print(f"{label:38}{took:9.2f} ms{took / first:8.1f} x first page", flush=True)
        reports = UsageReports(store, _nothing_waits)
        for label, days, bucket, group_by in REPORTS:
            period = UsageFilters(start_ms=now_ms - days * DAY_MS, end_ms=now_ms)
            took = await median_ms(
                lambda period=period, bucket=bucket, group_by=group_by: reports.report(ORG, period, bucket, group_by),  # type: ignore[misc]
                times=5,
                clock=time.process_time,
            )
            print(f"{label:38}{took:9.2f} ms of processor time", flush=True)
        await store.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=1_000_000)
    asyncio.run(measure(parser.parse_args().records))
