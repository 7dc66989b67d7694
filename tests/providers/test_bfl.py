"""Black Forest Labs: the gateway against a fake made after the documentation; there is no client library."""

import base64

import pytest

from tests.fake_providers.bfl import MODERATED, BlackForestLabs
from tests.fake_providers.scripted import mp4
from tests.fake_providers.server import responds
from tests.gateway import OpenGateway
from tests.providers.calls import IMAGE_URI, MASK_URI, create_image, create_video, edit_image, gateway_for, mask_seen


async def test_images_cost_what_the_task_reports(open_gateway: OpenGateway) -> None:
    flux = BlackForestLabs()
    async with gateway_for(open_gateway, "bfl", flux) as running:
        record = await create_image(running, model="flux-2-pro", n=2, size="120x60", prompt_enhancement="on")
        assert (record["status"], str(record["cost"])) == ("completed", "0.06")
    assert [request.fields for request in flux.received("submit")] == [
        {"prompt": "a pear", "width": 128, "height": 64, "output_format": "png", "prompt_upsampling": True}
    ] * 2, "one task makes one image"
    assert all("x-key" not in request.headers for request in flux.received("files")), (
        "samples are open to whoever has the address"
    )


async def test_the_price_is_held_before(open_gateway: OpenGateway) -> None:
    flux = BlackForestLabs()
    flux.next_states.append(("Pending",))
    async with gateway_for(open_gateway, "bfl", flux) as running:
        started = await running.video(model="flux-3-video", seconds=6, resolution="1080p")
        assert (await running.money())[1] == 1_740_000_000
        assert started.json["metadata"]["provider"] == "bfl"


async def test_edits_and_a_mask_in_white(open_gateway: OpenGateway) -> None:
    flux = BlackForestLabs()
    async with gateway_for(open_gateway, "bfl", flux) as running:
        assert (await edit_image(running, model="flux-3-image", size="16:9"))["status"] == "completed"
        assert (await edit_image(running, model="flux-fill-pro", mask=MASK_URI))["status"] == "completed"
    drawn, filled = flux.received("submit")
    raw = IMAGE_URI.partition(",")[2]
    assert drawn.fields == {"prompt": "add a hat", "images": [raw], "aspect_ratio": "16:9", "resolution": "1k"}
    assert filled.fields.keys() == {"prompt", "output_format", "image", "mask"}
    assert mask_seen(base64.b64decode(filled.fields["mask"])) == ("L", 255, 0)


async def test_klein_makes_and_edits_images(open_gateway: OpenGateway) -> None:
    flux = BlackForestLabs()
    async with gateway_for(open_gateway, "bfl", flux) as running:
        made = await create_image(running, model="flux-3-image-klein", size="1024x1024")
        assert (await edit_image(running, model="flux-3-image-klein"))["status"] == "completed"
        old = await create_image(running, model="flux-2-klein-4b", size="1024x1024", prompt_enhancement="on", seed=7)
    assert [record["status"] for record in (made, old)] == ["completed"] * 2
    third, _, second = flux.received("submit")
    assert third.path == "/v1/flux-3-image-klein"
    assert third.fields == {"prompt": "a pear", "aspect_ratio": "1:1", "resolution": "1k"}
    assert second.fields == {"prompt": "a pear", "width": 1024, "height": 1024, "output_format": "png", "seed": 7}, (
        "klein of FLUX.2 does not enhance prompts"
    )


async def test_each_input_image_is_a_text_in_its_own_field(open_gateway: OpenGateway) -> None:
    flux = BlackForestLabs()
    async with gateway_for(open_gateway, "bfl", flux) as running:
        assert (await edit_image(running, model="flux-kontext-pro"))["status"] == "completed"
        assert (await edit_image(running, model="flux-2-pro", image=[IMAGE_URI] * 2))["status"] == "completed"
    raw = IMAGE_URI.partition(",")[2]
    sent = [
        {name: value for name, value in request.fields.items() if "image" in name}
        for request in flux.received("submit")
    ]
    assert sent == [{"input_image": raw}, {"input_image": raw, "input_image_2": raw}]


async def test_videos(open_gateway: OpenGateway) -> None:
    flux = BlackForestLabs()
    async with gateway_for(open_gateway, "bfl", flux) as running:
        video = await create_video(running, model="flux-3-video", input_reference=[{"image_url": IMAGE_URI}])
        assert (video["status"], video["output"]["size_bytes"]) == ("completed", len(mp4()))
        assert str(video["metadata"]["cost"]) == "0.85"
    sent = flux.received("submit")[0].fields
    assert (sent["mode"], sent["duration"], "aspect_ratio" in sent) == ("i2v", 5, False)


@pytest.mark.parametrize(
    ("fate", "code"),
    [
        (("Pending", MODERATED), "CONTENT_POLICY_VIOLATION"),
        (("Pending", "Content Moderated"), "CONTENT_POLICY_VIOLATION"),
        (("Pending", "Error"), "ALL_PROVIDERS_EXHAUSTED"),
        (("Pending", {"status": "Ready", "result": {}}), "ALL_PROVIDERS_EXHAUSTED"),
    ],
)
async def test_tasks_that_fail(open_gateway: OpenGateway, fate: tuple[object, ...], code: str) -> None:
    flux = BlackForestLabs()
    flux.next_states.append(fate)
    async with gateway_for(open_gateway, "bfl", flux) as running:
        record = await create_image(running, model="flux-kontext-pro")
        assert (record["status"], record["error_code"]) == ("upstream_failure", code)
        assert await running.money() == (10_000_000_000, 0), "nothing is charged"


async def test_a_refused_submission(open_gateway: OpenGateway) -> None:
    flux = BlackForestLabs()
    flux.next("submit", responds({"detail": "Too many active tasks"}, 429, retry_after="5"))
    async with gateway_for(open_gateway, "bfl", flux) as running:
        assert (await create_image(running, model="flux-2-klein-4b"))["status"] == "upstream_failure"
        strict = await create_image(running, model="flux-3-image", guidance=3)
        assert "'guidance' was unexpected" in strict["error_message"]


async def test_a_failed_poll_does_not_fail_the_task(open_gateway: OpenGateway) -> None:
    flux = BlackForestLabs()
    flux.next("result", responds({"detail": "Bad gateway"}, 502), responds({"status": "Task not found"}, 404))
    async with gateway_for(open_gateway, "bfl", flux) as running:
        assert (await create_image(running, model="flux-2-flex"))["status"] == "completed"
    assert len(flux.received("submit")) == 1
