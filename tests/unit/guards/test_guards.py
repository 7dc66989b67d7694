"""A refused call costs nothing and reaches no provider, whichever door it came through."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from penstock.chat.endpoint import complete_chat
from penstock.chat.responses import create_response
from penstock.errors import CallRefused, Problem, Unavailable
from penstock.schema import Response
from penstock.speech.endpoint import create_speech
from tests.api.http_calls import served_api
from tests.fake_providers.exchange import Exchange, FakeResponse
from tests.fake_providers.server import FakeProvider, route, serve_in_thread
from tests.gateway import OpenGateway, RunningGateway, caller_with, sqlite_only
from tests.providers.calls import IMAGE_URI

WORDS = {"words": {"rules": {"words": ["gun"]}}}
CHAT = {"model": "lab/chat", "messages": [{"role": "user", "content": "a gun"}]}


class GuardService(FakeProvider):
    """A service that gives one verdict, and keeps what it was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.answer: FakeResponse = FakeResponse({"verdict": "pass"})

    @route("POST /guard")
    def ask(self, call: Exchange) -> FakeResponse:
        return self.answer


@pytest.fixture
def service() -> Iterator[GuardService]:
    with serve_in_thread(GuardService()) as service:
        yield service


def asking(service: GuardService, **more: Any) -> dict[str, Any]:
    more = {"http": {"url": f"{service.url}/guard", **more.pop("http", {})}, **more}
    return {"house": more}


async def through_every_door(running: RunningGateway, prompt: str) -> list[Problem | None]:
    """What each kind of call with this prompt ends with."""
    chat = {**CHAT, "messages": [{"role": "user", "content": [{"type": "text", "text": prompt}]}]}
    gateway = running.gateway
    mocked = {"x-service-replay": "mock"}
    doors = (
        lambda: running.image(prompt=prompt),
        lambda: running.image(prompt=prompt, headers=mocked),
        lambda: running.edit(prompt=prompt, image=IMAGE_URI),
        lambda: running.video(prompt=prompt),
        lambda: complete_chat(gateway, running.call({**CHAT, "messages": [{"role": "system", "content": prompt}]})),
        lambda: complete_chat(gateway, running.call(chat, headers=mocked)),
        lambda: create_response(gateway, running.call({"model": "lab/chat", "input": prompt})),
        lambda: create_speech(gateway, running.call({"model": "lab/voice", "input": prompt, "voice": "alloy"})),
    )
    ends: list[Problem | None] = []
    for door in doors:
        try:
            response = await door()
        except Problem as problem:
            ends.append(problem)
        else:
            ends.append(None)
            if isinstance(response, Response) and response.chunks is not None:
                async for _ in response.chunks:
                    pass
    return ends


async def test_a_refused_call_costs_nothing_and_reaches_no_provider(open_gateway: OpenGateway) -> None:
    async with open_gateway(guards=WORDS) as running:
        before = await running.money()
        ends = await through_every_door(running, "a gun")
        assert {type(end) for end in ends} == {CallRefused}
        assert str(ends[0]) == "The guard `words` of this gateway refused the call."
        lab = running.lab
        assert [len(calls) for calls in (lab.images, lab.videos, lab.chats, lab.speeches)] == [0] * 4
        assert await running.money() == before
        assert await running.rows("SELECT id FROM generations") == []


@sqlite_only
async def test_other_calls_go_on(open_gateway: OpenGateway) -> None:
    async with open_gateway(guards=WORDS) as running:
        assert await through_every_door(running, "a pear") == [None] * 8
        await running.wait_until_idle()


@sqlite_only
async def test_a_flag_is_in_the_response_and_the_metrics(open_gateway: OpenGateway) -> None:
    async with served_api(open_gateway, guards={"soft": {**WORDS["words"], "on_hit": "flag"}}) as api:
        image = {"model": "image-1", "prompt": "a gun", "size": "64x64"}
        flagged = await api.call("POST", "/compat/v1/images/generations", image)
        passed = await api.call("POST", "/compat/v1/images/generations", {**image, "prompt": "a pear"})
        assert (flagged.status, flagged.headers["x-service-guards"]) == (200, "flag")
        assert passed.headers["x-service-guards"] == "pass"
        metrics = (await api.call("GET", "/metrics")).body.decode()
        assert 'penstock_guard_verdicts_total{guard="soft",verdict="flag"} 1.0' in metrics


