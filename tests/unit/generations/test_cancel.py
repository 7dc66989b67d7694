"""Cancelling a video: at once before anything was sent, through the provider afterwards."""

import asyncio
from decimal import Decimal

import pytest

from penstock.errors import NotFound
from penstock.generation_jobs import polling
from penstock.generation_jobs.job import Job
from penstock.generations.cancel import cancel_video
from penstock.values import nanos
from tests.fake_providers import faults
from tests.gateway import OpenGateway, sqlite_only, two_providers
from tests.unit.generations.running_video import start_video

HOOK = "https://receiver.example/hook"


async def test_cancelling_before_anything_was_sent(open_gateway: OpenGateway) -> None:
    async with open_gateway(works=False, worker=False) as running:
        video_id = (await running.video(webhook_url=HOOK)).json["id"]
        assert (await running.cancel(video_id)).status == 204
        shown = await running.get_video(video_id)
        assert (shown["status"], shown["error"]["code"]) == ("failed", "CANCELLED")
        assert "cost_estimate" not in shown["metadata"]
        record = await running.record(video_id)
        assert (record["status"], record["cost"], record["error_code"]) == ("cancelled", 0, "CANCELLED")
        assert await running.money() == (nanos("10"), 0)
        (message,) = await running.rows("SELECT event FROM messages")
        assert message["event"] == "video.cancelled"
        assert running.lab.submits == 0


async def test_cancelling_while_a_provider_works(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        running.lab.videos.always(faults.never_ends)
        video_id = (await running.video(webhook_url=HOOK)).json["id"]
        await running.lab.videos.reached(1)
        await asyncio.gather(*(running.cancel(video_id) for _ in range(20)))
        record = await running.wait_for_request(video_id)
        assert (record["status"], record["cost"]) == ("cancelled", 0)
        assert running.lab.invoice == []
        assert await running.money() == (nanos("10"), 0)
        assert len(await running.rows("SELECT id FROM messages")) == 1


@sqlite_only
async def test_a_cancel_requested_while_no_process_runs_is_done_at_the_start(open_gateway: OpenGateway) -> None:
    async with two_providers() as labs:
        async with open_gateway(labs=labs) as running:
            video_id = await start_video(running)
        async with open_gateway(labs=labs, works=False, worker=False) as running:
            await running.cancel(video_id)
        async with open_gateway(labs=labs) as running:
            record = await running.wait_for_request(video_id)
        assert (record["status"], len(labs[0].cancels)) == ("cancelled", 1)


@sqlite_only
async def test_the_store_is_asked_for_a_cancel_only_by_jobs_that_were_woken(
    open_gateway: OpenGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There are thousands of jobs, and each is polled every few seconds."""
    asked: list[str] = []

    async def observed(_: object, job: Job) -> bool:
        asked.append(job.id)
        return False

    monkeypatch.setattr(polling, "is_cancel_requested", observed)
    async with open_gateway() as running:
        running.lab.videos.next(faults.video_states("queued", "queued", "in_progress 10", "completed"))
        quiet = (await running.video()).json["id"]
        await running.wait_for_video(quiet)
        assert asked == []
        woken = (await running.video()).json["id"]
        running.gateway.jobs.wake(woken)
        await running.wait_for_video(woken)
        assert set(asked) == {woken}


@sqlite_only
async def test_a_video_is_completed_when_the_provider_refuses_the_cancel(open_gateway: OpenGateway) -> None:
    """It is completed and charged."""
    async with open_gateway() as running:
        running.lab.cancels.always(faults.broken)
        video_id = (await running.video()).json["id"]
        await running.lab.videos.reached(1)
        await running.cancel(video_id)
        done = await running.wait_for_video(video_id)
        assert (done["status"], done["metadata"]["cost"]) == ("completed", Decimal("0.4"))


@sqlite_only
async def test_a_video_that_completed_before_the_cancel_stays_completed(open_gateway: OpenGateway) -> None:
    """The provider accepts the cancel and then reports the job as completed."""
    async with open_gateway() as running:
        running.lab.videos.next(faults.video_states("queued", "completed"))
        running.lab.cancels.always(faults.file(b"{}", "application/json"))
        video_id = (await running.video()).json["id"]
        await running.lab.videos.reached(1)
        await running.cancel(video_id)
        assert (await running.wait_for_video(video_id))["status"] == "completed"


@sqlite_only
async def test_the_response_is_empty_unless_the_caller_prefers_an_object(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        responses = []
        wanted = {"accept": "application/json", "prefer": "return=representation", "x-stainless-lang": "js"}
        for name, value in wanted.items():
            video_id = (await running.video()).json["id"]
            call = running.call(headers={name: value}, id=video_id)
            responses.append(await cancel_video(running.gateway, call))
        assert [response.status for response in responses] == [204, 200, 200]
        assert [(response.json or {}).get("object") for response in responses] == [
            None,
            "video.deleted",
            "video.deleted",
        ]
        assert responses[1].headers["preference-applied"] == "return=representation"


async def test_cancelling_a_completed_video_changes_nothing(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        done = await running.wait_for_video((await running.video()).json["id"])
        assert (await running.cancel(done["id"])).status == 204
        assert await running.get_video(done["id"]) == done
        assert await running.money() == (nanos("9.6"), 0)


async def test_a_cancelled_video_is_not_sent_to_the_next_provider(open_gateway: OpenGateway) -> None:
    """Its provider refuses the cancel and then fails the job: no other provider is tried."""
    async with open_gateway(annex=True) as running:
        running.lab.videos.next(faults.fails)
        running.lab.cancels.always(faults.broken)
        video_id = (await running.video()).json["id"]
        await running.lab.videos.reached(1)
        await running.cancel(video_id)
        record = await running.wait_for_request(video_id)
        assert (record["status"], record["cost"]) == ("cancelled", 0)
        assert len(running.annex.videos) == 0


@sqlite_only
async def test_cancelling_a_video_of_another_organization(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        video_id = (await running.video()).json["id"]
        call = running.call(id=video_id, caller=await running.create_caller_in_new_org())
        with pytest.raises(NotFound):
            await cancel_video(running.gateway, call)
        assert (await running.wait_for_video(video_id))["status"] == "completed"
