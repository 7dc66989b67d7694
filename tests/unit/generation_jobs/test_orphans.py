"""Jobs that a provider finishes after their generation failed: the gateway's loss, once; no charge, no second event."""

import threading
from collections.abc import Awaitable, Callable
from decimal import Decimal
from typing import Any

import pytest

from penstock.accounts.audit import count_orphans
from penstock.errors import Problem, StorageUnavailable, UpstreamOutcomeUnknown
from penstock.generation_jobs.finish import fail
from penstock.generation_jobs.job import Job, record_attempt
from penstock.generation_jobs.orphans import _check, check_due
from penstock.generation_jobs.rows import get_generation, list_last_attempts
from penstock.jobs.running import Lease, RunningJob
from penstock.schema import Caller
from penstock.values import nanos
from tests.fake_providers import faults
from tests.fake_providers.server import Act, responds
from tests.gateway import OpenGateway, RunningGateway, sqlite_only, two_providers

HOOK = "https://receiver.example/hook"
UNTOUCHED = (nanos("10"), 0)
DAY = 86_400.0


async def fail_by_deadline(running: RunningGateway, **body: Any) -> str:
    """A failed video that the provider goes on making after its deadline, ignoring the cancel."""
    running.lab.videos.next(faults.never_ends)
    running.lab.cancels.always(faults.rejected)
    video_id: str = (await running.video(webhook_url=HOOK, **body)).json["id"]

    async def is_submitted() -> bool:
        attempts = await running.attempts(video_id)
        return bool(attempts) and all(attempt["ref"] for attempt in attempts)

    await running.wait_until(is_submitted, step_seconds=0)  # a busy machine may need long for it
    done = await running.wait_for_video(video_id, step_seconds=10)
    assert done["error"]["code"] == "UPSTREAM_TIMEOUT"
    return video_id


async def states(running: RunningGateway, video_id: str) -> list[str]:
    return [row["state"] for row in await running.attempts(video_id)]


def is_now(running: RunningGateway, video_id: str, *wanted: str) -> Callable[[], Awaitable[bool]]:
    async def met() -> bool:
        return await states(running, video_id) == list(wanted)

    return met


def finish(running: RunningGateway, state: str) -> None:
    for job in running.lab.video_jobs.values():
        job.states.clear()
        job.states.append(state)


async def test_a_job_completed_late_is_a_loss_and_changes_nothing_else(open_gateway: OpenGateway) -> None:
    async with open_gateway(job_deadline_seconds=60) as running:
        video_id = await fail_by_deadline(running)
        before = (
            await running.get_video(video_id),
            await running.record(video_id),
            await running.rows("SELECT * FROM messages"),
        )
        finish(running, "completed")
        await running.wait_until(is_now(running, video_id, "completed"), step_seconds=10)
        assert (await running.get_video(video_id), await running.record(video_id)) == before[:2]
        messages = await running.rows("SELECT * FROM messages")
        assert [(row["id"], row["event"], row["body"]) for row in messages] == [
            (row["id"], row["event"], row["body"]) for row in before[2]
        ]
        assert await running.money() == UNTOUCHED
        (attempt,) = await running.attempts(video_id)
        losses = await running.rows("SELECT ref, amount, source, target FROM transfers WHERE kind = 'loss'")
        assert losses == [
            {"ref": attempt["id"], "amount": nanos("0.4"), "source": "platform_loss", "target": "providers"}
        ]
        assert await count_orphans(running.gateway.store) == (1, nanos("0.4"))
        polls = len(running.lab.polls)
        running.clock.advance(DAY)
        assert await check_due(running.gateway) == 0
        assert len(running.lab.polls) == polls, "there are no more checks"


