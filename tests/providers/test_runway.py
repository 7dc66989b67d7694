"""Runway: its own client against the fake provider, then the gateway."""

from __future__ import annotations

import base64
import io
import random
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
from PIL import Image

from tests.fake_providers.runway import BAD_ASSET, BAD_OUTPUT, EMPTY, MAX_URI_BYTES, UNSAFE, Runway
from tests.fake_providers.scripted import KEY, mp4
from tests.fake_providers.server import responds, serve_in_thread
from tests.gateway import OpenGateway
from tests.late_import import LateImport
from tests.providers.calls import IMAGE_URI, create_image, create_video, edit_image, gateway_for

if TYPE_CHECKING:
    import runwayml
else:
    runwayml = LateImport("runwayml")

# ------------------------------------------------------------------------------------------------------ its own client


@pytest.fixture
def runway() -> Iterator[Runway]:
    with serve_in_thread(Runway()) as provider:
        yield provider


@pytest.fixture
def client(runway: Runway) -> Iterator[runwayml.RunwayML]:
    with runwayml.RunwayML(api_key=KEY, base_url=runway.url, max_retries=0) as client:
        yield client


def test_client_runs_a_task(runway: Runway, client: runwayml.RunwayML) -> None:
    task = client.text_to_video.create(model="gen4.5", prompt_text="a fox", ratio="1280:720", duration=5)
    assert [client.tasks.retrieve(task.id).status for _ in range(2)] == ["THROTTLED", "RUNNING"]
    done = client.tasks.retrieve(task.id)
    assert done.status == "SUCCEEDED"
    assert (done.cost.credits, len(done.output)) == (60, 1)
    assert runway.received("text_to_video")[0].fields["promptText"] == "a fox"


def test_client_moves_and_paints(runway: Runway, client: runwayml.RunwayML) -> None:
    places: Any = [{"uri": IMAGE_URI, "position": "first"}, {"uri": IMAGE_URI, "position": "last"}]
    moving = client.image_to_video.create(model="veo3.1", prompt_image=places, ratio="1280:720", duration=8, audio=True)
    like: Any = [{"uri": IMAGE_URI}]
    still = client.text_to_image.create(
        model="gen4_image", prompt_text="a fox", ratio="1024:1024", reference_images=like
    )
    assert moving.id != still.id


def test_client_cancels_a_task(runway: Runway, client: runwayml.RunwayML) -> None:
    task = client.text_to_video.create(model="gen4.5", prompt_text="a fox", ratio="1280:720", duration=5)
    client.tasks.delete(task.id)
    assert client.tasks.retrieve(task.id).status == "CANCELLED"


def test_client_sees_failures(runway: Runway, client: runwayml.RunwayML) -> None:
    runway.next_states.append(("PENDING", UNSAFE))
    task = client.text_to_video.create(model="gen4.5", prompt_text="a fox", ratio="1280:720", duration=5)
    failed = client.tasks.retrieve(task.id)
    assert failed.status == "FAILED"
    assert failed.failure_code == "SAFETY.INPUT.TEXT"
    with pytest.raises(runwayml.NotFoundError):
        client.tasks.retrieve("unknown")


# ---------------------------------------------------------------------------------------------------------- the gateway

DRY = {"dryRun": "true"}
SOUNDS: list[dict[str, Any]] = [{}, {"audio": False}]


async def test_videos(open_gateway: OpenGateway) -> None:
    runway = Runway()
    async with gateway_for(open_gateway, "runway", runway, "/v1") as running:
        video = await create_video(running, model="gen-4.5", seconds=5, size="9:16")
        assert (video["status"], video["output"]["size_bytes"]) == ("completed", len(mp4()))
        assert str(video["metadata"]["cost"]) == "0.6"
        moved = await create_video(running, model="gen-4.5", seconds=5, input_reference={"image_url": IMAGE_URI})
        assert moved["status"] == "completed"
    assert runway.received("text_to_video")[0].fields == {
        "model": "gen4.5", "promptText": "a train", "ratio": "720:1280", "duration": 5,
    }  # fmt: skip
    assert runway.received("image_to_video")[0].fields == {
        "model": "gen4.5", "promptText": "a train", "duration": 5, "ratio": "1104:832",
        "promptImage": [{"uri": IMAGE_URI, "position": "first"}],
    }  # fmt: skip
    assert {endpoint.headers["x-runway-version"] for endpoint in runway.received("show")} == {"2024-11-06"}


