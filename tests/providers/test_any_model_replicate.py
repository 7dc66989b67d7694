"""Any public model of Replicate: by its name or a version, at a price that the operator sets."""

import base64
import json
from decimal import Decimal
from typing import Any

import pytest

from penstock.api.endpoints import models
from penstock.errors import InvalidRequest, ModelDisabled, ModelNotFound, StorageUnavailable
from penstock.generation_jobs.finish import fail
from penstock.providers.replicate.predictions import output_urls, read_prediction
from penstock.providers.spec import Reply
from penstock.values import nanos
from tests.fake_providers.replicate_catalogue import STORED, ReplicateWithCatalogue
from tests.fake_providers.scripted import mp4
from tests.gateway import OpenGateway
from tests.providers.calls import create_image, create_video, edit_image
from tests.providers.replicate_gateway import with_replicate

LIGHTNING = "bytedance/sdxl-lightning-4step"
ULTRA = "black-forest-labs/flux-1.1-pro-ultra"
PRICED = {"replicate/*": {"price": {"unit": "compute_second", "usd": "0.001", "max_seconds": 60}}}
both = pytest.mark.parametrize("dialect", ["sqlite", "postgres"])


async def test_models_by_version_and_by_name_are_billed_by_the_time_of_the_machine(open_gateway: OpenGateway) -> None:
    replicate = ReplicateWithCatalogue(ULTRA)
    async with with_replicate(open_gateway, replicate, models=PRICED) as running:
        before, _ = await running.money()
        made = await create_image(running, model=f"replicate/{LIGHTNING}", size="1024x1024", n=2, guidance_scale=1.5)
        assert made["status"] == "completed"
        sent = replicate.received("create_by_version")[0].fields
        assert sent == {
            "version": STORED[LIGHTNING]["latest_version"]["id"],
            "input": {
                "prompt": "a pear",
                "width": 1024,
                "height": 1024,
                "num_outputs": 2,
                "guidance_scale": 1.5,
            },
        }
        assert before - (await running.money())[0] == nanos("0.0025")  # 2.5 seconds
        assert (await create_image(running, model=f"replicate/{ULTRA}", prompt="a fox"))["status"] == "completed"
        assert replicate.received("create")[0].fields["input"]["output_format"] == "png"
        pinned = f"replicate/{LIGHTNING}:{'f' * 64}"
        assert (await create_image(running, model=pinned, prompt="a fox"))["status"] == "completed"
        assert replicate.received("create_by_version")[1].fields["version"] == "f" * 64
        with pytest.raises(InvalidRequest, match=r"`guidance_scale` of replicate/.* must be from 0 to 50"):
            await running.image(model=f"replicate/{LIGHTNING}", prompt="a fox", guidance_scale=51)


def after_seconds(state: str, seconds: float, **changes: Any) -> dict[str, Any]:
    return {"status": state, "metrics": {"predict_time": seconds}, **changes}


@both
@pytest.mark.parametrize(
    "end",
    [
        after_seconds("failed", 59, error="RuntimeError: no pear"),
        after_seconds("failed", 59, error="NSFW content detected"),
        after_seconds("canceled", 59),
        after_seconds("succeeded", 59, output=None),
        after_seconds("succeeded", 59, output="https://127.0.0.1:1/gone.png"),
    ],
    ids=["failed", "refused", "cancelled", "without a file", "with a file that is not there"],
)
async def test_the_time_of_the_machine_is_charged_for_jobs_that_fail(open_gateway: OpenGateway, end: Any) -> None:
    """The model is the caller's own choice, and may be its own program."""
    replicate = ReplicateWithCatalogue()
    replicate.next_states.append(("starting", "processing", end))
    async with with_replicate(open_gateway, replicate, models=PRICED) as running:
        before, _ = await running.money()
        record = await create_image(running, model=f"replicate/{LIGHTNING}", size="1024x1024")
        assert record["status"] == "upstream_failure"
        assert await running.money() == (before - nanos("0.059"), 0)
        assert Decimal(str(record["cost"])) == Decimal("0.059")
        assert [line["metric"] for line in record["cost_lines"]] == ["failed_jobs"]
        assert not await running.rows("SELECT * FROM transfers WHERE kind = 'loss'")


