"""MiniMax: the gateway against a fake made after the documentation; there is no client library for videos."""

from typing import Any

import pytest

from tests.fake_providers.minimax import MiniMax, base, problem
from tests.fake_providers.scripted import mp4
from tests.fake_providers.server import responds
from tests.gateway import OpenGateway
from tests.providers.calls import IMAGE_URI, create_video, gateway_for

H3 = ("queued", "running", "succeeded")


@pytest.mark.parametrize(
    ("model", "fields", "expected", "cost"),
    [
        ("hailuo-2.3", {"seconds": 5}, {"duration": 6, "resolution": "768P"}, "0.28"),
        ("hailuo-2.3", {"seconds": 7}, {"duration": 10, "resolution": "768P"}, "0.56"),
        ("hailuo-2.3", {"seconds": 6, "resolution": "1080p"}, {"duration": 6, "resolution": "1080P"}, "0.49"),
        ("hailuo-02", {"seconds": 6, "size": "1280x720"}, {"duration": 6, "resolution": "768P"}, "0.28"),
    ],
)
async def test_hailuo(open_gateway: OpenGateway, model: str, fields: dict[str, Any], expected: Any, cost: str) -> None:
    provider = MiniMax()
    async with gateway_for(open_gateway, "minimax", provider) as running:
        video = await create_video(running, model=model, **fields)
        assert (video["status"], video["output"]["size_bytes"]) == ("completed", len(mp4()))
        assert str(video["metadata"]["cost"]) == cost
    upstream = f"MiniMax-H{model[1:]}".replace("hailuo", "Hailuo")
    assert provider.received("create")[0].fields == {"prompt": "a train", "model": upstream, **expected}


async def test_hailuo_of_images(open_gateway: OpenGateway) -> None:
    provider = MiniMax()
    async with gateway_for(open_gateway, "minimax", provider) as running:
        image = {"image_url": IMAGE_URI}
        fast = await create_video(running, model="hailuo-2.3-fast", seconds=6, input_reference=[image])
        assert (fast["status"], str(fast["metadata"]["cost"])) == ("completed", "0.19")
        assert (await create_video(running, model="hailuo-02", seconds=6, input_reference=[image] * 2))[
            "status"
        ] == "completed"
    one, two = [call.fields for call in provider.received("create")]
    assert (one["first_frame_image"], "last_frame_image" in one) == (IMAGE_URI, False)
    assert (two["first_frame_image"], two["last_frame_image"]) == (IMAGE_URI, IMAGE_URI)


@pytest.mark.parametrize(
    ("count", "roles"),
    [(0, []), (1, ["first_frame"]), (2, ["first_frame", "last_frame"]), (4, ["reference_image"] * 4)],
)
async def test_h3(open_gateway: OpenGateway, count: int, roles: list[str]) -> None:
    provider = MiniMax(usual=H3)
    async with gateway_for(open_gateway, "minimax", provider) as running:
        references = {"input_reference": [{"image_url": IMAGE_URI}] * count} if count else {}
        video = await create_video(running, model="minimax/h3", seconds=5, size="1440x2560", **references)
        assert (video["status"], str(video["metadata"]["cost"])) == ("completed", "0.65")
    received = provider.received("create_2")[0].fields
    words, *images = received.pop("content")
    assert received == {"duration": 5, "ratio": "9:16", "resolution": "2K", "model": "MiniMax-H3"}
    assert words == {"type": "text", "text": "a train"}
    assert [(image["role"], image["image_url"]["url"]) for image in images] == [(role, IMAGE_URI) for role in roles]


async def test_what_would_cost_extra_is_refused(open_gateway: OpenGateway) -> None:
    async with gateway_for(open_gateway, "minimax", MiniMax()) as running:
        image = {"image_url": IMAGE_URI}
        for model, count in (("minimax/h3", 6), ("minimax/h3-max", 3)):
            with pytest.raises(Exception, match="takes at most"):
                await running.video(model=model, seconds=5, input_reference=[image] * count)
        with pytest.raises(Exception, match="would change the price"):
            await running.video(model="minimax/h3", seconds=5, content=[])


