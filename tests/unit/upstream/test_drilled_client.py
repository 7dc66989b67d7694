"""Faults that a call asks for: what the gateway then does is the real thing, and what is simulated calls nobody."""

import asyncio
from typing import Any

import msgspec
import pytest

from penstock.accounts.audit import count_orphans
from penstock.chat.endpoint import complete_chat
from penstock.errors import AllProvidersExhausted, Problem, RateLimited, UpstreamError, UpstreamTimeout
from penstock.generations import endpoints
from penstock.models.performance import PerformanceReader
from penstock.speech.endpoint import create_speech
from penstock.upstream.faults import with_drill
from penstock.values import nanos
from tests.fake_providers.faults import rejected
from tests.gateway import OpenGateway, RunningGateway, sqlite_only
from tests.unit.telemetry.rendering import rendered
from tests.unit.transcription.listen_calls import listen

UNTOUCHED = (nanos("10"), 0)


async def image(running: RunningGateway, faults: str, **more: Any) -> Any:
    return await running.image(headers={"x-service-fault": faults}, **more)


async def video(running: RunningGateway, faults: str, **more: Any) -> str:
    body = {"model": "video-1", "prompt": "a train", "seconds": 4, **more}
    call = running.call(body, headers={"x-service-fault": faults})
    return str((await endpoints.start_video(running.gateway, call)).json["id"])


async def chat(running: RunningGateway, faults: str, *, stream: bool = False) -> Any:
    body = {"model": "lab/chat", "messages": [{"role": "user", "content": "hello"}], "stream": stream}
    headers = {"x-service-fault": faults}
    call = running.call(body, endpoint="/compat/v1/chat/completions", headers=headers)
    return await complete_chat(running.gateway, call)


async def test_a_provider_that_is_down_is_not_called_and_the_next_one_serves(open_gateway: OpenGateway) -> None:
    async with open_gateway(annex=True) as running:
        made = await image(running, "lab=503")
        assert made["metadata"]["provider"] == "annex"
        assert (running.lab.submits, running.annex.submits) == (0, 1)
        (row,) = await running.records()
        assert (await running.record(row["id"]))["drill"] == "lab=503"
        failed = [attempt for attempt in await running.attempts(row["id"]) if attempt["state"] == "failed"]
        assert [attempt["provider"] for attempt in failed] == ["lab"]
        assert failed[0]["failure_message"].endswith("(simulated: the call asked for it by X-Service-Fault)")
        await running.image()
        assert {row["drill"] for row in await running.records()} == {"lab=503", None}


async def test_a_drill_changes_nothing_for_other_calls(open_gateway: OpenGateway) -> None:
    """Neither the health of the provider nor what is known of its speed; nor do others have the faults."""
    async with open_gateway(annex=True) as running:
        for _ in range(4):
            await image(running, "lab=500")
            await chat(running, "lab=500")
        assert {row["provider"] for row in running.gateway.health.report()} == {"annex"}
        assert 'provider="lab"' not in rendered(running.gateway.metrics)
        reader = PerformanceReader(running.gateway.store, running.clock)
        for task in ("image", "chat"):
            assert not await reader.read(task, running.caller.org_id)
        other = await running.create_caller_in_new_org()
        assert (await running.image(caller=other))["metadata"]["provider"] == "lab"
        assert (await running.image())["metadata"]["provider"] == "lab"


@sqlite_only
async def test_a_chat_fails_over_and_its_record_says_that_it_was_a_drill(open_gateway: OpenGateway) -> None:
    async with open_gateway(annex=True) as running:
        for stream in (False, True):
            response = await chat(running, "lab=unreachable", stream=stream)
            if response.chunks:
                _ = [chunk async for chunk in response.chunks]
            assert response.headers["x-service-executed-model"].startswith("annex/")
        await running.gateway.chat_settlement.catch_up(running.caller.org_id)
        rows = await running.records()
        assert [row["drill"] for row in rows] == ["lab=unreachable"] * 2
        assert all(msgspec.json.decode(row["attempts"])[0][4] == "unsent" for row in rows)
        assert running.lab.invoice == []


@sqlite_only
@pytest.mark.parametrize(
    ("fault", "problem"),
    [
        ("503", AllProvidersExhausted),
        ("429", RateLimited),
        ("unreachable", AllProvidersExhausted),
        ("lost-after-submit", UpstreamError),
    ],
)
async def test_a_call_that_nobody_serves_is_not_charged(
    open_gateway: OpenGateway, fault: str, problem: type[Exception]
) -> None:
    async with open_gateway() as running:
        failing = asyncio.create_task(image(running, f"image={fault}"))

        async def met() -> bool:
            return failing.done()

        await running.wait_until(met)
        with pytest.raises(problem, match="simulated"):
            await failing
        assert running.lab.submits == 0
        assert await running.money() == UNTOUCHED