@both
@pytest.mark.parametrize("is_late", [False, True], ids=["at once", "a moment later"])
async def test_the_time_of_the_machine_is_charged_for_cancelled_jobs(open_gateway: OpenGateway, is_late: bool) -> None:
    replicate = ReplicateWithCatalogue()
    replicate.video_words = ("minimax",)
    replicate.next_states.append(("processing",))
    replicate.cancelled = [*["processing"] * 3 * is_late, after_seconds("canceled", 59)]
    async with with_replicate(open_gateway, replicate, models=PRICED) as running:
        before, _ = await running.money()
        video = (await running.video(model="replicate/minimax/video-01", prompt="a fox", seconds=None)).json

        async def is_submitted() -> bool:
            return [row["state"] for row in await running.attempts(video["id"])] == ["submitted"]

        await running.wait_until(is_submitted)
        await running.cancel(video["id"])
        record = await running.wait_for_request(video["id"])
        assert record["status"] == "cancelled"
        assert await running.money() == (before - nanos("0.059"), 0)
        assert [row["state"] for row in await running.attempts(video["id"])] == ["cancelled"]


@both
async def test_the_time_of_the_machine_is_charged_after_a_timeout(open_gateway: OpenGateway) -> None:
    replicate = ReplicateWithCatalogue()
    replicate.next_states.append(("processing",))
    replicate.cancelled = [after_seconds("canceled", 59)]
    async with with_replicate(open_gateway, replicate, models=PRICED, job_deadline_seconds=60) as running:
        before, _ = await running.money()
        record = await create_image(running, model=f"replicate/{LIGHTNING}", size="1024x1024")
        assert record["error_code"] == "UPSTREAM_TIMEOUT"
        assert await running.money() == (before - nanos("0.059"), 0)


@both
async def test_time_that_is_reported_after_the_call_has_ended_is_a_loss(open_gateway: OpenGateway) -> None:
    replicate = ReplicateWithCatalogue()
    replicate.next_states.append(("processing",))
    replicate.cancelled = ["processing"]
    async with with_replicate(open_gateway, replicate, models=PRICED, job_deadline_seconds=60) as running:
        before, _ = await running.money()
        record = await create_image(running, model=f"replicate/{LIGHTNING}", size="1024x1024")
        assert await running.money() == (before, 0)
        (job,) = replicate.jobs.values()
        job.states.append(after_seconds("canceled", 59))

        async def booked() -> bool:
            return bool(await running.rows("SELECT ref FROM transfers WHERE kind = 'loss'"))

        await running.wait_until(booked, step_seconds=10)
        (loss,) = await running.rows("SELECT amount FROM transfers WHERE kind = 'loss'")
        assert loss["amount"] == nanos("0.059")
        assert (await running.record(record["id"]))["cost"] == 0


@both
async def test_a_failure_costs_no_more_than_was_held(open_gateway: OpenGateway) -> None:
    replicate = ReplicateWithCatalogue()
    replicate.next_states.append((after_seconds("failed", 90, error="out of memory"),))
    async with with_replicate(open_gateway, replicate, models=PRICED) as running:
        before, _ = await running.money()
        await create_image(running, model=f"replicate/{LIGHTNING}", size="1024x1024")
        assert await running.money() == (before - nanos("0.06"), 0)
        losses = await running.rows("SELECT amount FROM transfers WHERE kind = 'loss'")
        assert losses == [{"amount": nanos("0.03")}]


