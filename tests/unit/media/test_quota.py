"""The storage quota of an organization."""

import asyncio
import json
from typing import Any

import msgspec
import pytest

from penstock.accounts.orgs import change_org
from penstock.errors import StorageQuotaExceeded
from penstock.media.quota import StorageQuota
from penstock.recordings import files
from penstock.store.base import Row
from penstock.values import OrgId
from tests.api.raw_http import until
from tests.gateway import OpenGateway, RunningGateway, exported, sqlite_only
from tests.manual_clock import ManualClock


async def stored_bytes(running: RunningGateway, org_id: str) -> int:
    row = await running.gateway.store.one("get_stored_bytes", org_id=org_id)
    assert row is not None
    return int(row["bytes"])


async def test_the_files_of_requests_and_recordings_are_counted(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        org_id = running.caller.org_id
        assert await stored_bytes(running, org_id) == 0
        await running.image()
        one = await stored_bytes(running, org_id)
        assert one == sum(file.size_bytes for file in await running.storage.list_files())
        await running.image(headers={"x-service-replay": "record"})
        assert await stored_bytes(running, org_id) == 3 * one
        assert await stored_bytes(running, (await running.create_caller_in_new_org()).org_id) == 0


@sqlite_only
async def test_a_full_organization_makes_nothing_more_until_it_deletes(open_gateway: OpenGateway) -> None:
    async with open_gateway(storage_bytes_per_org=1) as running:
        await running.image()
        running.clock.advance(31)
        with pytest.raises(StorageQuotaExceeded, match="of its 1"):
            await running.image()
        with pytest.raises(StorageQuotaExceeded):
            await running.video()
        other = await running.create_caller_in_new_org()
        await running.image(caller=other)  # has a quota of its own
        (request,) = [row for row in await running.records() if row["status"] == "completed"]
        await running.purge(request["id"])
        running.clock.advance(31)
        await running.image()


@sqlite_only
async def test_an_import_must_fit(open_gateway: OpenGateway) -> None:
    async with open_gateway(storage_bytes_per_org=10**6) as running:
        gateway = running.gateway
        org_id = running.caller.org_id
        await running.image(headers={"x-service-replay": "record"})
        (listed,) = await gateway.recordings.all(org_id)
        row = await gateway.recordings.get(org_id, listed.id)
        recording_file = await exported(gateway.recordings, row)
        document = json.loads(msgspec.json.encode(recording_file))
        stored = await running.storage.list_files()
        running.clock.advance(31)
        gateway.quota._max_bytes = await stored_bytes(running, org_id) + 10
        with pytest.raises(StorageQuotaExceeded):
            await files.import_recording(
                gateway.store,
                gateway.recordings,
                org_id,
                document,
                {},
                running.clock.now_ms(),
                gateway.quota,
                pool=gateway.worker_pool,
            )
        assert [file.key for file in stored] == [file.key for file in await running.storage.list_files()]


async def make_ten_images(running: RunningGateway, mode: str) -> None:
    for _ in range(10):
        await running.image(headers={"x-service-replay": mode})


@sqlite_only
async def test_what_costs_nothing_counts_at_once(open_gateway: OpenGateway) -> None:
    """Replays and mocks are free, so that many of them could be stored before the files are added up again."""
    async with open_gateway() as running:
        await running.image(headers={"x-service-replay": "record"})
        size = await stored_bytes(running, running.caller.org_id)
        running.gateway.quota._max_bytes = 3 * size
        for mode in ("replay-or-error", "mock"):
            running.clock.advance(31)
            with pytest.raises(StorageQuotaExceeded):
                await make_ten_images(running, mode)


@sqlite_only
async def test_a_quota_of_zero_is_none(open_gateway: OpenGateway) -> None:
    async with open_gateway(storage_bytes_per_org=0) as running:
        await running.image()
        running.clock.advance(31)
        await running.image()


@sqlite_only
async def test_an_organization_may_have_a_quota_of_its_own(open_gateway: OpenGateway) -> None:
    for default, own, is_full in ((0, 1, True), (1, 0, False), (1, 10**9, False), (10**9, 1, True)):
        async with open_gateway(storage_bytes_per_org=default) as running:
            caller = await running.create_caller_in_new_org()
            await change_org(running.gateway.store, running.clock, caller.org_id, {"storage_bytes": own})
            await running.image(caller=caller)
            running.clock.advance(31)
            if is_full:
                with pytest.raises(StorageQuotaExceeded, match=f"of its {own}"):
                    await running.image(caller=caller)
            else:
                await running.image(caller=caller)


class SlowSums:
    """A store whose sums of bytes are ready when the test says so."""

    def __init__(self) -> None:
        self.begun = 0
        self.ends = asyncio.Semaphore(0)

    async def slow(self, name: str, /, **values: Any) -> list[Row]:
        self.begun += 1
        await self.ends.acquire()
        return [{"bytes": self.begun, "max_bytes": None}]


async def test_sums_are_slow_reads_and_made_once_for_all_calls() -> None:
    """An organization with very many small files would stop the event loop with each sum."""
    store, clock = SlowSums(), ManualClock()
    quota = StorageQuota(store, clock, max_bytes=10)  # type: ignore[arg-type]
    calls = [asyncio.create_task(quota.check(OrgId("org_a"), 1)) for _ in range(3)]
    await until(lambda: store.begun == 1)
    assert not any(call.done() for call in calls), "nobody passes before the first sum is known"
    store.ends.release()
    await asyncio.gather(*calls)
    clock.advance(20)
    for _ in range(3):
        await quota.check(OrgId("org_a"), 1)  # with the old sum, while the new one is made
    await until(lambda: store.begun == 2)
    with pytest.raises(StorageQuotaExceeded, match="stored 7 bytes of its 10"):
        await quota.check(OrgId("org_a"), 4)
    store.ends.release()
    await until(lambda: not quota._reading)
    await quota.check(OrgId("org_a"), 4)
    clock.advance(40)
    late = asyncio.create_task(quota.check(OrgId("org_a")))
    await until(lambda: store.begun == 3)
    assert not late.done(), "a sum of another minute is not used"
    store.ends.release()
    await late
