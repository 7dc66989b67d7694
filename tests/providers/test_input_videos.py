"""Videos as inputs: what providers are sent, what it costs, and what is refused before anything is sent."""

import base64
from typing import Any

import msgspec
import pytest

from penstock.errors import InvalidRequest, Problem
from penstock.fields import UploadedFile
from penstock.generations import endpoints
from tests.fake_providers.bfl import BlackForestLabs
from tests.fake_providers.runway import Runway
from tests.fake_providers.scripted import mp4
from tests.fake_providers.xai import XAI
from tests.gateway import OpenGateway, sqlite_only
from tests.providers.calls import IMAGE_URI, create_video, gateway_for, gateways_for

VIDEO = mp4(2)
VIDEO_URI = "data:video/mp4;base64," + base64.b64encode(VIDEO).decode()
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
    "a private address": (
        {"model": "grok-imagine-video", "input_reference": {"video_url": "https://localhost/a.mp4"}},
        "`input_reference`",
    ),
}


@sqlite_only
async def test_what_cannot_be_done_with_a_video_is_refused(open_gateway: OpenGateway) -> None:
    xai, runway = XAI(), Runway()
    fakes: Any = {"xai": (xai, "/v1"), "runway": (runway, "/v1")}
    async with gateways_for(open_gateway, fakes, disabled_providers=()) as running:
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
