"""Guards of outputs: what they refuse nobody gets and no bucket has, whichever door it came through; and who pays."""

import asyncio
import json
from base64 import b64decode
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from penstock.accounts.audit import count_orphans
from penstock.errors import ContentPolicyViolation, Problem, Unavailable
from penstock.generation_jobs import output_guards
from penstock.generation_jobs.mailbox import Mailbox, PartialImages
from penstock.generations import endpoints
from penstock.imaging.sniff import sniff
from penstock.values import nanos
from tests.fake_bucket import fake_bucket
from tests.fake_providers.exchange import Exchange, FakeResponse
from tests.fake_providers.server import FakeProvider, route, serve_in_thread
from tests.gateway import OpenGateway, RunningGateway, failpoint_raises, sqlite_only, two_providers
from tests.providers.calls import IMAGE_URI

REFUSED = FakeResponse({"verdict": "refuse", "reason": "weapons"})
PASSED = FakeResponse({"verdict": "pass"})
HOOK = "https://hooks.example/penstock"


class Service(FakeProvider):
    """A service that gives these verdicts, the last one for ever, and keeps what it was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.answers: list[FakeResponse] = [PASSED]
        self.asked: list[dict[str, Any]] = []

    @route("POST /guard")
    def ask(self, call: Exchange) -> FakeResponse:
        self.asked.append(json.loads(call.request.body))
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


@pytest.fixture
def service() -> Iterator[Service]:
    with serve_in_thread(Service()) as service:
        yield service


def watched(service: Service, **more: Any) -> dict[str, Any]:
    guard = {"http": {"url": f"{service.url}/guard"}, "when": "output", **more}
    return {"guards": {"house": guard}}


async def end_of(running: RunningGateway, call: Any) -> Problem | None:
    """What a call ends with while time passes."""
    task: asyncio.Future[Any] = asyncio.ensure_future(call)

    async def met() -> bool:
        return task.done()

    await running.wait_until(met)
    problem = task.exception()
    assert problem is None or isinstance(problem, Problem)
    return problem


@sqlite_only
async def test_a_refused_output_is_not_handed_out_at_any_door(open_gateway: OpenGateway, service: Service) -> None:
    async with fake_bucket() as bucket:
        options = {"egress_allow_cidrs": ("127.0.0.0/8",), **watched(service, show_reason=True)}
        async with open_gateway(**options) as running:
            await bucket.add_to(running, default=True)
            recorded = {"x-service-replay": "record"}
            await running.image(prompt="recorded", headers=recorded)
            bucket.files.clear()
            service.answers = [REFUSED]
            doors: tuple[Callable[[], Awaitable[Any]], ...] = (
                running.image,
                lambda: running.image(response_format="b64_json", n=2),
                lambda: running.image(headers={"x-service-replay": "mock"}),
                lambda: running.image(prompt="recorded", headers={"x-service-replay": "replay-or-error"}),
                lambda: running.edit(image=IMAGE_URI),
            )
            for door in doors:
                problem = await end_of(running, door())
                assert isinstance(problem, ContentPolicyViolation)
                assert problem.message == (
                    "The guard `house` of this gateway refused the output: weapons; "
                    "it was made, and what it cost is charged."
                )
            video_id = (await running.video(webhook_url=HOOK)).json["id"]
            video = await running.wait_for_video(video_id)
            assert (video["status"], video["output"]) == ("failed", None)
            assert video["error"]["code"] == "CONTENT_POLICY_VIOLATION"
            [message] = await running.rows("SELECT body FROM messages")
            assert json.loads(bytes(message["body"]))["type"] == "video.failed"
            assert not bucket.files
            rows = await running.rows("SELECT request_id FROM media WHERE role = 'output'")
            assert len(rows) == 1, "only the output that passed has a row"


@pytest.mark.parametrize("is_charged", [True, False])
async def test_a_refused_output_costs_what_was_said(
    open_gateway: OpenGateway, service: Service, is_charged: bool
) -> None:
    async with open_gateway(**watched(service, charge_refused=is_charged)) as running:
        service.answers = [REFUSED]
        video = {"model": "video-1", "prompt": "a train", "seconds": 4}
        estimate = await endpoints.start_video(running.gateway, running.call(video, query={"dryRun": "true"}))
        assert estimate.json["output_guards"] == [{"name": "house", "charge_refused": is_charged}]
        video_id = (await running.video()).json["id"]
        record = await running.wait_for_request(video_id)
        cost = nanos(running.lab.bill_usd)
        assert (record["status"], nanos(record["cost"])) == ("upstream_failure", cost if is_charged else 0)
        transfers = await running.transfers(video_id)
        assert transfers.get("capture", 0) == (cost if is_charged else 0)
        losses = await running.rows("SELECT amount FROM transfers WHERE kind = 'loss'")
        assert [abs(row["amount"]) for row in losses] == ([] if is_charged else [cost])
        assert await count_orphans(running.gateway.store) == ((0, 0) if is_charged else (1, cost))


@sqlite_only
async def test_a_guard_sees_the_images_and_frames_of_a_video(open_gateway: OpenGateway, service: Service) -> None:
    async with open_gateway(disabled_providers=(), **watched(service)) as running:
        await running.image(n=2, labels={})
        assert [asked["position"] for asked in service.asked] == [0, 1]
        asked = service.asked[0]
        assert (asked["when"], asked["kind"], asked["model"], asked["prompt"]) == (
            "output",
            "image",
            "image-1",
            "a pear",
        )
        [image] = asked["images"]
        found = sniff(b64decode(image["data"]))
        assert found is not None
        assert found.content_type == image["content_type"] == "image/png"
        video_id = (await running.video(model="atelier/clip", seconds=1, size="64x64")).json["id"]
        assert (await running.wait_for_video(video_id))["status"] == "completed"
        [sheet] = service.asked[2]["images"]
        assert sheet["content_type"] == "image/jpeg"


@sqlite_only
async def test_a_flagged_output_goes_on_and_is_counted(open_gateway: OpenGateway, service: Service) -> None:
    async with open_gateway(**watched(service, on_hit="flag")) as running:
        service.answers = [REFUSED]
        assert (await running.image())["data"]


@sqlite_only
async def test_a_video_that_cannot_be_shown_is_refused_by_a_closed_guard(
    open_gateway: OpenGateway, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output_guards, "_VIDEO_BYTES_MAX", 0)
    async with two_providers() as labs:
        for on_error, expected in (("closed", "failed"), ("open", "completed")):
            async with open_gateway(labs=labs, **watched(service, on_error=on_error)) as running:
                video_id = (await running.video()).json["id"]
                assert (await running.wait_for_video(video_id))["status"] == expected
    assert service.asked == []


@sqlite_only
async def test_a_service_that_is_down_is_asked_again(open_gateway: OpenGateway, service: Service) -> None:
    down = FakeResponse({}, status=500)
    async with open_gateway(**watched(service)) as running:
        service.answers = [down, down, PASSED]
        assert await end_of(running, running.image(n=2)) is None
        assert [asked["position"] for asked in service.asked] == [0, 0, 0, 1]
        service.answers = [down]
        problem = await end_of(running, running.image())
        assert isinstance(problem, Unavailable)
        assert "nothing is charged" in problem.message
        assert running.lab.images.received[1:], "it was made, and is the operator's loss"


@sqlite_only
async def test_an_open_guard_lets_pass_what_its_service_does_not_see(
    open_gateway: OpenGateway, service: Service
) -> None:
    service.answers = [FakeResponse({}, status=500)]
    async with open_gateway(**watched(service, on_error="open")) as running:
        assert await end_of(running, running.image()) is None


@pytest.mark.parametrize("answer", [FakeResponse({"verdict": "perhaps"}), FakeResponse({}, status=302)])
@sqlite_only
async def test_what_is_no_verdict_lets_nothing_pass(
    open_gateway: OpenGateway, service: Service, answer: FakeResponse
) -> None:
    async with open_gateway(**watched(service)) as running:
        service.answers = [answer]
        assert isinstance(await end_of(running, running.image()), Unavailable)


async def test_killed_before_the_verdict_the_output_is_not_made_again(
    open_gateway: OpenGateway, service: Service
) -> None:
    async with two_providers() as labs:
        async with open_gateway(labs=labs, **watched(service)) as running:
            with failpoint_raises("deliver.after_made"), pytest.raises(Problem):
                await running.image()
        service.answers = [REFUSED]
        async with open_gateway(labs=labs, **watched(service)) as running:
            [row] = await running.records()
            record = await running.wait_for_request(row["id"])
            assert (record["error_code"], nanos(record["cost"])) == ("CONTENT_POLICY_VIOLATION", nanos("0.04"))
        assert len(labs[0].images) == 1


@sqlite_only
async def test_unfinished_images_are_not_shown_before_the_verdict(
    open_gateway: OpenGateway, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    places: list[PartialImages | None] = []

    def mailbox(place: PartialImages | None) -> Mailbox:
        places.append(place)
        return Mailbox(place)

    monkeypatch.setattr(endpoints, "Mailbox", mailbox)
    body = {"model": "image-1", "prompt": "a pear", "size": "64x64", "stream": True, "partial_images": 2}
    for guards in (watched(service), {}):
        async with open_gateway(**guards) as running:
            call = running.call(body, endpoint="/compat/v1/images/generations")
            response = await endpoints.make_images(running.gateway, call)
            assert response.chunks is not None
            events = b"".join([chunk async for chunk in response.chunks])
            assert b"image_generation.completed" in events
    assert [place is None for place in places] == [True, False]