@pytest.mark.parametrize(
    ("fate", "code"),
    [
        ({"status": "Fail", "base_resp": base(1027, "output new_sensitive")}, "CONTENT_POLICY_VIOLATION"),
        ({"status": "Fail", "base_resp": base(1000, "unknown error")}, "ALL_PROVIDERS_EXHAUSTED"),
        ({"status": "Success", "file_id": ""}, "ALL_PROVIDERS_EXHAUSTED"),
    ],
)
async def test_failures(open_gateway: OpenGateway, fate: dict[str, Any], code: str) -> None:
    provider = MiniMax()
    provider.next_states.append(("Preparing", fate))
    async with gateway_for(open_gateway, "minimax", provider) as running:
        video = await create_video(running, model="hailuo-2.3", seconds=6)
        assert (video["status"], video["error"]["code"]) == ("failed", code)
        assert await running.money() == (10_000_000_000, 0)


@pytest.mark.parametrize(
    ("fate", "code"),
    [
        ({"status": "failed", "error": {"code": 1026, "message": "sensitive"}}, "CONTENT_POLICY_VIOLATION"),
        ({"status": "failed", "error": {"code": "1000", "message": "unknown error"}}, "UPSTREAM_ERROR"),
        ({"status": "expired"}, "UPSTREAM_ERROR"),
        ({"status": "succeeded", "content": None}, "UPSTREAM_ERROR"),
    ],
)
async def test_failures_of_h3(open_gateway: OpenGateway, fate: dict[str, Any], code: str) -> None:
    provider = MiniMax()
    provider.next_states.append(("queued", fate))
    async with gateway_for(open_gateway, "minimax", provider) as running:
        video = await create_video(running, model="minimax/h3", seconds=5)
        assert (video["status"], video["error"]["code"]) == ("failed", code)


@pytest.mark.parametrize(
    ("code", "ours"),
    [
        (1026, "CONTENT_POLICY_VIOLATION"),
        (1002, None),
        (1008, "ALL_PROVIDERS_EXHAUSTED"),
        (2049, "ALL_PROVIDERS_EXHAUSTED"),
    ],
)
async def test_a_submission_refused_with_status_200(open_gateway: OpenGateway, code: int, ours: str | None) -> None:
    """A provider that is only busy is tried again."""
    provider = MiniMax()
    provider.next("create", responds({"task_id": "", "base_resp": base(code, "no")}))
    async with gateway_for(open_gateway, "minimax", provider) as running:
        video = await create_video(running, model="hailuo-2.3", seconds=6)
        assert (video["error"] or {}).get("code") == ours


@pytest.mark.parametrize(
    ("kind", "status", "ours"),
    [
        ("unprocessable_entity_error", 422, "CONTENT_POLICY_VIOLATION"),
        ("insufficient_balance_error", 402, "UPSTREAM_ERROR"),
        ("bad_request_error", 400, "UPSTREAM_ERROR"),
    ],
)
async def test_a_refused_submission_to_h3(open_gateway: OpenGateway, kind: str, status: int, ours: str) -> None:
    provider = MiniMax()
    provider.next("create_2", responds(problem(kind, "no (1026)", status), status))
    async with gateway_for(open_gateway, "minimax", provider) as running:
        assert (await create_video(running, model="minimax/h3", seconds=5))["error"]["code"] == ours


async def test_a_failed_poll_does_not_fail_the_task(open_gateway: OpenGateway) -> None:
    """Under status 200, as everything that the first API has to say."""
    provider = MiniMax()
    busy = responds({"base_resp": base(1002, "rate limit")})
    provider.next("show", busy)
    provider.next("retrieve", busy, busy)
    async with gateway_for(open_gateway, "minimax", provider) as running:
        assert (await create_video(running, model="hailuo-2.3", seconds=6))["status"] == "completed"
    assert (len(provider.received("create")), len(provider.received("retrieve"))) == (1, 3)


async def test_cancel(open_gateway: OpenGateway) -> None:
    provider = MiniMax(usual=("queued",))
    async with gateway_for(open_gateway, "minimax", provider) as running:
        started = await running.video(model="minimax/h3", seconds=5)
        await provider.endpoints["create_2"].reached(1)
        await running.cancel(started.json["id"])
        assert (await running.wait_for_request(started.json["id"]))["status"] == "cancelled"
    assert [job.cancelled for job in provider.jobs.values()] == [True]
