"""Replicate: its own client against the fake provider, then the gateway."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
from PIL import Image

from tests.fake_providers.replicate import Replicate, failed
from tests.fake_providers.scripted import KEY, mp4, png
from tests.fake_providers.server import responds, serve_in_thread
from tests.gateway import OpenGateway
from tests.providers.calls import IMAGE_URI, create_image, create_video, edit_image, gateway_for

if TYPE_CHECKING:
    from replicate.client import Client

# ------------------------------------------------------------------------------------------------------ its own client


@pytest.fixture
def provider() -> Iterator[Replicate]:
    with serve_in_thread(Replicate()) as provider:
        yield provider


@pytest.fixture
def client(provider: Replicate) -> Iterator[Client]:
    from replicate.client import Client  # here, because each worker imports this file, and few use the client

    client = Client(api_token=KEY, base_url=provider.url)
    client.poll_interval = 0.01
    with client._client:
        yield client


def test_client_runs_a_model(provider: Replicate, client: Client) -> None:
    made = client.models.predictions.create("black-forest-labs/flux-schnell", {"prompt": "a fox", "num_outputs": 2})
    assert made.status == "starting"
    made.reload()
    assert (made.status, made.progress.percentage if made.progress else 0) == ("processing", 0.4)
    made.wait()
    assert (made.status, len(made.output or ())) == ("succeeded", 2)


def test_client_uploads_images(provider: Replicate, client: Client) -> None:
    file = client.files.create(io.BytesIO(png(8, 8)))
    made = client.models.predictions.create(
        "google/nano-banana", {"prompt": "a hat", "image_input": [file.urls["get"]]}
    )
    assert provider.uploads[(made.input or {})["image_input"][0]] == png(8, 8)


def test_client_cancels(provider: Replicate, client: Client) -> None:
    made = client.models.predictions.create("google/veo-3.1", {"prompt": "a fox"})
    made.cancel()
    made.reload()
    assert made.status == "canceled"


def test_client_sees_failures(provider: Replicate, client: Client) -> None:
    from replicate.exceptions import ModelError, ReplicateError

    provider.next_states.append(("starting", failed("NSFW content detected. Try running it again.")))
    with pytest.raises(ModelError, match="NSFW"):
        client.run("black-forest-labs/flux-schnell", {"prompt": "a fox"}, wait=False)
    provider.next("create", responds({"detail": "Request was throttled.", "status": 429}, 429))
    with pytest.raises(ReplicateError, match="throttled"):
        client.models.predictions.create("black-forest-labs/flux-schnell", {"prompt": "a fox"})


# ---------------------------------------------------------------------------------------------------------- the gateway


async def test_images(open_gateway: OpenGateway) -> None:
    provider = Replicate()
    async with gateway_for(open_gateway, "replicate", provider, "/v1") as running:
        record = await create_image(running, model="flux-schnell", n=2, size="1792x1024")
        assert (record["status"], str(record["cost"])) == ("completed", "0.006")
        assert str((await create_image(running, model="flux-2-pro", size="1920x1080"))["cost"]) == "0.045"
    old, new = provider.received("create")
    assert old.path == "/v1/models/black-forest-labs/flux-schnell/predictions"
    assert old.fields == {"input": {
        "prompt": "a pear", "output_format": "png", "num_outputs": 2, "aspect_ratio": "16:9", "megapixels": "1",
    }}  # fmt: skip
    assert new.fields["input"] == {
        "prompt": "a pear", "output_format": "png", "aspect_ratio": "custom", "width": 1920, "height": 1088,
    }  # fmt: skip


async def test_edits_leave_the_image_first(open_gateway: OpenGateway) -> None:
    provider = Replicate()
    async with gateway_for(open_gateway, "replicate", provider, "/v1") as running:
        assert str((await edit_image(running, model="flux-kontext-pro", size="3:2"))["cost"]) == "0.04"
        assert str((await edit_image(running, model="recraft-crisp-upscale"))["cost"]) == "0.006"
    kontext, crisp = [call.fields["input"] for call in provider.received("create")]
    assert provider.uploads[kontext.pop("input_image")] == png(64, 48)
    assert kontext == {"prompt": "add a hat", "output_format": "png", "aspect_ratio": "3:2"}
    assert crisp.keys() == {"image"}


async def test_masks_are_black_where_the_edit_goes(open_gateway: OpenGateway) -> None:
    provider = Replicate()
    ours = Image.new("RGBA", (64, 48), (0, 0, 0, 255))
    ours.paste((0, 0, 0, 0), (0, 0, 32, 48))
    file = io.BytesIO()
    ours.save(file, "PNG")
    mask = "data:image/png;base64," + base64.b64encode(file.getvalue()).decode()
    async with gateway_for(open_gateway, "replicate", provider, "/v1") as running:
        assert (await edit_image(running, model="replicate/ideogram-v3-turbo", mask=mask))["status"] == "completed"
    theirs = Image.open(io.BytesIO(provider.uploads[provider.received("create")[0].fields["input"]["mask"]]))
    assert (theirs.mode, theirs.getpixel((8, 8)), theirs.getpixel((56, 8))) == ("L", 0, 255)


async def test_videos(open_gateway: OpenGateway) -> None:
    provider = Replicate()
    async with gateway_for(open_gateway, "replicate", provider, "/v1") as running:
        video = await create_video(running, model="veo-3.1", seconds=5, negative_prompt="rain", generate_audio=False)
        assert (video["status"], video["output"]["size_bytes"]) == ("completed", len(mp4()))
        assert str(video["metadata"]["cost"]) == "1.2"
        still = await create_video(running, model="hailuo-2.3", seconds=8, input_reference={"image_url": IMAGE_URI})
        assert str(still["metadata"]["cost"]) == "0.56"
    quiet, moved = [call.fields["input"] for call in provider.received("create")]
    assert quiet == {
        "prompt": "a train", "negative_prompt": "rain", "duration": 6, "aspect_ratio": "16:9", "resolution": "720p",
        "generate_audio": False,
    }  # fmt: skip
    assert provider.uploads[moved["first_frame_image"]] == png(64, 48)
    assert moved["duration"] == 10


@pytest.mark.parametrize(
    ("fate", "code"),
    [
        (failed("The input or output was flagged as sensitive. Please try again. (E005)"), "CONTENT_POLICY_VIOLATION"),
        (failed("Input validation error: the image cannot be read"), "ALL_PROVIDERS_EXHAUSTED"),
        (failed("Prediction interrupted; please retry (code: PA)"), "ALL_PROVIDERS_EXHAUSTED"),
        ({"status": "aborted"}, "ALL_PROVIDERS_EXHAUSTED"),
        ({"status": "succeeded", "output": []}, "ALL_PROVIDERS_EXHAUSTED"),
        ({"status": "succeeded", "output": None, "data_removed": True}, "ALL_PROVIDERS_EXHAUSTED"),
    ],
)
async def test_failures(open_gateway: OpenGateway, fate: dict[str, Any], code: str) -> None:
    provider = Replicate()
    provider.next_states.append(("starting", fate))
    async with gateway_for(open_gateway, "replicate", provider, "/v1") as running:
        record = await create_image(running, model="flux-schnell")
        assert (record["status"], record["error_code"]) == ("upstream_failure", code)
        assert await running.money() == (10_000_000_000, 0)


async def test_cancelling(open_gateway: OpenGateway) -> None:
    provider = Replicate()
    provider.next_states.append(("starting", "processing"))
    async with gateway_for(open_gateway, "replicate", provider, "/v1") as running:
        started = await running.video(model="seedance-1-pro", seconds=5)
        await provider.endpoints["create"].reached(1)
        await running.cancel(started.json["id"])
        assert (await running.wait_for_request(started.json["id"]))["status"] == "cancelled"
    assert len(provider.received("cancel")) == 1


async def test_a_refused_submission(open_gateway: OpenGateway) -> None:
    provider = Replicate()
    provider.next("create", responds({"detail": "Insufficient credit", "status": 402}, 402))
    provider.next("upload", responds({"detail": "Service unavailable"}, 503))
    async with gateway_for(open_gateway, "replicate", provider, "/v1") as running:
        assert (await create_image(running, model="flux-schnell"))["status"] == "upstream_failure"
        assert (await edit_image(running, model="nano-banana"))["status"] == "upstream_failure"
    assert len(provider.received("create")) == 1, "nothing is submitted without its image"
