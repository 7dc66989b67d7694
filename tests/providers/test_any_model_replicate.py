"""Any public model of Replicate: by its name or a version, at a price that the operator sets."""

import base64
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from penstock.api.endpoints import models
from penstock.errors import InvalidRequest, ModelDisabled, ModelNotFound
from penstock.providers.replicate.predictions import output_urls, read_prediction
from penstock.providers.spec import Reply
from penstock.values import nanos
from tests.fake_providers.replicate_catalogue import STORED, ReplicateWithCatalogue
from tests.fake_providers.scripted import KEY_ENV, mp4
from tests.fake_providers.server import serving
from tests.gateway import OpenGateway, RunningGateway
from tests.providers.calls import create_image, create_video, edit_image

LIGHTNING = "bytedance/sdxl-lightning-4step"
ULTRA = "black-forest-labs/flux-1.1-pro-ultra"
PRICED = {"replicate/*": {"price": {"unit": "compute_second", "usd": "0.001", "max_seconds": 60}}}


@asynccontextmanager
async def with_replicate(
    open_gateway: OpenGateway, replicate: ReplicateWithCatalogue, **settings: Any
) -> AsyncIterator[RunningGateway]:
    async with serving(replicate):
        changed = {"base_url": f"{replicate.url}/v1", "key_env": KEY_ENV}
        async with open_gateway(providers={"replicate": changed}, **settings) as running:
            yield running


async def test_models_by_version_and_by_name_are_billed_by_the_time_of_the_machine(open_gateway: OpenGateway) -> None:
    replicate = ReplicateWithCatalogue(ULTRA)
    async with with_replicate(open_gateway, replicate, models=PRICED) as running:
        before, _ = await running.money()
        made = await create_image(running, model=f"replicate/{LIGHTNING}", size="1024x1024", n=2, guidance_scale=1.5)
        assert made["status"] == "completed"
        sent = replicate.received("create_by_version")[0].fields
        assert sent == {
            "version": STORED[LIGHTNING]["latest_version"]["id"],
            "input": {
                "prompt": "a pear",
                "width": 1024,
                "height": 1024,
                "num_outputs": 2,
                "guidance_scale": 1.5,
            },
        }
        assert before - (await running.money())[0] == nanos("0.0025")  # 2.5 seconds
        assert (await create_image(running, model=f"replicate/{ULTRA}", prompt="a fox"))["status"] == "completed"
        assert replicate.received("create")[0].fields["input"]["output_format"] == "png"
        pinned = f"replicate/{LIGHTNING}:{'f' * 64}"
        assert (await create_image(running, model=pinned, prompt="a fox"))["status"] == "completed"
        assert replicate.received("create_by_version")[1].fields["version"] == "f" * 64
        with pytest.raises(InvalidRequest, match=r"`guidance_scale` of replicate/.* must be from 0 to 50"):
            await running.image(model=f"replicate/{LIGHTNING}", prompt="a fox", guidance_scale=51)


async def test_a_video_is_uploaded_and_upscaled(open_gateway: OpenGateway) -> None:
    replicate = ReplicateWithCatalogue()
    replicate.video_words = ("real-esrgan-video", STORED["lucataco/real-esrgan-video"]["latest_version"]["id"])
    video = {"video_url": "data:video/mp4;base64," + base64.b64encode(mp4(2)).decode()}
    async with with_replicate(open_gateway, replicate, models=PRICED) as running:
        made = await create_video(
            running, model="replicate/lucataco/real-esrgan-video", prompt=None, input_reference=video, resolution="4K"
        )
    assert (made["status"], made["seconds"]) == ("completed", "2")
    sent = replicate.received("create_by_version")[0].fields["input"]
    assert sent["resolution"] == "4k"
    assert replicate.uploads[sent["video_path"]] == mp4(2)


async def test_edits_and_videos(open_gateway: OpenGateway) -> None:
    replicate = ReplicateWithCatalogue()
    replicate.video_words = ("minimax",)
    async with with_replicate(open_gateway, replicate, models=PRICED) as running:
        assert (await edit_image(running, model="replicate/lucataco/remove-bg", prompt=None))["status"] == "completed"
        assert replicate.received("create_by_version")[0].fields["input"]["image"] in replicate.uploads
        video = await create_video(running, model="replicate/minimax/video-01", prompt="a fox", seconds=None)
        assert video["status"] == "completed"


async def test_prices_and_searches(open_gateway: OpenGateway) -> None:
    replicate = ReplicateWithCatalogue()
    async with with_replicate(open_gateway, replicate) as running:
        with pytest.raises(ModelDisabled, match="Replicate publishes no price"):
            await running.image(model=f"replicate/{LIGHTNING}", prompt="a fox")
        for _ in range(2):
            with pytest.raises(ModelNotFound, match="has no such model"):
                await running.image(model="replicate/nobody/nothing", prompt="a fox")
        call = running.call(endpoint="/compat/v1/models", query={"provider": "replicate", "search": "esrgan"})
        found = (await models.list_models(running.gateway, call)).json["data"]
        assert "replicate/nightmareai/real-esrgan" in [model["id"] for model in found]


def test_of_many_outputs_and_of_long_logs_little_is_read() -> None:
    """Anybody can publish a model that makes them, and call it; others wait meanwhile."""
    assert len(output_urls([["https://files.test/a"] * 1000] * 1000)) == 100
    prediction = {"id": "a", "status": "processing", "logs": " 50%|#####" + "." * 5000}
    reply = Reply(200, {}, json.dumps(prediction).encode())
    assert read_prediction(reply).progress is None
    short = {**prediction, "logs": "." * 5000 + " 50%|#####"}
    assert read_prediction(Reply(200, {}, json.dumps(short).encode())).progress == 0.5
