"""Stored requests and responses: for how long, for whom, and that nothing is left of them afterwards."""

import base64
import json
from typing import Any

import pytest

from penstock.accounts.payloads import Payload, add_payload
from penstock.api.responses import encode_body
from penstock.errors import InvalidRequest, NotFound
from penstock.generations import endpoints, payloads, retrieve
from penstock.long_bodies.long_body import pieces_of
from tests.fake_providers import faults
from tests.fake_providers.scripted import png
from tests.gateway import OpenGateway, RunningGateway, files_with, sqlite_only

CANARY = "zxcanary-0147258369"
HOOK = "https://receiver.example/hook"
INPUT = "data:image/png;base64," + base64.b64encode(png(32, 32)).decode()


async def traces(running: RunningGateway) -> list[str]:
    """Every table that holds the canary and, where the database is a file, every file that does."""
    found = await running.tables_with(CANARY)
    return found + (
        files_with(running.gateway.settings.data, CANARY) if running.gateway.store.dialect == "sqlite" else []
    )


async def wait_until_removed(running: RunningGateway) -> None:
    async def met() -> bool:
        return await traces(running) == []

    await running.wait_until(met)


async def stored(running: RunningGateway, request_id: str, **more: Any) -> Any:
    return (await payloads.retrieve_payloads(running.gateway, running.call(request_id=request_id, **more))).json


# ---------------------------------------------------------------------------------------------------------------- none


async def make_image(running: RunningGateway) -> str:
    running.lab.images.next(
        faults.altered(data=[{"b64_json": base64.b64encode(png(8, 8)).decode(), "revised_prompt": CANARY}])
    )
    image: dict[str, Any] = await running.image(prompt=CANARY, invented=CANARY)
    assert image["data"][0]["revised_prompt"] == CANARY, "the caller who waits gets it"
    return str(image["id"])


async def make_image_later(running: RunningGateway) -> str:
    body = {"model": "image-1", "prompt": CANARY, "size": "64x64"}
    call = running.call(body, endpoint="/compat/v1/images/generations", headers={"prefer": "respond-async"})
    await endpoints.make_images(running.gateway, call)
    await running.wait_for_request(call.id)
    return call.id


async def edit_image(running: RunningGateway) -> str:
    return str((await running.edit(prompt=CANARY, image=[INPUT]))["id"])


async def make_video(running: RunningGateway) -> str:
    video = await running.video(prompt=CANARY, negative_prompt=CANARY, input_reference={"image_url": INPUT})
    return str((await running.wait_for_request(video.json["id"]))["id"])


async def fail_video(running: RunningGateway) -> str:
    running.lab.videos.next(faults.error(400, f"I will not draw {CANARY}.", "moderation_blocked"))
    return await make_video(running)


async def cancel_video(running: RunningGateway) -> str:
    running.lab.videos.next(faults.never_ends)
    video_id = (await running.video(prompt=CANARY)).json["id"]
    await running.cancel(video_id)
    return str((await running.wait_for_request(video_id))["id"])


@pytest.mark.parametrize(
    "make",
    [make_image, make_image_later, edit_image, make_video, fail_video, cancel_video],
    ids=lambda make: make.__name__,
)
async def test_without_payloads_no_prompt_is_stored_after_the_end(open_gateway: OpenGateway, make: Any) -> None:
    async with open_gateway(payloads="none") as running:
        request_id = await make(running)
        await wait_until_removed(running)
        record = await running.record(request_id)
        assert record["status"] in ("completed", "upstream_failure", "cancelled")
        assert CANARY not in str(await stored(running, request_id))


async def test_without_payloads_the_outputs_stay(open_gateway: OpenGateway) -> None:
    async with open_gateway(payloads="none") as running:
        image_id = await make_image(running)
        video_id = await make_video(running)
        await wait_until_removed(running)
        image = (await retrieve.image_status(running.gateway, running.call(id=image_id))).json
        assert (image["size"], len(image["data"])) == ("8x8", 1)
        video = await running.get_video(video_id)
        assert (video["status"], video["prompt"], video["seconds"]) == ("completed", "", "4")
        assert video["output"]["size_bytes"] > 0


