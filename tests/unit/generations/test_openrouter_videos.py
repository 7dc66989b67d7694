"""Videos in OpenRouter's shape become videos of the gateway, and are shown in OpenRouter's shape."""

from typing import Any

import pytest

from penstock.errors import InvalidRequest
from penstock.generations import openrouter_videos
from penstock.generations.openrouter_videos import (
    list_openrouter_video_models,
    openrouter_video,
    start_openrouter_video,
)
from penstock.schema import Call, Response
from tests.fake_providers import faults
from tests.gateway import OpenGateway, RunningGateway, caller_with, sqlite_only

pytestmark = sqlite_only
URL = "https://files.test/a.png"
PART = {"type": "image_url", "image_url": {"url": URL}}


async def sent_fields(running: RunningGateway, monkeypatch: pytest.MonkeyPatch, **fields: Any) -> dict[str, Any]:
    """The call for a video that a call with these fields becomes."""
    calls: list[Call] = []

    async def note(_: Any, call: Call) -> Response:
        calls.append(call)
        return Response(json={"estimate": 1})

    monkeypatch.setattr(openrouter_videos, "start_video", note)
    body = {"model": "video-1", "prompt": "a fox", **fields}
    headers = {"x-session-id": "s-1"}
    await start_openrouter_video(running.gateway, running.call(body, query={"dryRun": "true"}, headers=headers))
    return dict(calls[0].json)


async def test_fields_get_our_names(open_gateway: OpenGateway, monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_gateway() as running:
        assert await sent_fields(
            running,
            monkeypatch,
            duration=4,
            upscale_factor=2,
            callback_url="https://hooks.test/x",
            trace={"trace_id": "t", "level": 3},
            provider={"options": {}},
            frame_images=[{**PART, "frame_type": "last_frame"}],
            input_references=[PART, {"type": "video_url", "video_url": {"url": URL}}],
            seed=7,
        ) == {
            "model": "video-1",
            "prompt": "a fox",
            "duration": 4,
            "scale_factor": 2,
            "webhook_url": "https://hooks.test/x",
            "metadata": {"trace_id": "t", "level": "3"},
            "session_id": "s-1",
            "input_reference": [{"last_frame": URL}, {"reference": URL}, {"edit": URL}],
            "seed": 7,
        }


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"frame_images": [PART]}, "frame_images"),
        ({"frame_images": ["x"]}, "frame_images"),
        ({"frame_images": [{"type": "image_url", "frame_type": "first_frame"}]}, "frame_images"),
        ({"input_references": [{"type": "audio_url", "audio_url": {"url": URL}}]}, "input_references"),
        ({"input_references": [{"type": "image_url", "image_url": {"url": "ftp://x.test"}}]}, "input_references"),
        ({"previous_job_id": "req_1", "input_references": [PART]}, "previous_job_id"),
        ({"provider": {"options": {"xai": {"a": 1}}}}, "provider.options"),
        ({"callback_url": "ftp://x.test"}, "callback_url"),
        ({"duration": 0}, "duration"),
        ({"input_reference": URL}, "input_reference"),
        ({"trace": {"a": "x" * 600}}, "trace"),
    ],
)
async def test_an_error_names_the_field_that_the_caller_sent(
    open_gateway: OpenGateway, fields: dict[str, Any], param: str
) -> None:
    async with open_gateway() as running:
        body = {"model": "video-1", "prompt": "a fox", **fields}
        with pytest.raises(InvalidRequest) as caught:
            await start_openrouter_video(running.gateway, running.call(body))
        assert caught.value.param == param


async def test_a_job_is_shown_from_pending_to_completed(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        call = running.call({"model": "video-1", "prompt": "a train", "duration": 4})
        begun = (await start_openrouter_video(running.gateway, call)).json
        assert begun == {
            "id": begun["id"],
            "generation_id": begun["id"],
            "polling_url": f"http://gateway.test/compat/openrouter/v1/videos/{begun['id']}",
            "status": "pending",
            "model": "video-1",
        }
        record = await running.wait_for_request(begun["id"])
        done = (await openrouter_video(running.gateway, running.call(id=begun["id"]))).json
        assert (done["status"], len(done["urls"])) == ("completed", 1)
        assert done["usage"] == {"cost": record["cost"], "is_byok": False}
        assert done["unsigned_urls"] == [f"{begun['polling_url']}/content?index=0"]
        running.clock.advance(10**7)
        assert "urls" not in (await openrouter_video(running.gateway, running.call(id=begun["id"]))).json, "it is gone"


async def test_a_failed_job_says_why(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        running.lab.videos.always(faults.broken)
        call = running.call({"model": "video-1", "prompt": "a train", "duration": 4})
        begun = (await start_openrouter_video(running.gateway, call)).json
        await running.wait_for_request(begun["id"])
        shown = (await openrouter_video(running.gateway, running.call(id=begun["id"]))).json
        assert shown["status"] == "failed"
        assert isinstance(shown["error"], str)


async def test_models_are_those_that_make_videos_and_the_key_may_use(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        listed = (await list_openrouter_video_models(running.gateway, running.call())).json["data"]
        assert "video-1" in [model["id"] for model in listed]
        assert "image-1" not in [model["id"] for model in listed]
        narrow = caller_with(running.caller, models=("image-1",))
        call = running.call(caller=narrow)
        assert (await list_openrouter_video_models(running.gateway, call)).json == {"data": []}
