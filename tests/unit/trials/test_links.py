"""The link by which people vote."""

import pytest

from penstock.errors import NotFound
from penstock.trials.links import digest, get_shared_trial, make_link, revoke_link
from tests.gateway import OpenGateway, RunningGateway
from tests.unit.trials.trial_calls import create, record


async def token_of(running: RunningGateway, trial_id: str, days: int = 14) -> str:
    trial = await record(running, trial_id)
    link = await make_link(running.gateway, trial, "http://gateway.test", days=days, shows_prompts=True)
    address, _, token = link["url"].partition("#")
    assert address == "http://gateway.test/vote"
    return str(token)


async def test_a_link_is_good_until_it_expires_or_is_revoked_or_replaced(open_gateway: OpenGateway) -> None:
    async with open_gateway(annex=True, works=False) as running:
        gateway = running.gateway
        made = await create(running, prompts=["a pear"])
        token = await token_of(running, made["id"])
        assert (await get_shared_trial(gateway, digest(token))).id == made["id"]
        assert await running.tables_with(token) == []
        newer = await token_of(running, made["id"], days=1)
        with pytest.raises(NotFound):
            await get_shared_trial(gateway, digest(token))
        running.clock.advance(86_399)
        assert (await get_shared_trial(gateway, digest(newer))).id == made["id"]
        running.clock.advance(1)
        with pytest.raises(NotFound):
            await get_shared_trial(gateway, digest(newer))
        last = await token_of(running, made["id"])
        await revoke_link(gateway, await record(running, made["id"]))
        with pytest.raises(NotFound):
            await get_shared_trial(gateway, digest(last))
        actions = [event["action"] for event in await running.rows("SELECT action FROM audit_events ORDER BY id")]
        assert actions[-4:] == ["trial.shared", "trial.shared", "trial.shared", "trial.unshared"]
