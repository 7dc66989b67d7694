"""DashScope: its own client against the fake provider, then the gateway."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.fake_providers.dashscope import DashScope, failed, problem
from tests.fake_providers.scripted import KEY, mp4
from tests.fake_providers.server import responds, serve_in_thread
from tests.gateway import OpenGateway
from tests.providers.calls import IMAGE_URI, create_video, gateway_for

# ------------------------------------------------------------------------------------------------------ its own client


@pytest.fixture
def provider() -> Iterator[DashScope]:
    with serve_in_thread(DashScope()) as provider:
        yield provider


@pytest.fixture
def client(provider: DashScope, monkeypatch: pytest.MonkeyPatch) -> Any:
    import dashscope  # takes longer than the tests of most providers, so only who needs it waits for it

    monkeypatch.setattr(dashscope, "base_http_api_url", f"{provider.url}/api/v1")
    return dashscope.VideoSynthesis


def test_client_makes_a_video(provider: DashScope, client: Any) -> None:
    task = client.async_call(
        model="wan2.7-i2v", prompt="a fox", media=[{"type": "first_frame", "url": IMAGE_URI}], duration=5, api_key=KEY
    )
    assert (task.status_code, task.output.task_status) == (200, "PENDING")
    states = [client.fetch(task, api_key=KEY).output.task_status for _ in range(2)]
    assert states == ["RUNNING", "SUCCEEDED"]
    assert client.fetch(task, api_key=KEY).output.video_url
    received = provider.received("create")[0].fields
    assert received["input"]["media"] == [{"type": "first_frame", "url": IMAGE_URI}]
    assert received["parameters"]["duration"] == 5


def test_client_cancels_and_sees_failures(provider: DashScope, client: Any) -> None:
    provider.next_states.extend([("PENDING",), ("PENDING", failed("DataInspectionFailed"))])
    first, second = (client.async_call(model="wan2.6-t2v", prompt="a fox", duration=5, api_key=KEY) for _ in range(2))
    assert client.cancel(first, api_key=KEY).status_code == 200
    assert client.fetch(first, api_key=KEY).output.task_status == "CANCELED"
    assert client.fetch(second, api_key=KEY).output.code == "DataInspectionFailed"
    assert client.fetch("elsewhere", api_key=KEY).output.task_status == "UNKNOWN"


# ---------------------------------------------------------------------------------------------------------- the gateway


@pytest.mark.parametrize(
    ("model", "fields", "expected", "cost"),
    [
        ("wan-2.6", {"seconds": 4}, {"size": "1280*720", "duration": 5}, "0.5"),
        (
            "happyhorse-1.1",
            {"seconds": 3, "resolution": "1080p"},
            {"ratio": "16:9", "resolution": "1080P", "duration": 3},
            "0.54",
        ),
        ("wan-2.6", {"seconds": 10, "size": "1080x1920"}, {"size": "1080*1920", "duration": 10}, "1.5"),
        ("wan-2.7", {"seconds": 2}, {"ratio": "16:9", "resolution": "720P", "duration": 2}, "0.2"),
        (
            "wan-2.7",
            {"seconds": 2, "size": "1920x1080"},
            {"ratio": "16:9", "resolution": "1080P", "duration": 2},
            "0.3",
        ),
        ("wan-3", {"seconds": 4, "size": "832x480"}, {"ratio": "16:9", "resolution": "480P", "duration": 4}, "0.2"),
        ("wan-3-prime", {"seconds": 3, "size": "9:16"}, {"ratio": "9:16", "resolution": "720P", "duration": 3}, "0.42"),
    ],
)
async def test_videos(open_gateway: OpenGateway, model: str, fields: dict[str, Any], expected: Any, cost: str) -> None:
    provider = DashScope()
    async with gateway_for(open_gateway, "dashscope", provider) as running:
        video = await create_video(running, model=model, watermark=False, **fields)
        assert (video["status"], video["output"]["size_bytes"]) == ("completed", len(mp4()))
        assert str(video["metadata"]["cost"]) == cost
    received = provider.received("create")[0].fields
    assert received["input"] == {"prompt": "a train"}
    assert received["parameters"] == {"watermark": False, **expected}


@pytest.mark.parametrize(
    ("model", "count", "expected"),
    [
        ("wan-2.6", 1, {"img_url": IMAGE_URI}),
        ("wan-2.7", 1, {"media": ["first_frame"]}),
        ("wan-2.7", 2, {"media": ["first_frame", "last_frame"]}),
        ("wan-3", 2, {"media": ["first_frame", "last_frame"]}),
        ("wan-3", 3, {"media": ["reference_image"] * 3}),
    ],
)
async def test_videos_of_images(open_gateway: OpenGateway, model: str, count: int, expected: dict[str, Any]) -> None:
    provider = DashScope()
    async with gateway_for(open_gateway, "dashscope", provider) as running:
        video = await create_video(running, model=model, seconds=5, input_reference=[{"image_url": IMAGE_URI}] * count)
        assert (video["status"], str(video["metadata"]["cost"])) == ("completed", "0.5")
    received = provider.received("create")[0].fields["input"]
    if "media" in expected:
        expected = {"media": [{"type": role, "url": IMAGE_URI} for role in expected["media"]]}
    assert received == {"prompt": "a train", **expected}


async def test_what_to_avoid(open_gateway: OpenGateway) -> None:
    provider = DashScope()
    async with gateway_for(open_gateway, "dashscope", provider) as running:
        assert (await create_video(running, model="wan-2.7", seconds=5, negative_prompt="rain"))[
            "status"
        ] == "completed"
        with pytest.raises(Exception, match="`negative_prompt` is not supported by wan-3"):
            await running.video(model="wan-3", seconds=5, negative_prompt="rain")
    assert provider.received("create")[0].fields["input"]["negative_prompt"] == "rain"


async def test_seconds_that_were_made_are_what_is_paid_for(open_gateway: OpenGateway) -> None:
    provider = DashScope()
    provider.made_seconds = 3
    async with gateway_for(open_gateway, "dashscope", provider) as running:
        assert str((await create_video(running, model="wan-2.7", seconds=5))["metadata"]["cost"]) == "0.3"


@pytest.mark.parametrize(
    ("fate", "code"),
    [
        (failed("DataInspectionFailed"), "CONTENT_POLICY_VIOLATION"),
        (failed("IPInfringementSuspect"), "CONTENT_POLICY_VIOLATION"),
        (failed("InternalError.Algo"), "ALL_PROVIDERS_EXHAUSTED"),
        ({"task_status": "SUCCEEDED", "video_url": ""}, "ALL_PROVIDERS_EXHAUSTED"),
        ("CANCELED", "ALL_PROVIDERS_EXHAUSTED"),
    ],
)
async def test_failures(open_gateway: OpenGateway, fate: Any, code: str) -> None:
    provider = DashScope()
    provider.next_states.append(("PENDING", fate))
    async with gateway_for(open_gateway, "dashscope", provider) as running:
        video = await create_video(running, model="wan-2.7", seconds=5)
        assert (video["status"], video["error"]["code"]) == ("failed", code)
        assert await running.money() == (10_000_000_000, 0)


@pytest.mark.parametrize(
    ("response", "status", "code"),
    [
        (
            problem("DataInspectionFailed", "Input data may contain inappropriate content."),
            400,
            "CONTENT_POLICY_VIOLATION",
        ),
        (
            problem("DataInspectionFailed", "Input data may contain inappropriate content."),
            200,
            "CONTENT_POLICY_VIOLATION",
        ),
        (problem("Throttling.RateQuota", "Requests rate limit exceeded."), 429, None),
        (problem("Arrearage", "Access denied, account in arrears."), 400, "ALL_PROVIDERS_EXHAUSTED"),
        (problem("InvalidApiKey", "Invalid API-key provided."), 401, "ALL_PROVIDERS_EXHAUSTED"),
    ],
)
async def test_a_refused_submission(
    open_gateway: OpenGateway, response: dict[str, Any], status: int, code: str | None
) -> None:
    """A provider that is only busy is tried again."""
    provider = DashScope()
    provider.next("create", responds(response, status))
    async with gateway_for(open_gateway, "dashscope", provider) as running:
        video = await create_video(running, model="wan-2.7", seconds=5)
        assert (video["error"] or {}).get("code") == code


async def test_a_failed_poll_does_not_fail_the_task(open_gateway: OpenGateway) -> None:
    provider = DashScope()
    provider.next("show", responds(problem("Throttling", "Slow down.")), responds(problem("InternalError", "Oh."), 500))
    async with gateway_for(open_gateway, "dashscope", provider) as running:
        assert (await create_video(running, model="wan-2.7", seconds=5))["status"] == "completed"
    assert len(provider.received("create")) == 1


async def test_a_lost_task_is_not_submitted_again(open_gateway: OpenGateway) -> None:
    """DashScope calls its state unknown. It may have been made and billed, so no other provider is tried."""
    provider = DashScope()
    provider.next_states.append(("PENDING", "UNKNOWN"))
    async with gateway_for(open_gateway, "dashscope", provider) as running:
        started = await running.video(model="wan-2.7", seconds=5)
        video = await running.wait_for_video(started.json["id"], step_seconds=600)
        assert (video["status"], video["error"]["code"]) == ("failed", "UPSTREAM_OUTCOME_UNKNOWN")
    assert len(provider.received("create")) == 1


@pytest.mark.parametrize(
    ("usual", "ended"), [(("PENDING",), "cancelled"), (("RUNNING", "RUNNING", "RUNNING", "SUCCEEDED"), "completed")]
)
async def test_cancel(open_gateway: OpenGateway, usual: tuple[str, ...], ended: str) -> None:
    """Only what still waits can be called off; the rest is made, delivered and paid for."""
    provider = DashScope(usual=usual)
    async with gateway_for(open_gateway, "dashscope", provider) as running:
        started = await running.video(model="wan-2.7", seconds=5)
        await provider.endpoints["create"].reached(1)
        await running.cancel(started.json["id"])
        assert (await running.wait_for_request(started.json["id"]))["status"] == ended
    assert len(provider.received("cancel")) == 1
