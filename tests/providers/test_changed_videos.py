"""Videos that are changed, and videos in OpenRouter's shape: the published clients against a gateway."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import openai
import openrouter
import pytest

from penstock.api.asgi import AsgiApp
from penstock.generations.openrouter_videos import PATH
from tests.api.raw_http import serving
from tests.fake_providers.scripted import mp4
from tests.fake_providers.xai import XAI
from tests.gateway import OpenGateway, RunningGateway
from tests.providers.calls import IMAGE_URI, gateway_for

pytestmark = pytest.mark.filterwarnings("ignore:The Sora API:DeprecationWarning")
MODEL = "grok-imagine-video"


@asynccontextmanager
async def served_gateway(open_gateway: OpenGateway, xai: XAI) -> AsyncIterator[tuple[RunningGateway, str]]:
    async with (
        gateway_for(open_gateway, "xai", xai, "/v1") as running,
        serving(AsgiApp(running.gateway), running.gateway.settings) as served,
    ):
        yield running, f"http://127.0.0.1:{served.port}"


async def test_code_for_openais_videos_edits_extends_and_remixes_them(open_gateway: OpenGateway) -> None:
    xai = XAI()
    async with (
        served_gateway(open_gateway, xai) as (running, url),
        openai.AsyncOpenAI(api_key=running.key, base_url=f"{url}/compat/v1", max_retries=0) as client,
    ):
        first = await client.videos.create(model=MODEL, prompt="a fox", seconds="8")
        with pytest.raises(openai.ConflictError):
            await client.videos.remix(first.id, prompt="in the snow")
        await running.wait_for_request(first.id)
        named: Any = {"prompt": "in the snow", "video": {"id": first.id}}  # which the client itself refuses to send
        for begun in (
            await client.videos.remix(first.id, prompt="in the snow"),
            await client.post("/videos/edits", body=named, cast_to=openai.types.Video),
            await client.videos.edit(prompt="in the snow", video=("fox.mp4", mp4()), extra_body={"model": MODEL}),
        ):
            record = await running.wait_for_request(begun.id)
            assert (begun.model, record["status"]) == (MODEL, "completed")
        longer = await client.videos.extend(
            prompt="it runs away", seconds="4", video=("fox.mp4", mp4()), extra_body={"model": MODEL}
        )
        assert (await running.wait_for_request(longer.id))["status"] == "completed"
        with pytest.raises(openai.NotFoundError, match="input_reference"):
            await client.videos.create_character(name="fox", video=mp4())
    assert len(xai.received("edit_video")) == 3
    assert [request.fields["duration"] for request in xai.received("extend_video")] == [4]
    assert xai.received("edit_video")[0].fields["video"]["url"].startswith("data:video/mp4;base64,")


async def test_openrouters_client_makes_videos(open_gateway: OpenGateway) -> None:
    xai = XAI()
    async with (
        served_gateway(open_gateway, xai) as (running, url),
        openrouter.OpenRouter(api_key=running.key, server_url=url + PATH) as client,
    ):
        videos: Any = client.video_generation
        frame: Any = {"type": "image_url", "image_url": {"url": IMAGE_URI}, "frame_type": "first_frame"}
        begun = await videos.generate_async(
            model=MODEL, prompt="a fox", duration=8, resolution="720p", frame_images=[frame], trace={"trace_id": "t-1"}
        )
        assert (begun.status, begun.polling_url) == ("pending", f"{url}{PATH}/videos/{begun.id}")
        await running.wait_for_request(begun.id)
        done = await videos.get_generation_async(job_id=begun.id)
        assert (done.status, done.usage.cost) == ("completed", 0.56)
        assert done.unsigned_urls == [f"{url}{PATH}/videos/{begun.id}/content?index=0"]
        content = await videos.get_video_content_async(job_id=begun.id)
        assert await content.aread() == mp4()
        changed = await videos.generate_async(model=MODEL, prompt="in the snow", previous_job_id=begun.id)
        assert (await running.wait_for_request(changed.id))["status"] == "completed"
        listed = {model.id: model for model in (await videos.list_videos_models_async()).data}
        assert listed[MODEL].supported_frame_images == ["first_frame"]
        with pytest.raises(openrouter.errors.OpenRouterError) as caught:  # our errors have codes that are words
            await videos.generate_async(model=MODEL, prompt="a fox", duration=-1)
        assert "`duration` must be" in caught.value.body
    assert xai.received("video")[0].fields["image"]["url"] == IMAGE_URI
    assert len(xai.received("edit_video")) == 1