async def test_large_images_are_made_smaller(open_gateway: OpenGateway) -> None:
    noise = Image.frombytes("RGB", (1250, 1100), random.Random(7).randbytes(1250 * 1100 * 3))
    file = io.BytesIO()
    noise.save(file, "png")
    large = f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}"
    assert len(large) > MAX_URI_BYTES
    provider = Runway()
    async with gateway_for(open_gateway, "runway", provider, "/v1") as running:
        video = await create_video(running, model="gen-4.5", input_reference=[{"image_url": large}])
        assert video["status"] == "completed"
        assert (await edit_image(running, model="runway/gen4-image", image=large))["status"] == "completed"
    assert provider.received("image_to_video")[0].fields["promptImage"][0]["uri"].startswith("data:image/jpeg")


async def test_sound_costs_extra(open_gateway: OpenGateway) -> None:
    runway = Runway()
    async with gateway_for(open_gateway, "runway", runway, "/v1") as running:
        quoted = [await running.video(model="veo-3.1", seconds=8, query=DRY, **more) for more in SOUNDS]
        assert [response.json["total_cost_micros"] for response in quoted] == [3_200_000, 1_600_000]
        await create_video(running, model="veo-3.1", seconds=8, resolution="1080p", negative_prompt="rain")
    assert runway.received("text_to_video")[0].fields == {
        "model": "veo3.1", "promptText": "a train", "ratio": "1920:1080", "duration": 8, "negativePrompt": "rain",
        "audio": True,
    }  # fmt: skip


async def test_images_cost_what_the_task_reports(open_gateway: OpenGateway) -> None:
    runway = Runway()
    runway.next_states.append(("PENDING", {"status": "SUCCEEDED", "cost": {"credits": 5}}))
    async with gateway_for(open_gateway, "runway", runway, "/v1") as running:
        small = await create_image(running, model="runway/gen4-image", size="1280x720")
        assert (small["status"], str(small["cost"])) == ("completed", "0.05"), "less than the ceiling that was held"
        assert str((await edit_image(running, model="runway/gen4-image-turbo", size="1080x1080"))["cost"]) == "0.02"
    small_heard, like = runway.received("text_to_image")
    assert small_heard.fields == {"model": "gen4_image", "promptText": "a pear", "ratio": "1280:720"}
    assert like.fields["referenceImages"] == [{"uri": IMAGE_URI}]


@pytest.mark.parametrize(
    ("fate", "code"),
    [
        (UNSAFE, "CONTENT_POLICY_VIOLATION"),
        (BAD_OUTPUT, "ALL_PROVIDERS_EXHAUSTED"),
        (BAD_ASSET, "ALL_PROVIDERS_EXHAUSTED"),
        (EMPTY, "ALL_PROVIDERS_EXHAUSTED"),
    ],
)
async def test_failures(open_gateway: OpenGateway, fate: dict[str, Any], code: str) -> None:
    runway = Runway()
    runway.next_states.append(("PENDING", fate))
    async with gateway_for(open_gateway, "runway", runway, "/v1") as running:
        video = await create_video(running, model="gen-4.5", seconds=5)
        assert (video["status"], video["error"]["code"]) == ("failed", code)
        assert await running.money() == (10_000_000_000, 0)


async def test_cancelling(open_gateway: OpenGateway) -> None:
    runway = Runway()
    runway.next_states.append(("PENDING", "THROTTLED"))
    async with gateway_for(open_gateway, "runway", runway, "/v1") as running:
        started = await running.video(model="gen-4.5", seconds=5)
        await runway.endpoints["text_to_video"].reached(1)
        await running.cancel(started.json["id"])
        assert (await running.wait_for_request(started.json["id"]))["status"] == "cancelled"
    assert len(runway.received("delete")) == 1


async def test_a_busy_provider_is_tried_again(open_gateway: OpenGateway) -> None:
    runway = Runway()
    runway.next("text_to_video", responds({"error": "You have reached your daily limit."}, 429))
    async with gateway_for(open_gateway, "runway", runway, "/v1") as running:
        assert (await create_video(running, model="gen-4.5", seconds=5))["status"] == "completed"
