"""Recordings are found and deleted by their own organization only."""

import pytest

from penstock.errors import NotFound, StorageUnavailable
from penstock.values import new_id
from tests.gateway import OpenGateway


async def test_a_recording_is_found_and_deleted_by_its_own_organization_only(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        await running.image(headers={"x-service-replay": "record"})
        recordings = running.gateway.recordings
        org_id = running.caller.org_id
        (row,) = await recordings.all(org_id)
        other = await running.create_caller_in_new_org()
        unknown = new_id("rec", running.clock.now_ms())
        for org, recording_id in ((other.org_id, row.id), (org_id, unknown), (org_id, "rec_1"), (org_id, "")):
            with pytest.raises(NotFound):
                await recordings.delete(org, recording_id)
        assert (await recordings.get(org_id, row.id)).request_id == row.request_id
        assert await recordings.delete(org_id, row.id) == 1
        assert await recordings.all(org_id) == []


async def test_a_deletion_that_is_interrupted_leaves_no_recording_without_its_files(
    open_gateway: OpenGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Repeating it completes what it has begun."""
    async with open_gateway() as running:
        await running.image(headers={"x-service-replay": "record"})
        recordings = running.gateway.recordings
        org_id = running.caller.org_id
        (row,) = await recordings.all(org_id)

        async def fail(*_: object, **__: object) -> None:
            raise StorageUnavailable("interrupted")

        for part, name in ((type(running.gateway.store), "write"), (type(running.storage), "delete")):
            with monkeypatch.context() as patched:
                patched.setattr(part, name, fail)
                with pytest.raises(StorageUnavailable):
                    await recordings.delete(org_id, row.id)
            assert await running.run_audit() == [], name
        assert await recordings.delete(org_id, row.id) == 1
        assert await recordings.all(org_id) == []
        assert "rfl_" not in str(await running.storage.list_files())
