"""Providers that are unavailable for a while: all candidates are tried again, where that is known to be safe."""

from typing import Any

import pytest

from penstock.errors import Problem
from penstock.gateway import Gateway
from penstock.generation_jobs import failover
from penstock.generation_jobs.job import Job
from penstock.values import nanos
from tests.fake_providers import faults
from tests.fake_providers.server import Act
from tests.gateway import OpenGateway, RunningGateway, sqlite_only, two_providers

UNTOUCHED = (nanos("10"), 0)
NOBODY = "http://127.0.0.1:9/v1"  # where no provider listens
PASSING = {"busy": faults.busy(), "unavailable": faults.error(503, "Overloaded.")}
passing = pytest.mark.parametrize("act", PASSING.values(), ids=PASSING.keys())


async def rounds(running: RunningGateway, video_id: str, count: int) -> None:
    """Wait until a video waits after so many rounds, without moving the clock past its next pause."""

    async def met() -> bool:
        rows = await running.attempts(video_id)
        return len(rows) >= count and all(row["state"] == "failed" for row in rows)

    await running.wait_until(met, step_seconds=0.1)


def unreachable(running: RunningGateway) -> dict[str, Any]:
    return {"lab": {**running.lab.settings(), "base_url": NOBODY}}


def pass_pauses(running: RunningGateway, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let pauses between rounds pass at once, by moving the clock. What a busy machine takes long for takes no time."""

    async def wait(gateway: Gateway, job: Job, seconds: float) -> None:
        running.clock.advance(seconds)

    monkeypatch.setattr(failover, "_wait", wait)


@passing
async def test_an_accepted_video_outlives_an_outage(open_gateway: OpenGateway, act: Act) -> None:
    async with open_gateway() as running:
        running.lab.videos.next(act, act, act)
        video_id = (await running.video()).json["id"]
        await rounds(running, video_id, 2)
        assert (await running.get_video(video_id))["status"] == "queued"
        assert (await running.wait_for_video(video_id))["status"] == "completed"
        rows = await running.attempts(video_id)
        assert [(row["round"], row["state"]) for row in rows] == [
            (1, "failed"),
            (2, "failed"),
            (3, "failed"),
            (4, "completed"),
        ]
        assert len(running.lab.invoice) == 1
        assert await running.money() == (nanos("9.6"), 0)


@sqlite_only
async def test_a_provider_forced_by_its_prefix_is_tried_again(open_gateway: OpenGateway) -> None:
    async with open_gateway(annex=True) as running:
        running.lab.videos.next(faults.busy())
        done = await running.wait_for_video((await running.video(model="lab/video-1")).json["id"])
        assert (done["status"], done["metadata"]["provider"]) == ("completed", "lab")
        assert running.annex.submits == 0


@sqlite_only
async def test_every_part_of_a_request_is_tried_again(open_gateway: OpenGateway) -> None:
    async with open_gateway(annex=True) as running:
        running.lab.videos.next(*[faults.busy()] * 3)
        running.annex.videos.next(*[faults.busy()] * 3)
        done = await running.wait_for_video((await running.video(n=3)).json["id"])
        assert (done["status"], len(done["outputs"])) == ("completed", 3)
        assert len(running.lab.invoice) == 3


@sqlite_only
async def test_only_candidates_that_may_recover_are_tried_again(open_gateway: OpenGateway) -> None:
    """The first failed while it worked on the request; whether that is billed is not known."""
    async with open_gateway(annex=True) as running:
        running.lab.videos.always(faults.broken)
        running.annex.videos.next(faults.busy(), faults.busy())
        done = await running.wait_for_video((await running.video()).json["id"])
        assert (done["status"], done["metadata"]["provider"]) == ("completed", "annex")
        assert len(running.lab.videos) == 1


@pytest.mark.parametrize("act", [faults.rejected, faults.blocked, faults.dropped], ids=["rejected", "blocked", "lost"])
@sqlite_only
async def test_waiting_ends_with_a_failure_that_is_final(open_gateway: OpenGateway, act: Act) -> None:
    async with open_gateway(annex=True) as running:
        running.lab.videos.always(faults.busy())
        running.annex.videos.next(faults.busy(), act)
        assert (await running.wait_for_video((await running.video()).json["id"]))["status"] == "failed"
        assert (len(running.lab.videos), len(running.annex.videos)) == (2, 2)


@sqlite_only
async def test_an_outage_until_the_deadline(open_gateway: OpenGateway, monkeypatch: pytest.MonkeyPatch) -> None:
    """The pauses grow to a minute, so an hour has some sixty rounds and not thousands."""
    async with open_gateway(job_deadline_seconds=3600) as running:
        pass_pauses(running, monkeypatch)
        running.lab.videos.always(faults.error(503, "Overloaded."))
        done = await running.wait_for_video((await running.video()).json["id"], step_seconds=0)
        assert (done["status"], done["error"]["code"]) == ("failed", "ALL_PROVIDERS_EXHAUSTED")
        assert "Overloaded" in done["error"]["message"]
        assert 45 < len(running.lab.videos) < 75
        assert await running.money() == UNTOUCHED


@sqlite_only
async def test_the_wall_clock_is_set_during_an_outage(open_gateway: OpenGateway) -> None:
    """The deadline of a day does not come nearer."""
    async with open_gateway() as running:
        running.lab.videos.next(faults.busy(), faults.busy())
        video_id = (await running.video()).json["id"]
        await rounds(running, video_id, 1)
        running.clock.jump(25 * 3600)
        assert (await running.wait_for_video(video_id))["status"] == "completed"


@sqlite_only
async def test_a_provider_is_not_asked_again_before_the_time_it_named(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        running.lab.videos.next(faults.busy(90))
        video_id = (await running.video()).json["id"]
        await rounds(running, video_id, 1)
        asked_ms = (await running.attempts(video_id))[0]["updated_at_ms"]
        await running.wait_for_video(video_id)
        assert (await running.attempts(video_id))[1]["created_at_ms"] - asked_ms >= 90_000


async def test_a_video_that_waits_is_cancelled_at_once(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        providers = unreachable(running)
    async with open_gateway(providers=providers) as running:
        video_id = (await running.video()).json["id"]
        await rounds(running, video_id, 3)
        await running.cancel(video_id)
        assert (await running.get_video(video_id))["error"]["code"] == "CANCELLED"
        await running.wait_until_idle()
        assert await running.money() == UNTOUCHED


async def test_the_next_process_goes_on_with_a_video_that_waits(open_gateway: OpenGateway) -> None:
    async with two_providers() as labs:
        providers = {"lab": {**labs[0].settings(), "base_url": NOBODY}}
        async with open_gateway(labs=labs, providers=providers) as running:
            video_id = (await running.video()).json["id"]
            await rounds(running, video_id, 2)
        async with open_gateway(labs=labs) as running:
            assert (await running.wait_for_video(video_id))["status"] == "completed"
            last = (await running.attempts(video_id))[-1]
            assert (last["round"], last["state"]) == (3, "completed")
        assert len(labs[0].videos) == 1


@sqlite_only
async def test_a_round_that_was_interrupted_is_continued_and_not_repeated(open_gateway: OpenGateway) -> None:
    """In the second round the second candidate has accepted the video: the first is not asked a third time."""
    async with two_providers() as labs:
        async with open_gateway(labs=labs, annex=True) as running:
            labs[0].videos.next(faults.busy(), faults.busy())
            labs[1].videos.next(faults.busy(), faults.never_ends)
            video_id = (await running.video()).json["id"]

            async def submitted() -> bool:
                return "submitted" in [row["state"] for row in await running.attempts(video_id)]

            await running.wait_until(submitted)
        for job in labs[1].video_jobs.values():
            job.states.append("completed")
        async with open_gateway(labs=labs, annex=True) as running:
            done = await running.wait_for_video(video_id)
            assert (done["status"], done["metadata"]["provider"]) == ("completed", "annex")
        assert (len(labs[0].videos), len(labs[1].videos)) == (2, 2)


# --------------------------------------------------------------------------------------------------------------- images


@sqlite_only
async def test_an_image_is_tried_again_for_seconds_while_no_provider_can_be_reached(
    open_gateway: OpenGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_gateway() as running:
        providers = unreachable(running)
    async with open_gateway(providers=providers) as running:
        pass_pauses(running, monkeypatch)
        began = running.clock.monotonic()
        with pytest.raises(Problem) as caught:
            await running.image()
        assert (caught.value.code, caught.value.should_retry) == ("ALL_PROVIDERS_EXHAUSTED", True)
        assert 3 < running.clock.monotonic() - began < 5
        (row,) = await running.records()
        assert len(await running.attempts(row["id"])) == 5
        assert await running.money() == UNTOUCHED


@passing
@sqlite_only
async def test_an_image_is_not_tried_again_when_a_provider_answered(open_gateway: OpenGateway, act: Act) -> None:
    async with open_gateway() as running:
        running.lab.images.next(act)
        with pytest.raises(Problem):
            await running.image()
        assert len(running.lab.images) == 1
