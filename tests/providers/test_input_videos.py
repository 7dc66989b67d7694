"""Videos as inputs: what providers are sent, what it costs, and what is refused before anything is sent."""

import base64
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import msgspec
import pytest

from penstock.errors import InvalidRequest, Problem
from penstock.fields import UploadedFile
from penstock.generations import endpoints
from tests.fake_providers.bfl import BlackForestLabs
from tests.fake_providers.dashscope import DashScope
from tests.fake_providers.kling import Kling
from tests.fake_providers.luma import Luma
from tests.fake_providers.runway import Runway
from tests.fake_providers.scripted import mp4
from tests.fake_providers.wavespeed import WaveSpeed
from tests.fake_providers.xai import XAI
from tests.gateway import OpenGateway, RunningGateway, sqlite_only
from tests.providers.calls import IMAGE_URI, create_video, gateway_for, gateways_for

VIDEO = mp4(2)
VIDEO_BASE64 = base64.b64encode(VIDEO).decode()
VIDEO_URI = f"data:video/mp4;base64,{VIDEO_BASE64}"
EDITED = {"video_url": VIDEO_URI}
EXTENDED = {"video_url": VIDEO_URI, "role": "extend"}


async def test_xai_edits_and_extends_videos(open_gateway: OpenGateway) -> None:
    xai = XAI()
    async with gateway_for(open_gateway, "xai", xai, "/v1") as running:
        edited = await create_video(running, model="grok-imagine-video", input_reference=EDITED)
        extended = await create_video(running, model="grok-imagine-video", input_reference=[EXTENDED], seconds=4)
        assert await running.rows("SELECT count(*) AS count FROM media WHERE role = 'input'") == [{"count": 0}]
    assert (edited["status"], edited["seconds"], edited["size"]) == ("completed", "2", "64x64")
    assert (extended["status"], extended["seconds"], str(extended["metadata"]["cost"])) == ("completed", "4", "0.28")
    shared = {"model": "grok-imagine-video", "prompt": "a train", "video": {"url": VIDEO_URI}}
    assert xai.received("edit_video")[0].fields == shared
    assert xai.received("extend_video")[0].fields == {**shared, "duration": 4}


async def test_runway_edits_videos(open_gateway: OpenGateway) -> None:
    runway = Runway()
    async with gateway_for(open_gateway, "runway", runway, "/v1") as running:
        video = await create_video(running, model="runway/aleph-2", input_reference=EDITED, seed=7)
    assert (video["status"], str(video["metadata"]["cost"])) == ("completed", "0.28")
    fields = {"model": "aleph2", "promptText": "a train", "seed": 7, "videoUri": VIDEO_URI}
    assert runway.received("video_to_video")[0].fields == fields


async def test_flux_goes_on_from_a_video(open_gateway: OpenGateway) -> None:
    bfl = BlackForestLabs()
    async with gateway_for(open_gateway, "bfl", bfl) as running:
        video = await create_video(running, model="flux-3-video", input_reference=EXTENDED, resolution="1080p")
    assert video["status"] == "completed"
    received = bfl.received("submit")[0].fields
    assert (received["mode"], received["resolution"], received["duration"]) == ("v2v", "fhd", 5)
    assert base64.b64decode(received["start_video"]) == VIDEO


async def test_flux_edits_videos(open_gateway: OpenGateway) -> None:
    bfl = BlackForestLabs()
    async with gateway_for(open_gateway, "bfl", bfl) as running:
        video = await create_video(running, model="flux-video-edit", input_reference=EDITED)
        with pytest.raises(InvalidRequest, match="`seed` is not a parameter of this model"):
            await running.video(model="flux-video-edit", input_reference=EDITED, seed=7)
    assert (video["status"], video["seconds"]) == ("completed", "2")
    (sent,) = bfl.received("submit")
    assert (sent.path, sent.fields) == ("/v1/flux-tools/video-edit-v1", {"prompt": "a train", "video": VIDEO_BASE64})