@pytest.mark.parametrize(("state", "then"), [("failed", "failed"), ("gone", "cancelled")])
@sqlite_only
async def test_a_job_that_fails_or_vanishes_is_no_loss(open_gateway: OpenGateway, state: str, then: str) -> None:
    async with open_gateway(job_deadline_seconds=60) as running:
        video_id = await fail_by_deadline(running)
        if state == "gone":
            running.lab.video_jobs.clear()
        else:
            finish(running, state)
        await running.wait_until(is_now(running, video_id, then), step_seconds=10)
        assert await count_orphans(running.gateway.store) == (0, 0)


@sqlite_only
async def test_a_job_that_never_ends_is_checked_five_times(open_gateway: OpenGateway) -> None:
    """Also when the provider's responses are errors or malformed."""
    async with two_providers() as labs:
        async with open_gateway(labs=labs, job_deadline_seconds=60) as running:
            await fail_by_deadline(running)
        labs[0].polls.next(faults.ok, faults.broken, faults.nonsense)
        before = len(labs[0].polls)
        pauses = []
        async with open_gateway(labs=labs, works=False) as running:
            while (due := (await running.rows("SELECT check_at_ms FROM attempts"))[0]["check_at_ms"]) is not None:
                pauses.append(round((due - running.clock.steady_ms()) / 60_000))
                running.clock.advance((due - running.clock.steady_ms() - 1) / 1000)
                await check_due(running.gateway)
                assert len(labs[0].polls) == before + len(pauses) - 1, "not yet"
                running.clock.advance(0.001)
                assert await check_due(running.gateway) == 0
            assert pauses[0] in (0, 1), "the clock went on a little before the first look"
            assert pauses[1:] == [4, 16, 64, 256]
            running.clock.advance(DAY)
            assert await check_due(running.gateway) == 0
        assert len(labs[0].polls) == before + 5


@sqlite_only
async def test_each_of_several_jobs_is_a_loss(open_gateway: OpenGateway) -> None:
    async with open_gateway(job_deadline_seconds=60) as running:
        running.lab.videos.next(faults.never_ends, faults.never_ends)
        video_id = await fail_by_deadline(running, n=3)
        finish(running, "completed")
        await running.wait_until(is_now(running, video_id, "completed", "completed", "completed"), step_seconds=10)
        assert await count_orphans(running.gateway.store) == (3, nanos("1.2"))