@sqlite_only
async def test_only_the_kinds_and_organizations_that_are_named_are_watched(open_gateway: OpenGateway) -> None:
    async with open_gateway(guards={"a": {**WORDS["words"], "kinds": ["video"], "orgs": ["org_x"]}}) as running:
        await running.image(prompt="a gun")
        video = await running.video(prompt="a gun")
        assert video.status == 202
        await running.wait_for_video(video.json["id"])


@sqlite_only
async def test_a_refusal_gives_its_reason_only_where_it_may(open_gateway: OpenGateway) -> None:
    async with open_gateway(guards={"words": {**WORDS["words"], "show_reason": True}}) as running:
        with pytest.raises(CallRefused, match="refused the call: the prompt has a word"):
            await running.image(prompt="a gun")


# ------------------------------------------------------------------------------------------------------------ services


@sqlite_only
async def test_a_service_is_asked_with_a_signature_and_decides(
    open_gateway: OpenGateway, service: GuardService
) -> None:
    async with open_gateway(guards=asking(service, http={"sends_images": True})) as running:
        await running.edit(prompt="add a hat", image=IMAGE_URI, user="u-1")
        service.answer = FakeResponse({"verdict": "refuse", "reason": "no hats"})
        with pytest.raises(CallRefused) as caught:
            await running.edit(prompt="add a hat", image=IMAGE_URI)
        assert "no hats" not in caught.value.message
    first = service.received("ask")[0]
    asked = json.loads(first.body)
    image = asked.pop("images")[0]
    assert asked == {
        "id": asked["id"],
        "guard": "house",
        "when": "input",
        "kind": "edit",
        "model": "edit-1",
        "prompt": "add a hat",
        "is_prompt_whole": True,
        "labels": {},
        "user": "u-1",
    }
    assert image["content_type"] == "image/png"
    assert first.headers["webhook-signature"].startswith("v1,")


BAD_ANSWERS = {
    "an error": FakeResponse({"error": "x"}, 500),
    "a redirect": FakeResponse({}, 302, headers={"location": "https://elsewhere.test/"}),
    "no verdict": FakeResponse({"verdict": "maybe"}),
    "too much": FakeResponse({"verdict": "pass", "reason": "x" * 100_000}),
}


@sqlite_only
@pytest.mark.parametrize("answer", BAD_ANSWERS.values(), ids=BAD_ANSWERS)
async def test_without_a_verdict_a_closed_guard_refuses_and_an_open_one_lets_pass(
    open_gateway: OpenGateway, service: GuardService, answer: FakeResponse
) -> None:
    service.answer = answer
    async with open_gateway(guards=asking(service)) as running:
        with pytest.raises(Unavailable, match="`house` of this gateway does not answer") as caught:
            await running.image()
        assert caught.value.should_retry
        assert not running.lab.images
    async with open_gateway(guards=asking(service, on_error="open")) as running:
        await running.image()


@sqlite_only
async def test_the_strictest_verdict_wins(open_gateway: OpenGateway, service: GuardService) -> None:
    service.answer = FakeResponse({"verdict": "flag"})
    async with open_gateway(guards={**asking(service), **WORDS}) as running:
        with pytest.raises(CallRefused):
            await running.image(prompt="a gun")
        await running.image(prompt="a pear")


@sqlite_only
async def test_nothing_is_asked_about_a_dry_run(open_gateway: OpenGateway, service: GuardService) -> None:
    async with open_gateway(guards=asking(service)) as running:
        await running.video(query={"dryRun": "true"}, caller=caller_with(running.caller))
    assert service.received("ask") == []
