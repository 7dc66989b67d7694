"""Count what guards say, by day and organization: summed up in memory, and written every few seconds."""

from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from penstock.clock import Clock
from penstock.store.base import StorageUnavailable, Store, Transaction
from penstock.values import OrgId

WRITE_SECONDS = 2.0
MAX_DAYS = 90  # for which they are kept
ALL_ORGS = OrgId("*")
VERDICTS = ("pass", "flag", "refuse", "error")


class _Place(NamedTuple):
    """What is counted in one row; their order is that in which rows are locked."""

    day: str
    org_id: OrgId
    guard: str
    verdict: str


class VerdictCounts:
    """What the guards of this process said since it was last written, and what all processes have written."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._new: Counter[_Place] = Counter()

    def add(self, org_id: OrgId, guard: str, verdict: str) -> None:
        self._new[_Place(self._day(), org_id, guard, verdict)] += 1

    async def write(self) -> None:
        """Write what was counted. What cannot be written is written the next time."""
        new, self._new = self._new, Counter()
        if not new:
            return
        rows: list[dict[str, Any]] = [{**place._asdict(), "number": new[place]} for place in sorted(new)]

        async def work(tx: Transaction) -> None:
            await tx.put_many("add_guard_verdicts", rows)

        try:
            await self._store.write(work)
        except StorageUnavailable as problem:
            if problem.should_retry:  # otherwise they may have been written
                self._new.update(new)
            raise

    async def delete_old(self) -> int:
        """Delete what is older than `MAX_DAYS`, and return how many rows that were."""

        async def work(tx: Transaction) -> int:
            return await tx.run("delete_old_guard_verdicts", before=self._day(MAX_DAYS))

        return await self._store.write(work)

    def _day(self, days_ago: int = 0) -> str:
        return _day(self._clock, days_ago)


async def sum_verdicts(store: Store, clock: Clock, org_id: OrgId, days: int) -> Mapping[str, Mapping[str, int]]:
    """By guard, how often it gave each verdict today and on the days before, `days` in all."""
    rows = await store.all("sum_guard_verdicts", org_id=org_id, since=_day(clock, days - 1))
    sums: dict[str, dict[str, int]] = {}
    for row in rows:
        sums.setdefault(row["guard"], dict.fromkeys(VERDICTS, 0))[row["verdict"]] = row["number"]
    return sums


def _day(clock: Clock, days_ago: int) -> str:
    return (datetime.fromtimestamp(clock.now_ms() / 1000, UTC) - timedelta(days=days_ago)).date().isoformat()
