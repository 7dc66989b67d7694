"""A batch belongs to its organization."""

import pytest

from penstock.batches.records import get_batch
from penstock.errors import NotFound
from tests.gateway import OpenGateway
from tests.unit.batches.batch_calls import create, image_rows


async def test_a_batch_of_another_organization_is_not_found(open_gateway: OpenGateway) -> None:
    async with open_gateway(works=False) as running:
        made = await create(running, requests=image_rows(1))
        other = await running.create_caller_in_new_org()
        for batch_id, org_id in ((made["id"], other.org_id), ("batch_x", running.caller.org_id)):
            with pytest.raises(NotFound):
                await get_batch(running.gateway.store, org_id, batch_id)