async def test_luma_edits_videos_and_changes_their_aspect_ratio(open_gateway: OpenGateway) -> None:
    luma = Luma()
    async with gateway_for(open_gateway, "luma", luma, "/v1") as running:
        edited = await create_video(running, model="luma/ray-3-edit", input_reference=EDITED, resolution="1080p")
        reframed = await create_video(
            running, model="luma/ray-3-reframe", input_reference=EDITED, aspect_ratio="21:9", resolution="540p"
        )
    assert [str(video["metadata"]["cost"]) for video in (edited, reframed)] == ["0.864", "0.12"]
    source = {"data": VIDEO_BASE64, "media_type": "video/mp4"}
    edit, reframe = [request.fields for request in luma.received("create")]
    assert (edit["type"], edit["source"]) == ("video_edit", source)
    assert edit["video"] == {"resolution": "1080p", "edit": {"auto_controls": True}}
    assert (reframe["type"], reframe["source"]) == ("video_reframe", source)
    assert (reframe["aspect_ratio"], reframe["video"]) == ("21:9", {"resolution": "540p"})


# -------------------------------------------------------------------------------------------------- videos by their URL

PUBLIC_URL = "https://gateway.test"
FOUR_SECONDS = mp4(4)
BY_URL: Any = {"input_reference": {"video_url": f"data:video/mp4;base64,{base64.b64encode(FOUR_SECONDS).decode()}"}}


async def fetched(running: RunningGateway, url: str) -> bytes:
    """What a provider gets that fetches a file from the gateway."""
    assert url.startswith(f"{PUBLIC_URL}/m/med_")
    media_id = urlsplit(url).path.rpartition("/")[2]
    response = await running.gateway.media.open(media_id, dict(parse_qsl(urlsplit(url).query)), None)
    assert response.chunks is not None
    return b"".join([chunk async for chunk in response.chunks])


async def test_kling_fetches_the_video_that_it_edits(open_gateway: OpenGateway) -> None:
    kling = Kling()
    async with gateways_for(open_gateway, {"kling": (kling, "")}, public_url=PUBLIC_URL) as running:
        video = await create_video(running, model="kling-3-omni", **BY_URL)
        (sent,) = kling.received("omni")
        (source,) = sent.fields["video_list"]
        assert await fetched(running, source["video_url"]) == FOUR_SECONDS
    assert (video["status"], video["seconds"], str(video["metadata"]["cost"])) == ("completed", "4", "0.504")
    assert (source["refer_type"], source["keep_original_sound"]) == ("base", "yes")
    assert {"duration", "aspect_ratio", "image_list", "sound"}.isdisjoint(sent.fields)


async def test_dashscope_fetches_the_video_that_it_edits_and_bills_both(open_gateway: OpenGateway) -> None:
    dashscope = DashScope()
    dashscope.made_seconds = 8
    async with gateways_for(open_gateway, {"dashscope": (dashscope, "")}, public_url=PUBLIC_URL) as running:
        video = await create_video(running, model="wan-2.7", **BY_URL, resolution="1080p")
        (sent,) = dashscope.received("create")
        (source,) = sent.fields["input"]["media"]
        assert await fetched(running, source["url"]) == FOUR_SECONDS
    assert (video["status"], video["seconds"], str(video["metadata"]["cost"])) == ("completed", "4", "1.2")
    assert (sent.fields["model"], source["type"]) == ("wan2.7-videoedit", "video")
    assert sent.fields["parameters"] == {"resolution": "1080P"}


@sqlite_only
async def test_without_a_public_url_no_video_can_be_fetched(open_gateway: OpenGateway) -> None:
    kling, dashscope = Kling(), DashScope()
    fakes: Any = {"kling": (kling, ""), "dashscope": (dashscope, "")}
    for public_url in ("", "http://gateway.test"):
        async with gateways_for(open_gateway, fakes, public_url=public_url) as running:
            for model in ("kling-o1-pro", "wan-2.7"):
                with pytest.raises(InvalidRequest, match=f"of {model} is fetched by its provider .* `public_url`"):
                    await running.video(model=model, **BY_URL)
    assert not kling.jobs
    assert not dashscope.jobs


# ------------------------------------------------------------------------------------------------------------ upscaling

UPSCALED: Any = {"prompt": None, "input_reference": EDITED}  # of 64x64, 2 seconds with 4 frames each


