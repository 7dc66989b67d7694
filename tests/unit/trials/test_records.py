"""A trial belongs to its organization."""

import pytest

from penstock.errors import NotFound
from penstock.trials.records import find_trial_of_batch, get_trial
from tests.gateway import OpenGateway
from tests.unit.trials.trial_calls import create


async def test_a_trial_of_another_organization_is_not_found(open_gateway: OpenGateway) -> None:
    async with open_gateway(annex=True, works=False) as running:
        made = await create(running, prompts=["a pear"])
        store = running.gateway.store
        mine = running.caller.org_id
        other = (await running.create_caller_in_new_org()).org_id
        for trial_id, org_id in ((made["id"], other), ("trial_x", mine)):
            with pytest.raises(NotFound):
                await get_trial(store, org_id, trial_id)
        assert await find_trial_of_batch(store, other, made["batch_id"]) is None
        assert (await find_trial_of_batch(store, mine, made["batch_id"]) or made) != made
