"""How fast and how reliable providers were, from the records of attempts and chat calls."""

import pytest

from penstock.chat.endpoint import complete_chat
from penstock.errors import ContentPolicyViolation
from penstock.models.performance import PerformanceReader
from penstock.values import OrgId
from tests.fake_providers import faults
from tests.gateway import OpenGateway, RunningGateway

ASK = {"model": "lab/chat", "messages": [{"role": "user", "content": "one two three"}], "max_tokens": 20}


def reader_of(running: RunningGateway) -> PerformanceReader:
    """A reader that has read nothing before."""
    return PerformanceReader(running.gateway.store, running.clock)


async def test_attempts_of_all_organizations_count(open_gateway: OpenGateway) -> None:
    async with open_gateway(annex=True) as running:
        running.lab.images.next(faults.blocked)
        with pytest.raises(ContentPolicyViolation):
            await running.image()
        running.lab.images.next(faults.busy(1))
        await running.image()  # made by the annex
        running.clock.advance(2)
        await running.image(caller=await running.create_caller_in_new_org(), n=2)
        found = await reader_of(running).read("image", running.caller.org_id)
        lab, annex = found["lab", "easel-1"], found["annex", "easel-1"]
        assert (lab.successes, lab.failures) == (1, 1), "a refusal of content is not the provider's failure"
        assert (annex.successes, annex.failures, annex.success_rate) == (1, 0, 1.0)
        assert lab.expected_seconds >= lab.seconds


async def test_chats_of_the_organization_count_with_their_failed_attempts(open_gateway: OpenGateway) -> None:
    async with open_gateway(annex=True) as running:
        gateway = running.gateway
        running.lab.chats.next(faults.busy(1))
        await complete_chat(gateway, running.call(ASK, endpoint="/chat"))
        await complete_chat(gateway, running.call(ASK, endpoint="/chat"))
        other = await running.create_caller_in_new_org()
        await gateway.chat_settlement.catch_up(running.caller.org_id)
        found = await reader_of(running).read("chat", running.caller.org_id)
        assert sum(each.successes for each in found.values()) == 2
        assert sum(each.failures for each in found.values()) == 1
        assert found["lab", "chat-1"].failures == 1
        assert found["annex", "chat-1"].throughput > 0
        assert await reader_of(running).read("chat", other.org_id) == {}


async def test_figures_are_kept_for_some_seconds(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        reader = reader_of(running)
        assert await reader.read("image", OrgId("org_x")) == {}
        await running.image()
        assert await reader.read("image", OrgId("org_x")) == {}
        running.clock.advance(16)
        assert (await reader.read("video", OrgId("org_y")))["lab", "easel-1"].successes == 1
        running.clock.advance(2 * 86_400)
        assert await reader_of(running).read("image", OrgId("org_x")) == {}
