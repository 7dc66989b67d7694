"""Verdicts are counted for all processes by day and organization, and none is counted twice or shown to others."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from penstock.errors import StorageUnavailable
from penstock.guards.verdict_counts import ALL_ORGS, MAX_DAYS, VerdictCounts, sum_verdicts
from penstock.store.base import Transaction
from penstock.values import OrgId
from tests.gateway import OpenGateway, RunningGateway

A, B = OrgId("org_a"), OrgId("org_b")
DAY_SECONDS = 86_400


async def sums(running: RunningGateway, org_id: OrgId = ALL_ORGS, days: int = 1) -> dict[str, list[int]]:
    found = await sum_verdicts(running.gateway.store, running.clock, org_id, days)
    return {guard: list(verdicts.values()) for guard, verdicts in found.items()}


async def test_processes_count_together(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        processes = [VerdictCounts(running.gateway.store, running.clock) for _ in range(2)]
        for counts in processes:
            for verdict in ("pass", "pass", "refuse"):
                counts.add(A, "words", verdict)
            counts.add(B, "words", "error")
            await counts.write()
            await counts.write()
        assert await sums(running) == {"words": [4, 0, 2, 2]}
        assert await sums(running, A) == {"words": [4, 0, 2, 0]}
        assert await sums(running, OrgId("org_c")) == {}


async def test_days_are_counted_apart_and_old_ones_deleted(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        counts = VerdictCounts(running.gateway.store, running.clock)
        for _ in range(3):
            counts.add(A, "words", "flag")
            await counts.write()
            running.clock.advance(DAY_SECONDS)
        counts.add(A, "words", "flag")
        await counts.write()
        assert [(await sums(running, days=days))["words"][1] for days in (1, 2, 3, 90)] == [1, 2, 3, 4]
        running.clock.advance((MAX_DAYS - 2) * DAY_SECONDS)
        assert await counts.delete_old() == 1
        assert (await sums(running, days=MAX_DAYS + 5))["words"][1] == 3


@pytest.mark.parametrize(("should_retry", "left"), [(True, 1), (False, 0)])
async def test_what_was_not_written_is_written_later_but_never_twice(
    open_gateway: OpenGateway, should_retry: bool, left: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(work: Callable[[Transaction], Awaitable[Any]]) -> None:
        raise StorageUnavailable("down", should_retry=should_retry)

    async with open_gateway() as running:
        counts = VerdictCounts(running.gateway.store, running.clock)
        counts.add(A, "words", "pass")
        with monkeypatch.context() as patched:
            patched.setattr(running.gateway.store, "write", fail)
            with pytest.raises(StorageUnavailable):
                await counts.write()
        await counts.write()
        assert (await sums(running)).get("words", [0])[0] == left


async def test_what_was_counted_last_is_written_when_the_gateway_closes(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        running.gateway.guards.counts.add(A, "words", "refuse")
    async with open_gateway() as running:
        assert await sums(running) == {"words": [0, 0, 1, 0]}
