"""fal: its own client against the fake provider, then the gateway."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from penstock.errors import InvalidRequest
from tests.fake_providers.exchange import FakeResponse
from tests.fake_providers.fal import CRASHED, INVALID, NO_RUNNER, UNSAFE, Fal
from tests.fake_providers.scripted import KEY, mp4
from tests.fake_providers.server import responds, serve_in_thread
from tests.gateway import OpenGateway
from tests.late_import import LateImport
from tests.providers.calls import IMAGE_URI, create_image, create_video, edit_image, gateway_for

if TYPE_CHECKING:
    import fal_client
else:
    fal_client = LateImport("fal_client")

# ------------------------------------------------------------------------------------------------------ its own client


@pytest.fixture
def fal(monkeypatch: pytest.MonkeyPatch) -> Iterator[Fal]:
    with serve_in_thread(Fal()) as provider:
        monkeypatch.setattr(fal_client.client, "QUEUE_URL_FORMAT", provider.url + "/")
        yield provider


@contextmanager
def connected(key: str) -> Iterator[fal_client.SyncClient]:
    """It has no way of its own to close its connections."""
    client = fal_client.SyncClient(key=key)
    with client._client:
        yield client


@pytest.fixture
def client(fal: Fal) -> Iterator[fal_client.SyncClient]:
    with connected(KEY) as client:
        yield client


def test_client_runs_a_job(fal: Fal, client: fal_client.SyncClient) -> None:
    handle = client.submit("fal-ai/kling-video/v3/standard/text-to-video", {"prompt": "a fox", "duration": "5"})
    assert isinstance(handle.status(), fal_client.InProgress)
    assert isinstance(handle.status(), fal_client.Completed)
    video = handle.get()["video"]
    assert (video["content_type"], fal.received("submit")[0].fields["duration"]) == ("video/mp4", "5")
    assert client.result("fal-ai/kling-video/v3/standard/text-to-video", handle.request_id)["video"]


def test_client_cancels_what_is_not_done(fal: Fal, client: fal_client.SyncClient) -> None:
    handle = client.submit("fal-ai/flux/dev", {"prompt": "a fox"})
    handle.cancel()
    ended = handle.status()
    assert isinstance(ended, fal_client.Completed)
    assert ended.error_type == "client_cancelled"


@pytest.mark.parametrize(("result", "status"), [(UNSAFE, 422), (INVALID, 422), (CRASHED, 500)])
def test_client_gets_errors_with_the_result(
    fal: Fal, client: fal_client.SyncClient, result: FakeResponse, status: int
) -> None:
    fal.results.append(result)
    with pytest.raises(fal_client.FalClientHTTPError) as caught:
        client.submit("fal-ai/flux/dev", {"prompt": "a fox"}).get()
    assert caught.value.status_code == status


def test_client_without_key(fal: Fal) -> None:
    with connected("nobody:knows") as client, pytest.raises(fal_client.FalClientHTTPError, match="Authentication"):
        client.submit("fal-ai/flux/dev", {"prompt": "a fox"})


# ---------------------------------------------------------------------------------------------------------- the gateway


async def test_images(open_gateway: OpenGateway) -> None:
    fal = Fal()
    async with gateway_for(open_gateway, "fal", fal) as running:
        record = await create_image(running, model="flux-schnell", n=2, size="128x64")
        assert (record["status"], str(record["cost"])) == ("completed", "0.006")
    assert fal.received("submit")[0].path == "/fal-ai/flux/schnell"
    assert fal.received("submit")[0].fields == {
        "prompt": "a pear", "image_size": {"width": 128, "height": 64}, "num_images": 2, "output_format": "png",
    }  # fmt: skip
    assert fal.received("status")[0].path.startswith("/fal-ai/flux/requests/")
    assert len(fal.received("files")) == 2


async def test_dearer_first_megapixel_and_images_that_go_in(open_gateway: OpenGateway) -> None:
    fal = Fal()
    async with gateway_for(open_gateway, "fal", fal) as running:
        assert str((await create_image(running, model="flux-2-pro", size="1920x1080"))["cost"]) == "0.045"
        assert str((await edit_image(running, model="flux-2-pro", size="64x64"))["cost"]) == "0.045"
    assert fal.received("submit")[1].path == "/fal-ai/flux-2-pro/edit"
    assert fal.received("submit")[1].fields["image_urls"] == [IMAGE_URI]


async def test_upscaling(open_gateway: OpenGateway) -> None:
    fal = Fal()
    async with gateway_for(open_gateway, "fal", fal) as running:
        record = await edit_image(running, model="seedvr-upscale", scale_factor=3)
        assert (record["status"], str(record["cost"])) == ("completed", "0.001")
    assert fal.received("submit")[0].fields == {"image_url": IMAGE_URI, "upscale_factor": 3, "output_format": "png"}


async def test_videos(open_gateway: OpenGateway) -> None:
    fal = Fal()
    async with gateway_for(open_gateway, "fal", fal) as running:
        video = await create_video(running, model="kling-3", seconds=4, size="9:16", negative_prompt="rain")
        assert (video["status"], video["output"]["size_bytes"]) == ("completed", len(mp4()))
        assert (str(video["metadata"]["cost"]), video["metadata"]["provider"]) == ("0.336", "fal")
        loud = await create_video(
            running, model="kling-3", seconds=4, generate_audio=True, input_reference=[{"image_url": IMAGE_URI}]
        )
        assert str(loud["metadata"]["cost"]) == "0.504"
        assert loud["metadata"]["executed_model"] == "fal/fal-ai/kling-video/v3/standard/image-to-video"
    words, image = fal.received("submit")
    assert words.fields == {
        "prompt": "a train", "aspect_ratio": "9:16", "duration": "4", "negative_prompt": "rain",
        "generate_audio": False,
    }  # fmt: skip
    assert image.fields == {
        "prompt": "a train", "duration": "4", "start_image_url": IMAGE_URI, "generate_audio": True,
    }  # fmt: skip


async def test_images_with_the_role_reference_have_an_endpoint_of_their_own(open_gateway: OpenGateway) -> None:
    fal = Fal()
    references = [{"image_url": IMAGE_URI, "role": "reference"}] * 2
    async with gateway_for(open_gateway, "fal", fal) as running:
        for model in ("seedance-2", "veo-3.1", "wan-2.7"):
            video = await create_video(running, model=model, seconds=8, input_reference=references)
            assert video["status"] == "completed"
    seedance, veo, wan = fal.received("submit")
    assert seedance.path == "/bytedance/seedance-2.0/reference-to-video"
    assert seedance.fields == {
        "prompt": "a train", "aspect_ratio": "16:9", "resolution": "720p", "duration": "8",
        "image_urls": [IMAGE_URI] * 2,
    }  # fmt: skip
    assert veo.fields["image_urls"] == wan.fields["reference_image_urls"] == [IMAGE_URI] * 2


async def test_two_frames_of_veo_have_an_endpoint_of_their_own(open_gateway: OpenGateway) -> None:
    fal = Fal()
    async with gateway_for(open_gateway, "fal", fal) as running:
        for count in (1, 2):
            inputs = [{"image_url": IMAGE_URI}] * count
            video = await create_video(running, model="veo-3.1-fast", seconds=4, input_reference=inputs)
            assert (video["status"], str(video["metadata"]["cost"])) == ("completed", "0.6")
        with pytest.raises(InvalidRequest, match="input_reference"):
            await create_video(running, model="veo-3.1-fast", input_reference=[{"image_url": IMAGE_URI}] * 3)
    one, both = fal.received("submit")
    assert (one.path, one.fields["image_url"]) == ("/fal-ai/veo3.1/fast/image-to-video", IMAGE_URI)
    assert both.path == "/fal-ai/veo3.1/fast/first-last-frame-to-video"
    assert both.fields == {
        "prompt": "a train", "resolution": "720p", "duration": "4s",
        "first_frame_url": IMAGE_URI, "last_frame_url": IMAGE_URI,
    }  # fmt: skip


async def test_a_length_in_frames_is_billed_in_seconds(open_gateway: OpenGateway) -> None:
    fal = Fal()
    image = {"image_url": IMAGE_URI}
    async with gateway_for(open_gateway, "fal", fal) as running:
        videos = [
            await create_video(running, model="hunyuan-video-1.5", input_reference=image, aspect_ratio="9:16", **body)
            for body in ({"seconds": 2.5}, {"seconds": 5})
        ]
        assert [str(video["metadata"]["cost"]) for video in videos] == ["0.225", "0.375"]
    sent, longer = fal.received("submit")
    assert sent.path == "/fal-ai/hunyuan-video-v1.5/image-to-video"
    assert sent.fields == {"prompt": "a train", "aspect_ratio": "9:16", "image_url": IMAGE_URI, "num_frames": 73}
    assert longer.fields["num_frames"] == 121


async def test_the_price_depends_on_what_is_sent(open_gateway: OpenGateway) -> None:
    async with gateway_for(open_gateway, "fal", Fal()) as running:
        video = await create_video(running, model="veo-3.1", seconds=5, resolution="1080p")
        assert str(video["metadata"]["cost"]) == "2.4", "6 seconds, the next that it can make"


@pytest.mark.parametrize(
    ("result", "status", "code"),
    [
        (UNSAFE, "upstream_failure", "CONTENT_POLICY_VIOLATION"),
        (CRASHED, "upstream_failure", "ALL_PROVIDERS_EXHAUSTED"),
        (FakeResponse({"images": [], "seed": 7}), "upstream_failure", "ALL_PROVIDERS_EXHAUSTED"),
        (
            FakeResponse({"images": [{"url": "http://127.0.0.1:1/x.png"}], "has_nsfw_concepts": [True]}),
            "upstream_failure",
            "CONTENT_POLICY_VIOLATION",
        ),
        (
            FakeResponse({"images": [{"url": "http://127.0.0.1:1/x.png"}], "nsfw_content_detected": [True]}),
            "upstream_failure",
            "CONTENT_POLICY_VIOLATION",
        ),
    ],
)
async def test_finished_and_failed(open_gateway: OpenGateway, result: FakeResponse, status: str, code: str) -> None:
    fal = Fal()
    fal.results.append(result)
    async with gateway_for(open_gateway, "fal", fal) as running:
        record = await create_image(running, model="flux-schnell")
        assert (record["status"], record["error_code"]) == (status, code)
        assert await running.money() == (10_000_000_000, 0), "nothing is charged"
    assert len(fal.received("result")) == 1, "the failure was read at once"


async def test_platform_gives_up(open_gateway: OpenGateway) -> None:
    fal = Fal()
    fal.next_states.append(("IN_QUEUE", NO_RUNNER))
    async with gateway_for(open_gateway, "fal", fal) as running:
        assert (await create_image(running, model="flux-schnell"))["status"] == "upstream_failure"
    assert not fal.received("result")


async def test_a_result_that_cannot_be_fetched_yet(open_gateway: OpenGateway) -> None:
    fal = Fal()
    fal.results.extend(
        [FakeResponse({"detail": "Bad gateway"}, 502), FakeResponse({"detail": "Too many requests"}, 429)]
    )
    async with gateway_for(open_gateway, "fal", fal) as running:
        assert (await create_image(running, model="flux-schnell"))["status"] == "completed"
    assert (len(fal.received("submit")), len(fal.received("result"))) == (1, 3)


async def test_cancelling(open_gateway: OpenGateway) -> None:
    fal = Fal()
    fal.next_states.append(("IN_QUEUE", "IN_PROGRESS"))
    async with gateway_for(open_gateway, "fal", fal) as running:
        started = await running.video(model="kling-2.5-turbo", seconds=5)
        await fal.endpoints["submit"].reached(1)
        await running.cancel(started.json["id"])
        assert (await running.wait_for_request(started.json["id"]))["status"] == "cancelled"
    assert len(fal.received("cancel")) == 1


async def test_a_refused_submission(open_gateway: OpenGateway) -> None:
    fal = Fal()
    fal.next("submit", responds({"detail": "Rate limit exceeded."}, 429, retry_after="7"))
    async with gateway_for(open_gateway, "fal", fal) as running:
        record = await create_image(running, model="flux-schnell")
        assert record["status"] == "upstream_failure"