@both
async def test_a_failure_is_charged_once_when_its_end_is_stored_the_second_time(
    open_gateway: OpenGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The job is read again from the store: its attempt has a cost, and no loss."""
    replicate = ReplicateWithCatalogue()
    replicate.next_states.append((after_seconds("failed", 59, error="out of memory"),))
    calls: list[Any] = []

    async def fail_later(*args: Any) -> None:
        calls.append(args)
        if len(calls) == 1:
            raise StorageUnavailable("not now")
        await fail(*args)

    monkeypatch.setattr("penstock.generation_jobs.run.fail", fail_later)
    async with with_replicate(open_gateway, replicate, models=PRICED) as running:
        before, _ = await running.money()
        await create_image(running, model=f"replicate/{LIGHTNING}", size="1024x1024")
        assert len(calls) == 2
        assert await running.money() == (before - nanos("0.059"), 0)


async def test_an_owner_is_allowed_instead_of_everything(open_gateway: OpenGateway) -> None:
    replicate = ReplicateWithCatalogue()
    written = {
        "replicate/*": {"enabled": False},
        "replicate/bytedance/*": {"enabled": True, **PRICED["replicate/*"]},
        "replicate/minimax/video-01": {"enabled": True, "price": {"unit": "call", "usd": "0.5"}},
    }
    async with with_replicate(open_gateway, replicate, models=written) as running:
        before, _ = await running.money()
        assert (await create_image(running, model=f"replicate/{LIGHTNING}", size="1024x1024"))["status"] == "completed"
        assert before - (await running.money())[0] == nanos("0.0025")
        with pytest.raises(ModelDisabled, match="switched off"):
            await running.image(model="replicate/lucataco/remove-bg", prompt="a fox")
        assert not replicate.received("model")[1:], "the catalogue is not asked about what is switched off"
        replicate.video_words = ("minimax",)
        video = await create_video(running, model="replicate/minimax/video-01", prompt="a fox", seconds=None)
        assert video["status"] == "completed"


async def test_a_video_is_uploaded_and_upscaled(open_gateway: OpenGateway) -> None:
    replicate = ReplicateWithCatalogue()
    replicate.video_words = ("real-esrgan-video", STORED["lucataco/real-esrgan-video"]["latest_version"]["id"])
    video = {"video_url": "data:video/mp4;base64," + base64.b64encode(mp4(2)).decode()}
    async with with_replicate(open_gateway, replicate, models=PRICED) as running:
        made = await create_video(
            running, model="replicate/lucataco/real-esrgan-video", prompt=None, input_reference=video, resolution="4K"
        )
    assert (made["status"], made["seconds"]) == ("completed", "2")
    sent = replicate.received("create_by_version")[0].fields["input"]
    assert sent["resolution"] == "4k"
    assert replicate.uploads[sent["video_path"]] == mp4(2)


async def test_edits_and_videos(open_gateway: OpenGateway) -> None:
    replicate = ReplicateWithCatalogue()
    replicate.video_words = ("minimax",)
    async with with_replicate(open_gateway, replicate, models=PRICED) as running:
        assert (await edit_image(running, model="replicate/lucataco/remove-bg", prompt=None))["status"] == "completed"
        assert replicate.received("create_by_version")[0].fields["input"]["image"] in replicate.uploads
        video = await create_video(running, model="replicate/minimax/video-01", prompt="a fox", seconds=None)
        assert video["status"] == "completed"


async def test_prices_and_searches(open_gateway: OpenGateway) -> None:
    """Community models are billed by the second of their machine; what an official model costs, only its page says."""
    replicate = ReplicateWithCatalogue(ULTRA)
    async with with_replicate(open_gateway, replicate) as running:
        before, _ = await running.money()
        made = await create_image(running, model=f"replicate/{LIGHTNING}", prompt="a fox")
        assert made["status"] == "completed"
        assert before - (await running.money())[0] == nanos("0.0038125")  # 2.5 seconds
        with pytest.raises(ModelDisabled, match="Replicate publishes no price"):
            await running.image(model=f"replicate/{ULTRA}", prompt="a fox")
        for _ in range(2):
            with pytest.raises(ModelNotFound, match="has no such model"):
                await running.image(model="replicate/nobody/nothing", prompt="a fox")
        call = running.call(endpoint="/compat/v1/models", query={"provider": "replicate", "search": "esrgan"})
        found = (await models.list_models(running.gateway, call)).json["data"]
        assert "replicate/nightmareai/real-esrgan" in [model["id"] for model in found]


def test_of_many_outputs_and_of_long_logs_little_is_read() -> None:
    """Anybody can publish a model that makes them, and call it; others wait meanwhile."""
    assert len(output_urls([["https://files.test/a"] * 1000] * 1000)) == 100
    prediction = {"id": "a", "status": "processing", "logs": " 50%|#####" + "." * 5000}
    reply = Reply(200, {}, json.dumps(prediction).encode())
    assert read_prediction(reply).progress is None
    short = {**prediction, "logs": "." * 5000 + " 50%|#####"}
    assert read_prediction(Reply(200, {}, json.dumps(short).encode())).progress == 0.5
