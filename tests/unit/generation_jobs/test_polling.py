"""Polling: failed polls fail no job, and a job ends at its deadline or when its provider ends it."""

import itertools

from penstock.generation_jobs.polling import shared_pause
from penstock.values import nanos
from tests.fake_providers import faults
from tests.gateway import OpenGateway, sqlite_only
from tests.unit.generations.failing import UNTOUCHED


@sqlite_only
async def test_failed_polls_fail_no_job(open_gateway: OpenGateway) -> None:
    """Polls fail in every way for an hour: the hold stays, nothing is sent again, and the video is completed."""
    async with open_gateway(annex=True) as running:
        trouble = [faults.broken, faults.page, faults.nonsense, faults.missing, faults.dropped, faults.busy(5)]
        running.lab.polls.next(*trouble * 8)
        video_id = (await running.video()).json["id"]

        async def weathered() -> bool:
            return len(running.lab.polls) >= 30

        began = running.clock.monotonic()
        await running.wait_until(weathered, step_seconds=5)
        assert (await running.record(video_id))["status"] == "processing"
        assert await running.money() == (nanos("9.6"), nanos("0.4"))
        assert running.clock.monotonic() - began > 900, "the pauses grow"
        assert (await running.wait_for_video(video_id, step_seconds=5))["status"] == "completed"
        assert (len(running.lab.videos), running.annex.submits) == (1, 0)


@sqlite_only
async def test_a_job_that_the_provider_no_longer_knows(open_gateway: OpenGateway) -> None:
    """It may have been made and billed, so no other provider is tried."""
    async with open_gateway(annex=True) as running:
        running.lab.polls.always(faults.missing)
        done = await running.wait_for_video((await running.video()).json["id"], step_seconds=5)
        assert done["error"]["code"] == "UPSTREAM_OUTCOME_UNKNOWN"
        assert running.annex.submits == 0


@sqlite_only
async def test_a_job_whose_state_can_never_be_read(open_gateway: OpenGateway) -> None:
    """After an hour it is given up, long before its deadline: it may have been made and billed, so no other provider is
    tried, and nothing is charged.
    """
    async with open_gateway(annex=True) as running:
        running.lab.polls.always(faults.nonsense)
        video_id = (await running.video()).json["id"]
        began = running.clock.monotonic()
        done = await running.wait_for_video(video_id, step_seconds=20)
        assert done["error"]["code"] == "UPSTREAM_OUTCOME_UNKNOWN"
        assert "cannot read" in done["error"]["message"]
        assert 3600 < running.clock.monotonic() - began < 2 * 3600
        assert running.annex.submits == 0
        assert await running.money() == UNTOUCHED


async def test_a_failed_job_goes_to_the_next_provider(open_gateway: OpenGateway) -> None:
    async with open_gateway(annex=True) as running:
        running.lab.videos.next(faults.fails)
        done = await running.wait_for_video((await running.video()).json["id"])
        assert (done["status"], done["metadata"]["provider"]) == ("completed", "annex")
        assert await running.money() == (nanos("9.6"), 0)


@sqlite_only
async def test_a_job_that_the_provider_cancels_by_itself_has_failed(open_gateway: OpenGateway) -> None:
    """No cancel was requested."""
    async with open_gateway(annex=True) as running:
        running.lab.videos.next(faults.video_states("queued", "cancelled"))
        done = await running.wait_for_video((await running.video()).json["id"])
        assert done["metadata"]["provider"] == "annex"


@sqlite_only
async def test_a_completed_job_stays_completed(open_gateway: OpenGateway) -> None:
    """Also when a later poll, made to download the file, reports another status."""
    async with open_gateway() as running:
        running.lab.videos.next(faults.changes_its_mind)
        running.lab.contents.next(faults.broken)
        done = await running.wait_for_video((await running.video()).json["id"])
        assert done["status"] == "completed"
        assert len(running.lab.videos) == 1


async def test_a_job_that_never_ends_fails_at_the_deadline(open_gateway: OpenGateway) -> None:
    async with open_gateway(job_deadline_seconds=600) as running:
        running.lab.videos.next(faults.never_ends)
        done = await running.wait_for_video((await running.video()).json["id"], step_seconds=3)
        assert done["error"]["code"] == "UPSTREAM_TIMEOUT"
        assert len(running.lab.cancels) == 1
        assert await running.money() == UNTOUCHED