async def test_flux_upscales_by_a_factor_and_its_price_grows_with_the_size(open_gateway: OpenGateway) -> None:
    bfl = BlackForestLabs()
    query = {"dryRun": "true"}
    async with gateway_for(open_gateway, "bfl", bfl) as running:
        video = await create_video(running, model="flux-video-upscale", **UPSCALED)
        costs = [
            (await running.video(model="flux-video-upscale", **UPSCALED, **body, query=query)).json["total_cost_micros"]
            for body in ({}, {"scale_factor": 3}, {"scale_factor": 3, "creativity": 0}, {"size": "96x96"})
        ]
        with pytest.raises(InvalidRequest, match=r"`scale_factor` of flux-video-upscale must be from 1\.5 to 3"):
            await running.video(model="flux-video-upscale", **UPSCALED, resolution="360p")
    assert (video["status"], video["size"], video["prompt"]) == ("completed", "128x128", "")
    assert str(video["metadata"]["cost"]) == "0.0032768", "two seconds of 128x128"
    assert costs == [3277, 7373, 5161, 1843]
    (sent,) = bfl.received("submit")
    assert (sent.path, sent.fields) == (
        "/v1/flux-tools/video-upscale-v1",
        {"input_video": VIDEO_BASE64, "upscale_factor": 2},
    )


async def test_runway_upscales_to_a_resolution_and_counts_frames(open_gateway: OpenGateway) -> None:
    runway = Runway()
    async with gateway_for(open_gateway, "runway", runway, "/v1") as running:
        video = await create_video(running, model="magnific/video-upscale", **UPSCALED, resolution="4K", creativity=20)
        dry = await running.video(model="magnific/video-upscale", **UPSCALED, resolution="2K", query={"dryRun": "true"})
    assert (video["status"], str(video["metadata"]["cost"])) == ("completed", "0.07")
    assert dry.json["total_cost_micros"] == 8 * 9000
    model = "magnific_video_upscaler_creative"
    fields = {"model": model, "videoUri": VIDEO_URI, "resolution": "4k", "creativity": 20}
    assert runway.received("video_upscale")[0].fields == fields


async def test_wavespeed_upscales_to_the_closest_resolution(open_gateway: OpenGateway) -> None:
    wavespeed = WaveSpeed()
    async with gateway_for(open_gateway, "wavespeed", wavespeed) as running:
        videos = [
            await create_video(running, model="wavespeed/flashvsr", **UPSCALED, **body)
            for body in ({}, {"resolution": "1080p"}, {"resolution": "2K"}, {"scale_factor": 100})
        ]
    assert [str(video["metadata"]["cost"]) for video in videos] == ["0.024", "0.036", "0.048", "0.064"]
    sent = [request.fields for request in wavespeed.received("create")]
    assert [fields["target_resolution"] for fields in sent] == ["720p", "1080p", "2k", "4k"]
    assert (sent[0]["video"], sent[0]["duration"]) == (VIDEO_BASE64, 2.0)


@sqlite_only
async def test_only_models_that_upscale_need_no_prompt(open_gateway: OpenGateway) -> None:
    fakes: Any = {"runway": (Runway(), "/v1")}
    async with gateways_for(open_gateway, fakes, disabled_providers=()) as running:
        for body in ({"model": "runway/aleph-2", "input_reference": EDITED}, {"model": "atelier/clip"}):
            with pytest.raises(InvalidRequest, match="`prompt` is required"):
                await running.video(prompt=None, **body)


@sqlite_only
async def test_the_length_of_the_input_decides_the_estimate(open_gateway: OpenGateway) -> None:
    async with gateways_for(open_gateway, {"runway": (Runway(), "/v1")}) as running:
        query = {"dryRun": "true"}
        edit = await running.video(model="runway/aleph-2", input_reference=EDITED, seconds=9, query=query)
        assert edit.json["total_cost_micros"] == 560_000, "two seconds, as long as the input"


@sqlite_only
async def test_videos_in_forms(open_gateway: OpenGateway) -> None:
    """A file that is a video is edited, unless its name says that it is to be extended."""
    xai = XAI()
    async with gateway_for(open_gateway, "xai", xai, "/v1") as running:
        for name in ("input_reference", "input_reference[edit]", "input_reference[0][extend]"):
            form = (("model", "grok-imagine-video"), ("prompt", "a train"), (name, UploadedFile(VIDEO, "a.mp4")))
            call = msgspec.structs.replace(running.call(), is_form=True, form=form)
            started = await endpoints.start_video(running.gateway, call)
            await running.wait_for_video(started.json["id"])
    assert (len(xai.received("edit_video")), len(xai.received("extend_video"))) == (2, 1)


