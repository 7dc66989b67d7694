"""Kling: the gateway against a fake made after the documentation; there is no client library."""

import time
from typing import Any

import httpx
import pytest

from penstock.providers import kling
from penstock.values import nanos
from tests.fake_providers import faults
from tests.fake_providers.kling import ACCESS, SECRET, Kling, claims_of, failed, problem
from tests.fake_providers.scripted import KEY, KEY_ENV, mp4
from tests.fake_providers.server import Act, FakeCall, responds, serve_in_thread, serving
from tests.gateway import OpenGateway, failpoint_raises
from tests.providers.calls import IMAGE_URI, create_video, gateway_for

# --------------------------------------------------------------------------------------------------------------- tokens


def test_pair_signs_a_token() -> None:
    assert claims_of(kling.sign_token(ACCESS, SECRET, 1_763_173_200)) == {
        "iss": ACCESS, "exp": 1_763_175_000, "nbf": 1_763_173_195,
    }  # fmt: skip


def test_plain_key_is_sent_as_it_is() -> None:
    assert kling.auth("a-plain-key") == {"authorization": "Bearer a-plain-key"}


@pytest.mark.parametrize(
    ("key", "status"), [(KEY, 200), (f"{ACCESS}:{SECRET}", 200), (f"Another:{SECRET}", 401), ("wrong", 401)]
)
def test_the_provider_accepts_both_credentials(key: str, status: int) -> None:
    with serve_in_thread(Kling()) as provider:
        made = httpx.post(
            f"{provider.url}/v1/videos/text2video", json={"prompt": "a fox"}, headers=dict(kling.auth(key))
        )
        assert made.status_code == status


def test_token_is_fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1_800_000_000
    monkeypatch.setattr(time, "time", lambda: now + 0.5)
    token = kling.auth(f"{ACCESS}:{SECRET}")["authorization"].removeprefix("Bearer ")
    claims = claims_of(token)
    assert (claims["nbf"], claims["exp"]) == (now - 5, now + 1800)


# ---------------------------------------------------------------------------------------------------------- the gateway


async def test_videos(open_gateway: OpenGateway) -> None:
    provider = Kling()
    async with gateway_for(open_gateway, "kling", provider) as running:
        video = await create_video(running, model="kling-3", seconds=4, size="9:16", negative_prompt="rain")
        assert (video["status"], video["output"]["size_bytes"]) == ("completed", len(mp4()))
        assert str(video["metadata"]["cost"]) == "0.336"
        loud = await create_video(running, model="kling-3-pro", seconds=4, sound="on")
        assert str(loud["metadata"]["cost"]) == "0.672"
        assert loud["metadata"]["executed_model"] == "kling/kling-v3"
    quiet, received = [call.fields for call in provider.received("text")]
    assert quiet.pop("external_task_id") != received["external_task_id"]
    assert quiet == {
        "prompt": "a train", "negative_prompt": "rain", "duration": "4", "mode": "std", "aspect_ratio": "9:16",
        "model_name": "kling-v3",
    }  # fmt: skip
    assert (received["mode"], received["sound"]) == ("pro", "on")


async def test_videos_of_images(open_gateway: OpenGateway) -> None:
    provider = Kling()
    async with gateway_for(open_gateway, "kling", provider) as running:
        video = await create_video(
            running, model="kling-2.5-turbo", seconds=7, size="1:1", input_reference=[{"image_url": IMAGE_URI}] * 2
        )
        assert (video["status"], str(video["metadata"]["cost"])) == ("completed", "0.7")
    plain = IMAGE_URI.partition(",")[2]
    fields = provider.received("image")[0].fields
    assert fields.pop("external_task_id").startswith("att_")
    assert fields == {
        "prompt": "a train", "duration": "10", "mode": "pro", "image": plain, "image_tail": plain,
        "model_name": "kling-v2-5-turbo",
    }  # fmt: skip
    assert {call.path.rsplit("/", 1)[0] for call in provider.received("show")} == {"/v1/videos/image2video"}


async def test_a_submission_without_an_answer_is_found_by_our_id(open_gateway: OpenGateway) -> None:
    """It is neither sent again nor failed as unknown."""
    provider = Kling()
    provider.next("text", faults.dropped)
    async with gateway_for(open_gateway, "kling", provider) as running:
        video = await create_video(running, model="kling-3", seconds=5)
        assert (video["status"], str(video["metadata"]["cost"])) == ("completed", "0.42")
        assert await running.money() == (nanos("9.58"), 0)
    assert len(provider.received("text")) == len(provider.jobs) == 1


async def test_an_interrupted_submission_is_found_by_our_id(open_gateway: OpenGateway) -> None:
    """The process was killed after the provider had answered, and before it had stored the id of the task."""
    provider = Kling()
    async with serving(provider):
        providers = {"kling": {"base_url": provider.url, "key_env": KEY_ENV}}
        async with open_gateway(providers=providers) as running:
            with failpoint_raises("submit.response_read"):
                video_id = (await running.video(model="kling-3", seconds=5)).json["id"]
                await running.wait_until_idle()
        async with open_gateway(providers=providers) as running:
            assert (await running.wait_for_video(video_id))["status"] == "completed"
            assert [row["state"] for row in await running.attempts(video_id)] == ["completed"]
    assert len(provider.received("text")) == len(provider.jobs) == 1