@sqlite_only
async def test_a_job_completed_after_the_provider_accepted_its_cancel_is_a_loss(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        running.lab.videos.next(faults.never_ends)
        running.lab.cancels.always(responds({}))
        video_id = (await running.video()).json["id"]
        await running.wait_until(is_now(running, video_id, "submitted"))
        await running.cancel(video_id)
        assert (await running.wait_for_video(video_id))["error"]["code"] == "CANCELLED"
        finish(running, "completed")
        await running.wait_until(is_now(running, video_id, "completed"), step_seconds=10)
        assert (await running.get_video(video_id))["error"]["code"] == "CANCELLED"
        assert await running.money() == UNTOUCHED
        assert await count_orphans(running.gateway.store) == (1, nanos("0.4"))


@sqlite_only
async def test_two_checks_at_once_record_one_loss(open_gateway: OpenGateway) -> None:
    async with open_gateway(job_deadline_seconds=60) as running:
        video_id = await fail_by_deadline(running)
        finish(running, "completed")
        (attempt,) = await list_last_attempts(running.gateway.store, video_id)
        assert [await _check(running.gateway, attempt), await _check(running.gateway, attempt)] == [True, False]
        assert await count_orphans(running.gateway.store) == (1, nanos("0.4"))


async def test_a_purge_hides_no_job_that_is_completed_late(open_gateway: OpenGateway) -> None:
    """Otherwise a caller who cancels and purges would make the provider's bill and the books differ."""
    async with open_gateway(job_deadline_seconds=60) as running:
        running.lab.videos.next(faults.never_ends, faults.never_ends)
        video_id = await fail_by_deadline(running, n=3)
        await running.purge(video_id)
        finish(running, "completed")
        await running.wait_until(is_now(running, video_id, "completed", "completed", "completed"), step_seconds=10)
        assert await losses(running) == [nanos("0.4")] * 3
        assert await running.money() == UNTOUCHED
        assert [attempt["ref"] for attempt in await running.attempts(video_id)] == [None] * 3


async def test_the_last_check_forgets_the_job_of_a_purged_request(open_gateway: OpenGateway) -> None:
    async with two_providers() as labs:
        async with open_gateway(labs=labs, job_deadline_seconds=60) as running:
            video_id = await fail_by_deadline(running)
            await running.purge(video_id)
        before = len(labs[0].polls)
        async with open_gateway(labs=labs, works=False) as running:
            has_ref = []
            for _ in range(6):
                (attempt,) = await running.attempts(video_id)
                has_ref.append(attempt["ref"] is not None)
                running.clock.advance(DAY)
                assert await check_due(running.gateway) == 0
        assert has_ref == [True] * 5 + [False]
        assert len(labs[0].polls) == before + 5


@sqlite_only
async def test_a_provider_that_is_no_longer_configured_is_not_asked(
    open_gateway: OpenGateway, installation: Any
) -> None:
    async with open_gateway(job_deadline_seconds=60) as running:
        await fail_by_deadline(running)
        caller: Caller = running.caller
    async with open_gateway(labs=(running.lab, running.annex), providers={}, works=False) as running:
        running.clock.advance(DAY)
        assert await check_due(running.gateway) == 0
        assert running.caller == caller


# ------------------------------------------------------------------------------------- made, but not to be delivered


async def losses(running: RunningGateway) -> list[int]:
    return [row["amount"] for row in await running.rows("SELECT amount FROM transfers WHERE kind = 'loss'")]


@pytest.mark.parametrize(
    "act",
    [faults.file(b"<!doctype html>" + b" " * 500, "text/html"), faults.file(b"", "video/mp4"), faults.broken],
    ids=["page", "nothing", "error"],
)
@sqlite_only
async def test_a_video_that_was_made_and_cannot_be_downloaded_is_a_loss(open_gateway: OpenGateway, act: Act) -> None:
    async with open_gateway() as running:
        running.lab.contents.always(act)
        done = await running.wait_for_video((await running.video()).json["id"], step_seconds=5)
        assert done["status"] == "failed"
        assert len(running.lab.contents) > 10, "it is downloaded again for some time"
        assert await losses(running) == [nanos("0.4")]
        assert await count_orphans(running.gateway.store) == (1, nanos("0.4"))
        assert await running.money() == UNTOUCHED


@sqlite_only
async def test_an_unusable_video_is_a_loss_although_another_provider_delivers(open_gateway: OpenGateway) -> None:
    async with open_gateway(annex=True) as running:
        running.lab.contents.always(faults.file(b"\x89PNG\r\n\x1a\n" + b"\0" * 100, "video/mp4"))
        done = await running.wait_for_video((await running.video()).json["id"])
        assert (done["status"], done["metadata"]["provider"]) == ("completed", "annex")
        assert await losses(running) == [nanos("0.4")]
        assert await running.money() == (nanos("9.6"), 0)


@sqlite_only
async def test_an_image_that_was_made_and_is_unusable_is_a_loss(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        running.lab.images.next(faults.altered(data=[{"b64_json": "bm90IGFuIGltYWdl"}]))
        with pytest.raises(Problem):
            await running.image()
        assert await losses(running) == [nanos("0.04")]
        assert await running.money() == UNTOUCHED


async def test_a_job_that_was_lost_and_is_found_again_is_a_loss(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        running.lab.polls.always(faults.missing)
        video_id = (await running.video()).json["id"]
        assert (await running.wait_for_video(video_id))["error"]["code"] == "UPSTREAM_OUTCOME_UNKNOWN"
        running.clock.advance(70)
        await check_due(running.gateway)
        assert await states(running, video_id) == ["unknown"], "it is asked about again"
        running.lab.polls.always(faults.ok)
        finish(running, "completed")
        await running.wait_until(is_now(running, video_id, "completed"), step_seconds=10)
        assert await losses(running) == [nanos("0.4")]
        assert await running.money() == UNTOUCHED


@sqlite_only
async def test_an_image_whose_recording_cannot_be_stored_is_a_loss(
    open_gateway: OpenGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_gateway() as running:

        async def fail(*_: Any) -> None:
            raise StorageUnavailable("no room")

        monkeypatch.setattr(running.gateway.recordings, "store_files", fail)
        with pytest.raises(StorageUnavailable):
            await running.image(headers={"x-service-replay": "record"})
        assert await losses(running) == [nanos("0.04")]
        assert await running.money() == UNTOUCHED


async def start_two(running: RunningGateway) -> str:
    """A request for two videos, when one of them is made and the other one still runs."""
    running.lab.videos.next(faults.never_ends)
    video_id: str = (await running.video(n=2)).json["id"]

    async def downloaded() -> bool:
        return len(running.lab.contents) == 1

    await running.wait_until(downloaded)
    return video_id


@sqlite_only
async def test_a_video_is_delivered_when_another_one_of_its_request_is_too_late(open_gateway: OpenGateway) -> None:
    async with open_gateway(job_deadline_seconds=36_000) as running:
        running.lab.cancels.always(faults.rejected)
        video_id = await start_two(running)
        done = await running.wait_for_video(video_id, step_seconds=1000)
        assert (done["status"], len(done["outputs"]), done["metadata"]["cost"]) == ("completed", 1, Decimal("0.4"))
        assert sorted(await states(running, video_id)) == ["completed", "submitted"]
        finish(running, "completed")
        await running.wait_until(is_now(running, video_id, "completed", "completed"), step_seconds=10)
        assert await losses(running) == [nanos("0.4")], "the other one was made later"
        assert await running.money() == (nanos("9.6"), 0)


@sqlite_only
async def test_a_video_that_was_made_is_a_loss_when_its_request_is_cancelled(open_gateway: OpenGateway) -> None:
    async with open_gateway(job_deadline_seconds=36_000) as running:
        video_id = await start_two(running)
        await running.cancel(video_id)
        done = await running.wait_for_video(video_id)
        assert done["error"]["code"] == "CANCELLED"
        assert await losses(running) == [nanos("0.4")]
        assert await running.money() == UNTOUCHED


async def test_a_job_that_a_process_learns_of_after_it_lost_the_lease_is_asked_about(open_gateway: OpenGateway) -> None:
    """The process stood still while it submitted; another took the generation over, and could not know the job."""
    released = threading.Event()
    async with open_gateway() as running:
        running.lab.videos.next(faults.waiting(released))
        video_id = (await running.video()).json["id"]
        await running.lab.videos.reached(1)
        finish(running, "completed")
        (attempt,) = await running.attempts(video_id)
        try:
            await take_over_and_fail(running, video_id, attempt["id"])
        finally:
            released.set()
        await running.wait_until(is_now(running, video_id, "completed"), step_seconds=10)
        (attempt,) = await running.attempts(video_id)
        assert attempt["upstream_id"] in running.lab.video_jobs
        losses = await running.rows("SELECT ref, amount FROM transfers WHERE kind = 'loss'")
        assert [loss["ref"] for loss in losses] == [attempt["id"]]
        assert await running.money() == UNTOUCHED


async def take_over_and_fail(running: RunningGateway, video_id: str, attempt_id: str) -> None:
    """What another process does that finds an attempt that may have been sent."""
    store = running.gateway.store
    await running.change("UPDATE generations SET lease_token = lease_token + 1")
    row = await get_generation(store, video_id, running.caller.org_id)
    assert row is not None
    request = row.decode_request()
    assert request is not None
    lease = Lease(video_id, row.lease_token)
    job = Job(RunningJob(lease), row, running.caller.key_id, request, row.decode_plan(), ())
    await record_attempt(running.gateway, job, attempt_id, "unknown")
    await fail(running.gateway, job, UpstreamOutcomeUnknown("No."))