@sqlite_only
async def test_a_refusal_is_that_of_the_model_which_takes_such_inputs(open_gateway: OpenGateway) -> None:
    """One id may stand for a model that makes videos and for one that edits them."""
    async with gateways_for(open_gateway, {"xai": (XAI(), "/v1")}) as running:
        with pytest.raises(InvalidRequest, match="`seconds` of grok-imagine-video must be at most 15"):
            await running.video(model="grok-imagine-video", seconds=60)


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "a model that takes none": (
        {"model": "atelier/clip", "input_reference": EDITED},
        "`input_reference` with a video to edit is not supported by atelier/clip.",
    ),
    "a model that only edits": (
        {"model": "runway/aleph-2", "input_reference": EXTENDED},
        "`input_reference` with a video to extend is not supported by runway/aleph-2.",
    ),
    "a model that needs one": (
        {"model": "runway/aleph-2"},
        "`input_reference` with a video to edit is required by runway/aleph-2.",
    ),
    "an unknown role": (
        {"model": "grok-imagine-video", "input_reference": {**EDITED, "role": "first_frame"}},
        "`role` of a video in `input_reference` must be one of `edit`, `extend`.",
    ),
    "two videos": (
        {"model": "grok-imagine-video", "input_reference": [EDITED, EXTENDED]},
        "`input_reference` takes one video.",
    ),
    "a video and an image": (
        {"model": "grok-imagine-video", "input_reference": [EDITED, {"image_url": IMAGE_URI}]},
        "`input_reference` takes a video or images, not both.",
    ),
    "an image as a video": (
        {"model": "grok-imagine-video", "input_reference": {"video_url": IMAGE_URI}},
        "`input_reference` is not a usable video: The file is not one of mp4, mov.",
    ),
    "a video as an image": (
        {"model": "grok-imagine-video", "input_reference": {"image_url": VIDEO_URI, "role": "first_frame"}},
        "`input_reference` is not a usable image",
    ),
    "a video that is too long": (
        {
            "model": "grok-imagine-video",
            "input_reference": {"video_url": "data:video/mp4;base64," + base64.b64encode(mp4(9)).decode()},
        },
        "A video in `input_reference` of grok-imagine-video may have 8.7 seconds.",
    ),
    "a video that is too short": (
        {"model": "kling-3-omni", "input_reference": EDITED},
        "A video in `input_reference` of kling-3-omni may have 3 seconds or more.",
    ),
    "a private address": (
        {"model": "grok-imagine-video", "input_reference": {"video_url": "https://localhost/a.mp4"}},
        "`input_reference`",
    ),
}


@sqlite_only
async def test_what_cannot_be_done_with_a_video_is_refused(open_gateway: OpenGateway) -> None:
    xai, runway = XAI(), Runway()
    fakes: Any = {"xai": (xai, "/v1"), "runway": (runway, "/v1"), "kling": (Kling(), "")}
    async with gateways_for(open_gateway, fakes, disabled_providers=(), public_url=PUBLIC_URL) as running:
        for name, (body, message) in REFUSED.items():
            with pytest.raises(InvalidRequest) as refusal:
                await running.video(**body)
            assert message in refusal.value.message, name
            assert refusal.value.param == "input_reference", name
    assert not xai.jobs
    assert not runway.jobs


@sqlite_only
async def test_a_video_may_have_as_many_bytes_as_the_setting_and_the_provider_allow(open_gateway: OpenGateway) -> None:
    padded = VIDEO + b"\x00\x40\x00\x00free" + bytes(0x400000 - 8)  # a box that players skip
    body: dict[str, Any] = {
        "input_reference": {"video_url": "data:video/mp4;base64," + base64.b64encode(padded).decode()}
    }
    async with gateways_for(open_gateway, {"runway": (Runway(), "/v1")}) as running:
        with pytest.raises(InvalidRequest, match="may have 3700000 bytes"):
            await running.video(model="runway/aleph-2", **body)
    async with gateways_for(open_gateway, {"runway": (Runway(), "/v1")}, input_video_bytes=4_000_000) as running:
        with pytest.raises(Problem, match="may have at most 4000000 bytes"):
            await running.video(model="runway/aleph-2", **body)