@pytest.mark.parametrize("response", [None, responds(problem(1203, "Task not found"), 200)])
async def test_a_submission_that_is_not_found_is_not_sent_again(
    open_gateway: OpenGateway, response: Act | None
) -> None:
    provider = Kling()
    provider.next("text", _lose)
    if response:
        provider.next("show", *[response] * 10)
    async with gateway_for(open_gateway, "kling", provider) as running:
        video = await create_video(running, model="kling-3", seconds=5)
        assert (video["status"], video["error"]["code"]) == ("failed", "UPSTREAM_OUTCOME_UNKNOWN")
        assert await running.money() == (nanos("10"), 0)
    assert len(provider.received("text")) == 1
    assert not provider.jobs


async def _lose(call: FakeCall) -> None:
    """Hang up without accepting the request."""
    call.exchange.hang_up()


@pytest.mark.parametrize(
    ("fate", "code"),
    [
        (failed("Failure to pass the risk control system"), "CONTENT_POLICY_VIOLATION"),
        (failed("Internal error"), "ALL_PROVIDERS_EXHAUSTED"),
        ({"task_status": "succeed", "task_result": {"videos": []}}, "ALL_PROVIDERS_EXHAUSTED"),
    ],
)
async def test_failures(open_gateway: OpenGateway, fate: dict[str, Any], code: str) -> None:
    provider = Kling()
    provider.next_states.append(("submitted", fate))
    async with gateway_for(open_gateway, "kling", provider) as running:
        video = await create_video(running, model="kling-3", seconds=5)
        assert (video["status"], video["error"]["code"]) == ("failed", code)
        assert await running.money() == (10_000_000_000, 0)


@pytest.mark.parametrize(
    ("response", "status", "code"),
    [
        (problem(1301, "The prompt contains sensitive content."), 400, "CONTENT_POLICY_VIOLATION"),
        (problem(1102, "Resource pack depleted"), 429, "ALL_PROVIDERS_EXHAUSTED"),
        (problem(1303, "parallel task over resource pack limit"), 429, None),
        (problem(1301, "The prompt contains sensitive content."), 200, "CONTENT_POLICY_VIOLATION"),
    ],
)
async def test_a_refused_submission(
    open_gateway: OpenGateway, response: dict[str, Any], status: int, code: str | None
) -> None:
    """A provider that is only busy is tried again."""
    provider = Kling()
    provider.next("text", responds(response, status))
    async with gateway_for(open_gateway, "kling", provider) as running:
        video = await create_video(running, model="kling-3", seconds=5)
        assert (video["error"] or {}).get("code") == code


async def test_kling_4_takes_two_frames_and_thirty_seconds(open_gateway: OpenGateway) -> None:
    provider = Kling()
    async with gateway_for(open_gateway, "kling", provider) as running:
        text = await create_video(running, model="kling-4", seconds=30, size="21:9", resolution="1080p")
        image = await create_video(running, model="kling-4", seconds=3, input_reference=[{"image_url": IMAGE_URI}] * 2)
        assert [video["status"] for video in (text, image)] == ["completed"] * 2
        assert [str(video["metadata"]["cost"]) for video in (text, image)] == ["7.05", "0.471"]
    assert [call.path for call in provider.received("task")] == [
        "/text-to-video/kling-4.0",
        "/image-to-video/kling-4.0",
    ]
    plain = IMAGE_URI.partition(",")[2]
    wide, framed = [call.fields for call in provider.received("task")]
    assert wide["settings"] == {"duration": 30, "aspect_ratio": "21:9", "resolution": "1080p"}
    assert framed == {
        "settings": {"duration": 3, "resolution": "720p"},
        "contents": [
            {"type": "prompt", "text": "a train"},
            {"type": "first_frame", "url": plain},
            {"type": "last_frame", "url": plain},
        ],
    }


async def test_turbo_has_other_shapes(open_gateway: OpenGateway) -> None:
    provider = Kling()
    async with gateway_for(open_gateway, "kling", provider) as running:
        plain = await create_video(running, model="kling-3-turbo", seconds=4, size="9:16")
        moved = await create_video(
            running, model="kling-3-turbo", seconds=3, resolution="1080p", input_reference={"image_url": IMAGE_URI}
        )
        assert [str(video["metadata"]["cost"]) for video in (plain, moved)] == ["0.448", "0.42"]
        provider.next_states.append(("submitted", {"status": "failed", "message": "Failure to pass the risk control"}))
        refused = await create_video(running, model="kling-3-turbo")
        assert refused["error"]["code"] == "CONTENT_POLICY_VIOLATION"
    text, image, _ = [call.fields for call in provider.received("task")]
    assert text == {"prompt": "a train", "settings": {"duration": 4, "aspect_ratio": "9:16", "resolution": "720p"}}
    assert image == {
        "contents": [
            {"type": "prompt", "text": "a train"},
            {"type": "first_frame", "url": IMAGE_URI.partition(",")[2]},
        ],
        "settings": {"duration": 3, "resolution": "1080p"},
    }


async def test_omni_takes_frames_and_references(open_gateway: OpenGateway) -> None:
    provider = Kling()
    async with gateway_for(open_gateway, "kling", provider) as running:
        for count in (0, 2, 3):
            inputs = [{"image_url": IMAGE_URI}] * count
            video = await create_video(running, model="kling-3-omni-pro", seconds=3, sound="on", input_reference=inputs)
            assert (video["status"], str(video["metadata"]["cost"])) == ("completed", "0.42")
    sent = [call.fields for call in provider.received("omni")]
    roles = [[image.get("type") for image in fields.get("image_list", [])] for fields in sent]
    assert roles == [[], ["first_frame", "end_frame"], [None, None, None]]
    assert (sent[0]["model_name"], sent[0]["mode"], sent[0]["sound"]) == ("kling-v3-omni", "pro", "on")