@sqlite_only
async def test_a_providers_hint_does_not_keep_a_job_beyond_its_deadline(open_gateway: OpenGateway) -> None:
    """A provider may name any pause until the next poll; its hold must not stay for years."""
    async with open_gateway(job_deadline_seconds=600) as running:
        running.lab.poll_after_ms = 10**11
        running.lab.videos.next(faults.never_ends)
        done = await running.wait_for_video((await running.video()).json["id"], step_seconds=3)
        assert done["error"]["code"] == "UPSTREAM_TIMEOUT"
        assert await running.money() == UNTOUCHED


@sqlite_only
async def test_a_success_after_the_deadline_changes_nothing(open_gateway: OpenGateway) -> None:
    """The generation has failed; a job that the provider completes afterwards changes nothing."""
    async with open_gateway(job_deadline_seconds=60) as running:
        running.lab.videos.next(faults.never_ends)
        running.lab.cancels.always(faults.broken)
        video_id = (await running.video()).json["id"]
        await running.wait_for_request(video_id, step_seconds=3)
        next(iter(running.lab.video_jobs.values())).states.append("completed")
        running.clock.advance(3600)
        await running.wait_until_idle()
        assert (await running.get_video(video_id))["error"]["code"] == "UPSTREAM_TIMEOUT"
        assert await running.money() == UNTOUCHED


@sqlite_only
async def test_nothing_is_sent_after_the_deadline(open_gateway: OpenGateway) -> None:
    """The gateway was down for longer than a generation may take."""
    async with open_gateway(works=False, worker=False) as running:
        video_id = (await running.video()).json["id"]
    running.clock.advance(25 * 3600)
    async with open_gateway(labs=(running.lab, running.annex)) as running:
        done = await running.wait_for_video(video_id)
        assert done["error"]["code"] == "UPSTREAM_TIMEOUT"
        assert running.lab.submits == 0


@sqlite_only
async def test_the_status_and_progress_of_a_video(open_gateway: OpenGateway) -> None:
    """Queued while it waits at the provider, then in progress, with a progress that never decreases."""
    async with open_gateway() as running:
        states = (
            "queued",
            "queued",
            "in_progress 10",
            "in_progress 55",
            "in_progress 30",
            "in_progress 99",
            "completed",
        )
        running.lab.videos.next(faults.video_states(*states))
        video_id = (await running.video()).json["id"]
        seen: list[tuple[str, int]] = []

        async def met() -> bool:
            shown = await running.get_video(video_id)
            seen.append((shown["status"], shown["progress"]))
            return bool(shown["status"] == "completed")

        await running.wait_until(met)
        assert sorted(set(seen)) == sorted(
            [("queued", 0), ("in_progress", 10), ("in_progress", 55), ("in_progress", 99), ("completed", 100)]
        )
        assert [percent for _, percent in seen] == sorted(percent for _, percent in seen)


def test_pauses_of_several_jobs_end_at_the_same_moments() -> None:
    """At most fifty times a second, and never early by more than a fiftieth of a second or an eighth of the pause."""
    for now, pause, jobs in itertools.product(
        (0.0, 17.3, 123456.789), (0.0, 0.011, 0.05, 2.9, 3.1, 60.0), (0, 1, 5000)
    ):
        shared = shared_pause(now, pause, jobs)
        assert max(0.0, pause - max(0.02, pause / 8)) <= shared <= pause, (now, pause, jobs)
        if pause >= 0.02:
            moment = (now + shared) * 50
            assert abs(moment - round(moment)) < 1e-6, (now, pause, jobs)


def test_few_jobs_end_together_and_many_are_spread() -> None:
    """Of jobs that are polled every three seconds, about thirty are polled together, if there are so many."""
    for jobs, apart in ((1, 0.32), (300, 0.32), (1000, 0.08), (5000, 0.02)):
        moments = {round(tenths / 10 + shared_pause(tenths / 10, 3.0, jobs), 3) for tenths in range(1000)}
        steps = [round(moment / apart, 3) for moment in moments]
        assert all(step.is_integer() for step in steps), (jobs, apart)
        assert any(step % 2 for step in steps), (jobs, apart)