async def test_a_video_waits_until_the_fault_is_over(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        started_ms = running.clock.now_ms()
        video_id = await video(running, "lab=503 for 60s")
        done = await running.wait_for_video(video_id)
        assert done["status"] == "completed"
        assert running.clock.now_ms() - started_ms >= 60_000
        assert len(running.lab.invoice) == 1
        assert {row["state"] for row in (await running.attempts(video_id))[:-1]} == {"failed"}


async def test_a_video_whose_submission_is_lost_is_not_sent_again(open_gateway: OpenGateway) -> None:
    async with open_gateway(annex=True) as running:
        done = await running.wait_for_video(await video(running, "video=lost-after-submit"))
        assert (done["status"], done["error"]["code"]) == ("failed", "UPSTREAM_OUTCOME_UNKNOWN")
        assert (running.lab.submits, running.annex.submits) == (0, 0)
        assert await running.money() == UNTOUCHED
        assert await count_orphans(running.gateway.store) == (0, 0)


@sqlite_only
async def test_a_restart_keeps_the_faults_of_a_job(open_gateway: OpenGateway) -> None:
    async with open_gateway(works=False) as running:
        labs = (running.lab, running.annex)
        video_id = await video(running, "lab=503")
    async with open_gateway(labs=labs) as running:

        async def met() -> bool:
            return len(await running.attempts(video_id)) >= 2

        await running.wait_until(met)
        assert running.lab.submits == 0
        assert (await running.cancel(video_id)).status == 204
        await running.wait_for_request(video_id)


@sqlite_only
async def test_a_slow_provider_is_called_and_its_job_takes_longer(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:

        async def seconds(faults: str) -> float:
            begun = running.clock.monotonic()
            assert (await running.wait_for_video(await video(running, faults)))["status"] == "completed"
            return running.clock.monotonic() - begun

        usual = await seconds("chat=503")
        assert await seconds("lab=slow 100s") > usual + 90
        assert len(running.lab.invoice) == 2


@sqlite_only
async def test_a_provider_that_is_slower_than_it_may_be_times_out(open_gateway: OpenGateway) -> None:
    async with open_gateway(upstream_seconds=20) as running:
        slow = asyncio.create_task(image(running, "image=slow 30s"))

        async def met() -> bool:
            return slow.done()

        await running.wait_until(met)
        with pytest.raises(UpstreamTimeout, match="simulated"):
            await slow
        assert running.lab.submits == 1


@sqlite_only
async def test_a_cancelled_job_cannot_be_cancelled_at_a_provider_that_is_down(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        candidate = running.gateway.catalog.find("video-1", ("video",))[0][0]
        down = with_drill(candidate, "lab=503", "video", running.clock, running.clock.now_ms())
        assert await running.gateway.upstream.cancel(down, {"id": "job_1"}) is False


@sqlite_only
async def test_what_is_heard_fails_over_too(open_gateway: OpenGateway) -> None:
    headers = {"x-service-fault": "lab=unreachable"}
    async with open_gateway(annex=True) as running:
        transcribed = await listen(running, headers={"x-service-fault": "lab=429"})
        assert transcribed.headers["x-service-executed-model"].startswith("annex/")
        body = {"model": "lab/voice", "input": "good morning", "voice": "alloy"}
        call = running.call(body, endpoint="/compat/v1/audio/speech", headers={**headers, "accept": "application/json"})
        kept = await create_speech(running.gateway, call)
        assert kept.headers["x-service-executed-model"].startswith("annex/")
        call = running.call(body, endpoint="/compat/v1/audio/speech", headers={"x-service-fault": "lab=500"})
        spoken = await create_speech(running.gateway, call)
        assert spoken.headers["x-service-executed-model"].startswith("annex/")
        assert spoken.chunks is not None
        _ = [chunk async for chunk in spoken.chunks]
        assert running.lab.invoice == []
        await running.gateway.chat_settlement.catch_up(running.caller.org_id)
        assert all(row["drill"] for row in await running.records())


@sqlite_only
async def test_an_error_of_a_transcription_is_read_as_one(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        with pytest.raises(Problem, match=r"HTTP 502.*simulated"):
            await listen(running, headers={"x-service-fault": "speech=502"})


@pytest.mark.parametrize("ends", ["completed", "failed", "cancelled"])
async def test_the_webhook_of_a_video_is_dropped_however_it_ends(open_gateway: OpenGateway, ends: str) -> None:
    is_run = ends != "cancelled"
    async with open_gateway(works=is_run, worker=is_run) as running:
        if ends == "failed":
            running.lab.videos.always(rejected)
        video_id = await video(running, "webhook=drop 20", webhook_url="https://receiver.example/hook")
        if ends == "cancelled":
            assert (await running.cancel(video_id)).status == 204
        else:
            assert (await running.wait_for_video(video_id))["status"] == ends
        (message,) = await running.rows("SELECT event, drops FROM messages")
        assert (message["event"], message["drops"]) == (f"video.{ends}", 20)
