"""Topaz through the gateway, against a fake that refuses what Topaz's description refuses."""

import base64
from typing import Any

import pytest

from penstock.errors import InvalidRequest
from tests.fake_providers import faults
from tests.fake_providers.scripted import mp4
from tests.fake_providers.server import responds
from tests.fake_providers.topaz import Topaz
from tests.gateway import OpenGateway, RunningGateway
from tests.providers.calls import create_video, edit_image, gateway_for


async def test_upscales(open_gateway: OpenGateway) -> None:
    topaz = Topaz()
    async with gateway_for(open_gateway, "topaz", topaz) as running:
        usual = await edit_image(running, model="topaz/wonder-3.5", prompt=None)
        more = await edit_image(running, model="topaz/bloom-2", prompt="a forest", scale_factor=3)
        assert [str(record["cost"]) for record in (usual, more)] == ["0.08", "0.32"]
        with pytest.raises(InvalidRequest, match="from 1 to 6"):
            await edit_image(running, model="topaz/wonder-3.5", prompt=None, scale_factor=8)
    first, second = [request.fields for request in topaz.received("create")]
    assert (first["model"], first["output_width"], first["output_height"]) == ("Wonder 3.5", "128", "96")
    assert (second["prompt"], second["output_width"], "prompt" in first) == ("a forest", "192", False)


STATES = ("accepted", "initializing", "processing", "complete")
VIDEO = mp4(2)  # 64x64 with four frames a second
INPUT = {"video_url": "data:video/mp4;base64," + base64.b64encode(VIDEO).decode()}


async def upscale(running: RunningGateway, **body: Any) -> dict[str, Any]:
    fields = {"model": "topaz/starlight-precise-2.6", "prompt": None, "input_reference": INPUT, **body}
    return await create_video(running, **fields)


async def test_a_video_is_uploaded_to_the_job_that_was_created_for_it(open_gateway: OpenGateway) -> None:
    topaz = Topaz(STATES)
    async with gateway_for(open_gateway, "topaz", topaz) as running:
        video = await upscale(running, resolution="1080p", scale_factor=None)
        quotes = [
            (await running.video(model=model, input_reference=INPUT, **body, query={"dryRun": "true"})).json
            for model in ("topaz/starlight-precise-2.6", "topaz/astra-2")
            for body in ({"scale_factor": 8}, {"resolution": "360p"})
        ]
    assert (video["status"], video["size"], str(video["metadata"]["cost"])) == ("completed", "1080x1080", "0.12")
    assert [quote["total_cost_micros"] for quote in quotes] == [156_864, 156_864, 216_000, 216_000], (
        "1 credit, 8 frames"
    )
    (job,) = topaz.jobs.values()
    assert job.fields["uploaded"] == VIDEO
    described = {
        "container": "mp4",
        "size": len(VIDEO),
        "duration": 2.0,
        "frameCount": 8,
        "frameRate": 4.0,
        "resolution": {"width": 64, "height": 64},
    }
    assert topaz.received("create_video")[0].fields == {
        "source": described,
        "output": {
            "frameRate": 4.0,
            "resolution": {"width": 1080, "height": 1080},
            "container": "mp4",
            "audioCodec": "AAC",
            "audioTransfer": "Copy",
        },
        "filters": [{"model": "slp-2.6"}],
    }


async def test_a_video_of_4k_costs_more(open_gateway: OpenGateway) -> None:
    async with gateway_for(open_gateway, "topaz", Topaz(STATES)) as running:
        large = await running.video(
            model="topaz/starlight-precise-2.6", input_reference=INPUT, resolution="4K", query={"dryRun": "true"}
        )
    assert large.json["total_cost_micros"] == 120_000 + 8 * 10_069


REFUSED = [("accept_video", 402), ("upload_video", 403), ("start_video", 500)]


async def test_a_job_that_cannot_be_started_is_cancelled_and_costs_nothing(open_gateway: OpenGateway) -> None:
    topaz = Topaz(STATES)
    async with gateway_for(open_gateway, "topaz", topaz) as running:
        for step, status in REFUSED:
            topaz.next(step, responds({"message": "No"}, status))
            video = await upscale(running)
            assert (video["status"], await running.money()) == ("failed", (10_000_000_000, 0)), step
    assert [job.cancelled for job in topaz.jobs.values()] == [True] * len(REFUSED)


async def test_a_job_whose_steps_are_not_answered_is_cancelled_and_tried_again(open_gateway: OpenGateway) -> None:
    topaz = Topaz(STATES)
    async with gateway_for(open_gateway, "topaz", topaz) as running:
        for step in ("accept_video", "upload_video", "start_video"):
            topaz.next(step, faults.dropped)
            video = await upscale(running)
            assert (video["status"], str(video["metadata"]["cost"])) == ("completed", "0.12"), step
        topaz.next("start_video", faults.dropped)
        topaz.next("cancel_video", faults.dropped)
        video = await upscale(running)
        assert (video["status"], video["error"]["code"]) == ("failed", "UPSTREAM_OUTCOME_UNKNOWN")
    assert [job.cancelled for job in topaz.jobs.values()] == [True, False] * 3 + [True]


async def test_failures(open_gateway: OpenGateway) -> None:
    topaz = Topaz()
    topaz.next_states.append(("Pending", "Failed"))
    async with gateway_for(open_gateway, "topaz", topaz) as running:
        record = await edit_image(running, model="topaz/wonder-3.5", prompt=None)
        assert record["error_code"] == "UPSTREAM_ERROR"
        assert await running.money() == (10_000_000_000, 0)
