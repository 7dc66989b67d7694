"""What would have become of the requests of a window, of one organization or several."""

import socket
from typing import Any

import pytest

from penstock.chat.endpoint import complete_chat
from penstock.drills import report
from penstock.drills.report import drill_report
from penstock.drills.reroute import Rerouter
from penstock.drills.scenario import read_scenario
from penstock.values import DAY_MS, OrgId
from tests.gateway import OpenGateway, RunningGateway, sqlite_only


async def traffic(running: RunningGateway) -> None:
    """Three images that another provider could make, one that is bound to its provider, a video and a chat; and what
    does not count: a call with faults, and a mock.
    """
    for _ in range(3):
        await running.image()
    await running.image(model="lab/image-1")
    await running.wait_for_video((await running.video()).json["id"])
    body = {"model": "lab/chat", "messages": [{"role": "user", "content": "hello"}]}
    await complete_chat(running.gateway, running.call(body, endpoint="/compat/v1/chat/completions"))
    await running.image(headers={"x-service-fault": "lab=503"})
    await running.image(headers={"x-service-replay": "mock"})
    await running.gateway.chat_settlement.catch_up(running.caller.org_id)


async def drill(running: RunningGateway, *org_ids: OrgId, from_ms: int | None = None, **changes: list[str]) -> Any:
    down, slow, dearer = (changes.get(name, []) for name in ("down", "slow", "dearer"))
    scenario = read_scenario(down, slow, dearer, ("lab", "annex"))
    now_ms = running.clock.now_ms()
    rerouter = Rerouter(running.gateway.catalog, running.gateway.settings, scenario, now_ms + 1)
    window = (now_ms - DAY_MS if from_ms is None else from_ms, now_ms + 1)
    return await drill_report(running.gateway.store, rerouter, org_ids or (running.caller.org_id,), *window)


def counts(sums: dict[str, Any]) -> dict[str, int]:
    names = ("requests", "unaffected", "failed_over", "waited", "failed", "unknown")
    return {name: sums[name] for name in names if sums[name]}


async def test_each_class_says_what_would_have_become_of_it(
    open_gateway: OpenGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However few are read at a time."""
    monkeypatch.setattr(report, "_PAGE", 2)
    async with open_gateway(annex=True) as running:
        await traffic(running)
        usual = await drill(running)
        assert counts(usual) == {"requests": 6, "unaffected": 6}
        assert usual["cost"] == usual["cost_then"]
        found = await drill(running, down=["lab"], dearer=["annex=2x"])
        assert counts(found) == {"requests": 6, "failed_over": 5, "failed": 1}
        classes = {(each["kind"], each["model"]): each for each in found["classes"]}
        assert sorted(classes) == [
            ("chat", "lab/chat"), ("image", "image-1"), ("image", "lab/image-1"), ("video", "video-1"),
        ]  # fmt: skip
        image = classes["image", "image-1"]
        assert (counts(image), image["served_by"]) == ({"requests": 3, "failed_over": 3}, {"annex": 3})
        assert image["cost_then"] == 2 * image["cost"]
        forced = classes["image", "lab/image-1"]
        assert (counts(forced), forced["cost_then"]) == ({"requests": 1, "failed": 1}, 0)
        assert sum(each["cost_then"] for each in found["classes"]) == found["cost_then"]


async def test_only_the_window_and_the_organizations_that_are_asked_for_count(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        other = await running.create_caller_in_new_org()
        await running.image(caller=other)
        running.clock.advance(3600)
        await running.image()
        assert (await drill(running, running.caller.org_id, other.org_id))["requests"] == 2
        assert (await drill(running))["requests"] == 1
        later = running.clock.now_ms() - 1000
        assert (await drill(running, running.caller.org_id, other.org_id, from_ms=later))["requests"] == 1
        assert (await drill(running, other.org_id, from_ms=later))["classes"] == []


@sqlite_only
async def test_no_call_leaves_in_a_drill(open_gateway: OpenGateway, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not a socket is opened."""
    async with open_gateway(annex=True) as running:
        await traffic(running)
        asked = running.lab.submits, running.annex.submits, len(running.lab.chats.received)

        class NoSocket(socket.socket):
            def __init__(self, *given: Any, **named: Any) -> None:
                raise AssertionError("a socket is opened")

        monkeypatch.setattr(socket, "socket", NoSocket)
        found = await drill(running, down=["lab"], slow=["annex=4x"], dearer=["annex=2x"])
        monkeypatch.undo()
        assert found["failed_over"] == 5
        assert (running.lab.submits, running.annex.submits, len(running.lab.chats.received)) == asked


@sqlite_only
async def test_too_many_classes_count_together(open_gateway: OpenGateway, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "_MOST_CLASSES", 2)
    async with open_gateway(annex=True) as running:
        await traffic(running)
        found = await drill(running)
        assert len(found["classes"]) == 3
        assert sum(each["requests"] for each in found["classes"]) == found["requests"] == 6
        assert "other models" in {each["model"] for each in found["classes"]}
