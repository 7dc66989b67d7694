"""Vidu: the gateway against a fake made after the documentation; there is no client library."""

from typing import Any

import pytest

from tests.fake_providers.scripted import mp4
from tests.fake_providers.server import responds
from tests.fake_providers.vidu import Vidu, failed, problem
from tests.gateway import OpenGateway
from tests.providers.calls import IMAGE_URI, create_video, gateway_for

BASE = "/ent/v2"


@pytest.mark.parametrize(
    ("model", "count", "path", "upstream"),
    [
        ("vidu-q3", 0, "text2video", "viduq3-pro"),
        ("vidu-q3", 1, "img2video", "viduq3-pro"),
        ("vidu-q3", 2, "start-end2video", "viduq3-pro"),
        ("vidu-q3-turbo", 2, "start-end2video", "viduq3-turbo"),
        ("vidu/q3-reference", 1, "reference2video", "viduq3"),
        ("vidu/q3-reference", 7, "reference2video", "viduq3"),
    ],
)
async def test_videos(open_gateway: OpenGateway, model: str, count: int, path: str, upstream: str) -> None:
    provider = Vidu()
    async with gateway_for(open_gateway, "vidu", provider, BASE) as running:
        references = {"input_reference": [{"image_url": IMAGE_URI}] * count} if count else {}
        video = await create_video(running, model=model, seconds=5, size="1080x1920", **references)
        assert (video["status"], video["output"]["size_bytes"]) == ("completed", len(mp4()))
        assert str(video["metadata"]["cost"]) == "0.275"
        assert video["metadata"]["executed_model"] == f"vidu/{upstream}"
    received = provider.received("create")[0]
    shape = {} if path in ("img2video", "start-end2video") else {"aspect_ratio": "9:16"}
    images = {"images": [IMAGE_URI] * count} if count else {}
    assert received.path == f"{BASE}/{path}"
    assert received.fields == {
        "prompt": "a train", "duration": 5, "resolution": "1080p", "model": upstream, **shape, **images,
    }  # fmt: skip


@pytest.mark.parametrize("model", ["vidu-q3", "vidu/q3-reference"])
async def test_too_many_images(open_gateway: OpenGateway, model: str) -> None:
    async with gateway_for(open_gateway, "vidu", Vidu(), BASE) as running:
        with pytest.raises(Exception, match=r"takes at most|is not supported"):
            await running.video(model=model, seconds=5, input_reference=[{"image_url": IMAGE_URI}] * 8)


async def test_credits_are_what_is_paid_for(open_gateway: OpenGateway) -> None:
    """Up to what was held: the rest would be the gateway's loss."""
    provider = Vidu()
    async with gateway_for(open_gateway, "vidu", provider, BASE) as running:
        provider.credits = 10
        assert str((await create_video(running, model="vidu-q3", seconds=5))["metadata"]["cost"]) == "0.05"
        provider.credits = 1000
        assert str((await create_video(running, model="vidu-q3", seconds=5))["metadata"]["cost"]) == "0.75"


async def test_off_the_peak_is_refused(open_gateway: OpenGateway) -> None:
    async with gateway_for(open_gateway, "vidu", Vidu(), BASE) as running:
        with pytest.raises(Exception, match="would change the price"):
            await running.video(model="vidu-q3", seconds=5, off_peak=True)
        with pytest.raises(Exception, match="would change the price"):
            await running.video(model="vidu-q3", seconds=5, is_rec=True)


@pytest.mark.parametrize(
    ("fate", "code"),
    [
        (failed("CreationPolicyViolation"), "CONTENT_POLICY_VIOLATION"),
        (failed("AuditSubmitIllegal"), "CONTENT_POLICY_VIOLATION"),
        (failed("SystemError"), "ALL_PROVIDERS_EXHAUSTED"),
        ({"state": "success", "creations": []}, "ALL_PROVIDERS_EXHAUSTED"),
    ],
)
async def test_failures(open_gateway: OpenGateway, fate: dict[str, Any], code: str) -> None:
    provider = Vidu()
    provider.next_states.append(("created", fate))
    async with gateway_for(open_gateway, "vidu", provider, BASE) as running:
        video = await create_video(running, model="vidu-q3", seconds=5)
        assert (video["status"], video["error"]["code"]) == ("failed", code)
        assert await running.money() == (10_000_000_000, 0)


@pytest.mark.parametrize(
    ("reason", "status", "code"),
    [
        ("AuditSubmitIllegal", 400, "CONTENT_POLICY_VIOLATION"),
        ("QuotaExceeded", 429, None),
        ("CreditInsufficient", 400, "ALL_PROVIDERS_EXHAUSTED"),
        ("FieldInvalid", 400, "ALL_PROVIDERS_EXHAUSTED"),
    ],
)
async def test_a_refused_submission(open_gateway: OpenGateway, reason: str, status: int, code: str | None) -> None:
    """A provider that is only busy is tried again."""
    provider = Vidu()
    provider.next("create", responds(problem(reason, "No.", status), status))
    async with gateway_for(open_gateway, "vidu", provider, BASE) as running:
        video = await create_video(running, model="vidu-q3", seconds=5)
        assert (video["error"] or {}).get("code") == code


async def test_cancel(open_gateway: OpenGateway) -> None:
    provider = Vidu(usual=("created",))
    async with gateway_for(open_gateway, "vidu", provider, BASE) as running:
        started = await running.video(model="vidu-q3", seconds=5)
        await provider.endpoints["create"].reached(1)
        await running.cancel(started.json["id"])
        assert (await running.wait_for_request(started.json["id"]))["status"] == "cancelled"
    assert [job.cancelled for job in provider.jobs.values()] == [True]
