"""Calls for images that are sent again with their idempotency key: made once, charged once, answered alike."""

import asyncio
from typing import Any

import pytest

from penstock.errors import ContentPolicyViolation, InvalidRequest, NotFound, Problem, UnprocessableRequest
from penstock.generations import endpoints
from penstock.schema import Response
from penstock.values import nanos
from tests.fake_providers import faults
from tests.gateway import OpenGateway, RunningGateway, sqlite_only
from tests.providers.calls import IMAGE_URI

KEY = {"idempotency-key": "order-1"}
PATH = "/compat/v1/images/generations"


async def make(running: RunningGateway, headers: Any = KEY, **body: Any) -> Response:
    fields = {"model": "image-1", "prompt": "a pear", "size": "64x64", **body}
    return await endpoints.make_images(running.gateway, running.call(fields, endpoint=PATH, headers=headers))


async def test_fifty_equal_calls_at_once_are_one_call_of_the_provider_and_one_charge(
    open_gateway: OpenGateway,
) -> None:
    gate = faults.Gate()
    async with open_gateway() as running:
        before, _ = await running.money()
        running.lab.images.next(gate)
        calls = [asyncio.ensure_future(make(running)) for _ in range(50)]
        await running.lab.images.reached(1)
        gate.open()

        async def all_done() -> bool:
            return all(call.done() for call in calls)

        await running.wait_until(all_done, step_seconds=0.3)
        responses = [call.result() for call in calls]
        assert len(running.lab.images) == 1
        assert len({response.json["id"] for response in responses}) == 1
        assert len({str(response.json["metadata"]["cost"]) for response in responses}) == 1
        assert sum("idempotent-replayed" in response.headers for response in responses) == 49
        cost = nanos(responses[0].json["metadata"]["cost"])
        assert cost > 0
        assert await running.money() == (before - cost, 0)


async def test_fifty_equal_calls_over_two_processes(open_gateway: OpenGateway) -> None:
    async with (
        open_gateway() as running,
        open_gateway(labs=(running.lab, running.annex)) as other,
    ):
        before, _ = await running.money()
        calls = [asyncio.ensure_future(make(running if number % 2 else other)) for number in range(50)]

        async def all_done() -> bool:
            other.clock.advance(0.3)
            return all(call.done() for call in calls)

        await running.wait_until(all_done, step_seconds=0.3)
        responses = [call.result().json for call in calls]
        assert len({response["id"] for response in responses}) == 1
        assert len(running.lab.invoice) == 1
        assert await running.money() == (before - nanos(responses[0]["metadata"]["cost"]), 0)


@sqlite_only
async def test_after_a_crash_between_accept_and_end_a_repeated_call_is_not_made_again(
    open_gateway: OpenGateway,
) -> None:
    """The first attempt was stored with the call: it may have been sent."""
    async with open_gateway(drain_seconds=0) as running:
        running.lab.images.next(faults.stalled)
        lost = asyncio.ensure_future(make(running))
        await running.lab.images.reached(1)
        lost.cancel()
        await asyncio.gather(lost, return_exceptions=True)
    async with open_gateway(labs=(running.lab, running.annex)) as again:
        answer = asyncio.ensure_future(make(again))

        async def answered() -> bool:
            return answer.done()

        await again.wait_until(answered, step_seconds=5)
        assert isinstance(answer.exception(), Problem)
        assert len(running.lab.images) == 1


async def test_a_completed_call_is_answered_again(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        first = await make(running, {}, idempotency_key="order-1", response_format="b64_json")
        again = await make(running, KEY, response_format="b64_json")
        assert again.headers["idempotent-replayed"] == "true"
        assert again.headers["x-request-id"] == first.json["id"]
        assert str(again.json["data"][0]["b64_json"]) == str(first.json["data"][0]["b64_json"])
        assert len(running.lab.images) == 1
        assert "idempotency_key" not in running.lab.images.received[0].fields
        later = await make(running, {**KEY, "prefer": "respond-async"}, response_format="b64_json")
        assert later.json["id"] == first.json["id"]


async def test_a_key_belongs_to_one_body_one_operation_and_one_organization(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        first = (await make(running)).json["id"]
        with pytest.raises(UnprocessableRequest, match=first) as caught:
            await make(running, prompt="an apple")
        assert (caught.value.status, caught.value.param) == (422, "idempotency_key")
        fields = {"model": "edit-1", "prompt": "a hat", "size": "64x64", "image": IMAGE_URI}
        edit = running.call(fields, endpoint="/compat/v1/images/edits", headers=KEY)
        assert (await endpoints.edit_images(running.gateway, edit)).json["id"] != first
        video = await running.video(idempotency_key="order-1")
        assert "idempotent-replayed" not in video.headers
        await running.wait_for_request(video.json["id"])
        other = await running.create_caller_in_new_org()
        body = {"model": "image-1", "prompt": "a pear", "size": "64x64"}
        theirs = running.call(body, endpoint=PATH, headers=KEY, caller=other)
        assert (await endpoints.make_images(running.gateway, theirs)).json["id"] != first


async def test_a_call_that_failed_and_cost_nothing_is_made_again(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        running.lab.images.next(faults.blocked)
        with pytest.raises(ContentPolicyViolation):
            await make(running)
        made = await make(running)
        assert "idempotent-replayed" not in made.headers
        again = await make(running)
        assert again.json["id"] == made.json["id"]
        assert len(running.lab.images) == 2


async def test_a_call_with_an_unknown_outcome_is_never_made_again(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        running.lab.images.next(faults.dropped)
        codes = []
        for _ in range(2):
            with pytest.raises(Problem) as caught:
                await make(running)
            codes.append(caught.value.code)
        assert codes[0] == codes[1]
        assert len(running.lab.images) == 1


@sqlite_only
async def test_refused_calls_and_dry_runs_do_not_use_a_key_up(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        with pytest.raises(InvalidRequest):
            await make(running, n=99)
        fields = {"model": "image-1", "prompt": "an apple", "size": "64x64"}
        dry = running.call(fields, endpoint=PATH, headers=KEY, query={"dryRun": "true"})
        await endpoints.make_images(running.gateway, dry)
        assert "idempotent-replayed" not in (await make(running)).headers


@sqlite_only
async def test_keys_that_cannot_be_used_are_refused(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        with pytest.raises(InvalidRequest, match="different values"):
            await make(running, idempotency_key="order-2")
        with pytest.raises(InvalidRequest, match="1 to 256"):
            await make(running, {"idempotency-key": "x" * 257})
        with pytest.raises(InvalidRequest, match="`stream`"):
            await make(running, stream=True)
        with pytest.raises(InvalidRequest, match="`metadata` is not stored"):
            await make(running, {}, metadata={"a": "b"})
        assert not len(running.lab.images)


async def test_images_that_were_purged_are_not_made_again(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        first = (await make(running)).json
        await running.purge(first["id"])
        with pytest.raises(NotFound, match="gone") as caught:
            await make(running)
        assert f", {first['id']}, are gone. It cost {first['metadata']['cost']} USD." in caught.value.message
        assert len(running.lab.images) == 1


@sqlite_only
async def test_a_video_takes_its_key_from_the_header_too(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        fields = {"model": "video-1", "prompt": "a train", "seconds": 4}
        first, again = [
            await endpoints.start_video(running.gateway, running.call(fields, headers=KEY)) for _ in range(2)
        ]
        assert again.json["id"] == first.json["id"]
        assert again.headers["idempotent-replayed"] == "true"
        await running.wait_for_request(first.json["id"])