@sqlite_only
async def test_a_failure_is_stored_until_its_webhook_is_delivered(open_gateway: OpenGateway) -> None:
    async with open_gateway(payloads="none") as running:
        running.lab.videos.next(faults.error(400, f"I will not draw {CANARY}.", "moderation_blocked"))
        video_id = (await running.video(webhook_url=HOOK)).json["id"]
        await running.wait_for_request(video_id)
        assert await running.rows("SELECT state FROM messages") == [{"state": "waiting"}]
        running.clock.advance(10)
        assert await payloads.delete_expired(running.gateway) == 0
        await running.change("UPDATE messages SET state = 'exhausted'")
        await wait_until_removed(running)


@sqlite_only
@pytest.mark.parametrize("mode", ["record", "replay-or-record"])
async def test_without_payloads_nothing_is_recorded(open_gateway: OpenGateway, mode: str) -> None:
    async with open_gateway(payloads="none") as running:
        with pytest.raises(InvalidRequest, match="stores no payloads") as caught:
            await running.image(headers={"x-service-replay": mode})
        assert caught.value.param == "X-Service-Replay"


# --------------------------------------------------------------------------------------------------------------- media


async def test_texts_of_images_and_videos_are_stored_until_they_expire(open_gateway: OpenGateway) -> None:
    async with open_gateway(payload_retention="2h") as running:
        image_id = await make_image(running)
        running.clock.advance(7_000)
        await payloads.delete_expired(running.gateway)
        kept = await stored(running, image_id)
        assert (kept["request"]["prompt"], kept["request"]["invented"]) == (CANARY, CANARY)
        assert kept["response"]["outputs"][0].revised_prompt == CANARY
        running.clock.advance(300)
        await wait_until_removed(running)
        assert "prompt" not in (await stored(running, image_id))["request"]


async def test_inputs_are_named_but_not_shown(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        edit_id = await edit_image(running)
        assert (await stored(running, edit_id))["request"]["inputs"] == [{"role": "image", "content_type": "image/png"}]
        assert "inputs" not in (await stored(running, await make_image(running)))["request"]


async def test_a_purge_of_a_recorded_call_leaves_no_prompt(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        image = await running.image(prompt=CANARY, headers={"x-service-replay": "record"})
        assert await traces(running)
        await running.purge(image["id"])
        assert await traces(running) == []


@sqlite_only
async def test_a_long_stored_chat_is_shown_in_small_pieces(open_gateway: OpenGateway) -> None:
    """Its JSON is not made in one step, during which all other calls would wait."""
    text = 'é€😀\n"' * 400_000
    request = json.dumps({"messages": [text]}).encode()
    async with open_gateway() as running:
        image_id = (await running.image())["id"]
        payload = Payload(request, b"data: " + text.encode() + b"\xe2\x82", 1)
        await running.gateway.store.write(lambda tx: add_payload(tx, running.caller.org_id, image_id, payload))
        call = running.call(request_id=image_id)
        body = encode_body(await payloads.retrieve_payloads(running.gateway, call))
        assert max(map(len, pieces_of(body))) <= 1024**2
        shown = json.loads(bytes(body))
        assert shown.pop("request") == {"messages": [text]}
        assert shown.pop("response") == f"data: {text}\ufffd"
        assert shown == {"id": image_id, "object": "request.payloads"}


@sqlite_only
async def test_payloads_belong_to_their_organization(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        image_id = (await running.image())["id"]
        for request_id, caller in [
            (image_id, await running.create_caller_in_new_org()),
            ("req_unknown", running.caller),
        ]:
            with pytest.raises(NotFound):
                await stored(running, request_id, caller=caller)
