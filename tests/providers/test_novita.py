"""Novita through the gateway, against a fake that takes the fields of each page and no others."""

import json
from typing import Any

import pytest

from tests.fake_providers.novita import Novita, error, failed
from tests.fake_providers.scripted import mp4
from tests.fake_providers.server import responds
from tests.gateway import OpenGateway
from tests.providers.calls import IMAGE_URI, create_chat, create_video, gateway_for

CREDIT = 10_000_000_000


async def test_videos_of_texts_and_of_images(open_gateway: OpenGateway) -> None:
    novita = Novita()
    async with gateway_for(open_gateway, "novita", novita) as running:
        silent = await create_video(running, model="kling-3", seconds=4, size="9:16", negative_prompt="rain")
        loud = await create_video(running, model="kling-3-pro", seconds=3, generate_audio=True)
        frames = await create_video(running, model="kling-3", seconds=5, input_reference=[{"image_url": IMAGE_URI}] * 2)
        assert [str(video["metadata"]["cost"]) for video in (silent, loud, frames)] == ["0.336", "0.504", "0.42"]
        assert (frames["status"], frames["output"]["size_bytes"]) == ("completed", len(mp4()))
    first, second, third = novita.received("create")
    assert first.fields == {
        "prompt": "a train", "negative_prompt": "rain", "duration": 4, "aspect_ratio": "9:16", "sound": False,
    }  # fmt: skip
    assert [call.path for call in (first, second, third)] == [
        "/v3/async/kling-v3.0-std-t2v", "/v3/async/kling-v3.0-pro-t2v", "/v3/async/kling-v3.0-std-i2v",
    ]  # fmt: skip
    assert second.fields["sound"] is True
    assert third.fields == {
        "prompt": "a train", "duration": 5, "image": IMAGE_URI, "end_image": IMAGE_URI, "sound": False,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("fate", "code"),
    [
        (failed("The content was blocked by risk control."), "CONTENT_POLICY_VIOLATION"),
        (failed("TASK_FAILED"), "ALL_PROVIDERS_EXHAUSTED"),
    ],
)
async def test_failed_tasks_are_free(open_gateway: OpenGateway, fate: Any, code: str) -> None:
    novita = Novita()
    novita.next_states.append(("TASK_STATUS_QUEUED", fate))
    async with gateway_for(open_gateway, "novita", novita) as running:
        video = await create_video(running, model="kling-3")
        assert (video["status"], video["error"]["code"]) == ("failed", code)
        assert await running.money() == (CREDIT, 0)


async def test_what_is_answered_at_once(open_gateway: OpenGateway) -> None:
    """Reasons decide where the status is misleading: an account without money is not the caller's mistake."""
    novita = Novita()
    broke = error(400, "BILLING_BALANCE_NOT_ENOUGH", "not enough balance")
    async with gateway_for(open_gateway, "novita", novita) as running:
        refused = await create_video(running, model="kling-3", prompt="forbidden")
        novita.next("create", responds(broke.json, broke.status))
        unpaid = await create_video(running, model="kling-3")
        codes = [video["error"]["code"] for video in (refused, unpaid)]
        assert codes == ["CONTENT_POLICY_VIOLATION", "ALL_PROVIDERS_EXHAUSTED"]
        assert await running.money() == (CREDIT, 0)


async def test_chat(open_gateway: OpenGateway) -> None:
    novita = Novita()
    messages = [{"role": "developer", "content": "Be brief."}, {"role": "user", "content": "Name a colour."}]
    async with gateway_for(open_gateway, "novita", novita) as running:
        text, record = await create_chat(running, model="z-ai/glm-5.3", messages=messages, max_completion_tokens=50)
        assert (json.loads(text)["choices"][0]["finish_reason"], record["status"]) == ("stop", "completed")
    fields = novita.received("chat")[0].fields
    assert (fields["model"], fields["max_tokens"]) == ("zai-org/glm-5.3", 50)
