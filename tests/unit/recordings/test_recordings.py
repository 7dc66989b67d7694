"""Recordings are found and deleted by their own organization only."""

import pytest

from penstock.errors import NotFound
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
