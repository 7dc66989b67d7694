"""One attempt: what each kind of failure means for the caller, the money and the next provider."""

import asyncio
import base64
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from penstock.errors import Problem, StorageUnavailable, UpstreamError, UpstreamTimeout
from penstock.values import nanos
from tests.fake_providers import faults
from tests.fake_providers.server import Act
from tests.gateway import OpenGateway, RunningGateway, sqlite_only

UNTOUCHED = (nanos("10"), 0)


async def failure(running: RunningGateway, **body: Any) -> Problem:
    with pytest.raises(Problem) as caught:
        await running.image(**body)
    return caught.value


# --------------------------------------------------------------------------------------------------------- submissions

# The provider says that nothing was made: the next one may be tried.
CERTAIN = {
    "busy": faults.busy(),
    "broken": faults.broken,
    "unauthorized": faults.unauthorized,
    "rejected": faults.rejected,
    "forbidden": faults.error(403, "No."),
    "unpaid": faults.error(402, "Pay first."),
    "redirect": faults.redirect("http://127.0.0.1:1/"),
    "unavailable": faults.error(503, "Overloaded."),
}
# It is not known whether something was made.
UNKNOWN = {
    "dropped": faults.dropped,
    "truncated": faults.truncated(),
    "huge": faults.huge(70),
    "huge and announced": faults.huge(70, announced=True),
}
# A job may have been started; an image was not delivered.
MALFORMED = {
    "nonsense": faults.nonsense,
    "page": faults.page,
    "not a number": faults.not_a_number,
    "nested": faults.nested,
    "lone surrogate": faults.lone_surrogate,
    "not an object": faults.not_an_object,
    "no response": faults.no_response,
    "odd types": faults.odd_types,
    "gateway timeout": faults.raw(b"<html>504</html>", "text/html", 504),
    "bad gateway": faults.raw(b"", "text/plain", 502),
}


def named(table: dict[str, Act]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("act", table.values(), ids=table.keys())


@named(CERTAIN)
@sqlite_only
async def test_a_certain_failure_lets_the_next_provider_try(open_gateway: OpenGateway, act: Act) -> None:
    async with open_gateway(annex=True) as running:
        running.lab.images.always(act)
        running.lab.videos.always(act)
        made = await running.image()
        assert made["metadata"]["provider"] == "annex"
        done = await running.wait_for_video((await running.video()).json["id"])
        assert (done["status"], done["metadata"]["executed_model"]) == ("completed", "annex/reel-1")
        assert running.lab.invoice == []
        assert await running.money() == (nanos("9.56"), 0)


@named(UNKNOWN | MALFORMED)
@sqlite_only
async def test_a_video_with_unknown_outcome_is_not_sent_elsewhere(open_gateway: OpenGateway, act: Act) -> None:
    async with open_gateway(annex=True) as running:
        running.lab.videos.next(act)
        done = await running.wait_for_video((await running.video()).json["id"])
        assert (done["status"], done["error"]["code"]) == ("failed", "UPSTREAM_OUTCOME_UNKNOWN")
        assert (len(running.lab.videos), len(running.annex.videos)) == (1, 0)
        assert await running.money() == UNTOUCHED


@named(UNKNOWN)
@sqlite_only
async def test_an_image_with_unknown_outcome_is_not_sent_elsewhere(open_gateway: OpenGateway, act: Act) -> None:
    async with open_gateway(annex=True) as running:
        running.lab.images.next(act)
        problem = await failure(running)
        assert isinstance(problem, UpstreamError)
        assert (problem.status, problem.should_retry) == (502, False)
        assert running.annex.submits == 0
        assert await running.money() == UNTOUCHED


@named(MALFORMED)
@sqlite_only
async def test_a_malformed_image_is_a_provider_failure(open_gateway: OpenGateway, act: Act) -> None:
    """It is reported as the provider's failure and not charged, and the next call is served."""
    async with open_gateway() as running:
        running.lab.images.next(act)
        problem = await failure(running)
        assert (problem.status, problem.should_retry) == (502, False)
        assert await running.money() == UNTOUCHED
        assert await running.image()


@sqlite_only
async def test_json_with_the_wrong_content_type_is_read(open_gateway: OpenGateway) -> None:
    """Many servers send JSON with a wrong content type."""
    async with open_gateway() as running:
        running.lab.images.next(faults.mislabelled)
        assert await running.image()


@sqlite_only
async def test_an_image_provider_that_never_responds(open_gateway: OpenGateway) -> None:
    async with open_gateway(annex=True, upstream_seconds=0.3) as running:
        running.lab.images.next(faults.stalled)
        problem = await failure(running)
        assert isinstance(problem, UpstreamTimeout)
        assert (problem.status, problem.should_retry) == (504, False)
        assert running.annex.submits == 0
        assert await running.money() == UNTOUCHED


async def test_a_video_provider_that_never_responds(open_gateway: OpenGateway) -> None:
    async with open_gateway(annex=True, upstream_seconds=0.3) as running:
        running.lab.videos.next(faults.stalled)
        video_id = (await running.video()).json["id"]
        await running.lab.videos.reached(1)
        assert (await running.get_video(video_id))["status"] == "queued"
        done = await running.wait_for_video(video_id)
        assert done["error"]["code"] == "UPSTREAM_OUTCOME_UNKNOWN"
        assert running.annex.submits == 0


@sqlite_only
async def test_a_video_refused_for_its_content(open_gateway: OpenGateway) -> None:
    async with open_gateway(annex=True) as running:
        running.lab.videos.next(faults.blocked, faults.is_refused)
        for _ in range(2):
            done = await running.wait_for_video((await running.video()).json["id"])
            assert done["error"]["code"] == "CONTENT_POLICY_VIOLATION"
        assert running.annex.submits == 0


async def test_a_job_with_the_id_of_another_job_has_an_unknown_outcome(open_gateway: OpenGateway) -> None:
    """The second job cannot be told from the first."""
    async with open_gateway() as running:
        act = faults.video_states("queued", "in_progress", "completed", name="video_same")
        running.lab.videos.next(act, act)
        first = (await running.video()).json["id"]
        await running.lab.videos.reached(1)
        second = (await running.video()).json["id"]
        assert (await running.wait_for_video(second))["error"]["code"] == "UPSTREAM_OUTCOME_UNKNOWN"
        assert (await running.wait_for_video(first))["status"] == "completed"
        assert await running.money() == (nanos("9.6"), 0)


async def test_immediate_results_may_share_an_upstream_id(open_gateway: OpenGateway) -> None:
    """Results that are complete are not asked about; some providers give all of them the same id."""
    async with open_gateway() as running:
        running.lab.next_ids.extend(["same", "same"])
        made = [await running.image(), await running.image()]
        assert [response["metadata"]["upstream_id"] for response in made] == ["same", "same"]


# ---------------------------------------------------------------------------------------------------------------- polls


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


# ---------------------------------------------------------------------------------------------------------------- files


async def test_a_download_that_fails_is_tried_again(open_gateway: OpenGateway) -> None:
    """The video was made, so the download is repeated."""
    async with open_gateway(annex=True) as running:
        running.lab.contents.next(faults.broken, faults.dropped, faults.cut(), faults.missing)
        done = await running.wait_for_video((await running.video()).json["id"])
        assert (done["status"], done["metadata"]["provider"]) == ("completed", "lab")
        assert len(running.lab.contents) == 5
        assert len(running.lab.invoice) == 1


@sqlite_only
async def test_an_output_that_cannot_be_downloaded_is_not_made_again(open_gateway: OpenGateway) -> None:
    """It was made and billed; another provider would make and bill it again."""
    async with open_gateway(annex=True) as running:
        running.lab.contents.always(faults.broken)
        done = await running.wait_for_video((await running.video()).json["id"], step_seconds=5)
        assert done["error"]["code"] == "UPSTREAM_ERROR"
        assert running.annex.submits == 0
        assert await running.money() == UNTOUCHED


@sqlite_only
async def test_an_image_that_cannot_be_downloaded(open_gateway: OpenGateway) -> None:
    async with open_gateway(annex=True) as running:
        running.lab.returns_urls = True
        running.lab.files.next(faults.broken)
        waiting = asyncio.create_task(running.image())
        await running.lab.files.reached(1)
        await running.wait_until_idle()
        assert (await waiting)["metadata"]["provider"] == "lab"
        running.lab.files.always(faults.broken)
        waiting = asyncio.create_task(failure(running))
        await running.lab.files.reached(3)
        await running.wait_until_idle()
        assert (await waiting).code == "UPSTREAM_ERROR"
        assert running.annex.submits == 0


@named(
    {
        "a page": faults.file(b"<!doctype html>" + b" " * 5000, "video/mp4"),
        "an image": faults.file(b"\x89PNG\r\n\x1a\n" + b"\0" * 100, "video/mp4"),
        "nothing": faults.file(b"", "video/mp4"),
    }
)
@sqlite_only
async def test_a_file_that_is_not_a_video_is_refused(open_gateway: OpenGateway, act: Act) -> None:
    """Whatever its name or content type: it is not charged, and the next provider is tried."""
    async with open_gateway(annex=True) as running:
        running.lab.contents.always(act)
        done = await running.wait_for_video((await running.video()).json["id"], step_seconds=5)
        assert (done["status"], done["metadata"]["provider"]) == ("completed", "annex")
        assert await running.money() == (nanos("9.6"), 0)


@named(
    {
        "a page": faults.file(b"<!doctype html>" + b" " * 5000, "text/html"),
        "nothing": faults.file(b"", "video/mp4"),
        "half of it": faults.half,
    }
)
@sqlite_only
async def test_a_file_that_is_wrong_once_is_downloaded_again(open_gateway: OpenGateway, act: Act) -> None:
    async with open_gateway(annex=True) as running:
        running.lab.contents.next(act)
        done = await running.wait_for_video((await running.video()).json["id"])
        assert (done["status"], done["metadata"]["provider"]) == ("completed", "lab")
        assert len(running.lab.contents) == 2


@contextmanager
def full_storage(running: RunningGateway) -> Iterator[Path]:
    """A storage that takes no files: its folder is replaced by a file."""
    media = running.gateway.settings.data / "media"
    away = media.with_name("media-away")
    media.rename(away)
    media.write_text("in the way")
    try:
        yield away
    finally:
        media.unlink()
        away.rename(media)


@sqlite_only
async def test_an_image_that_cannot_be_stored(open_gateway: OpenGateway) -> None:
    async with open_gateway(annex=True) as running:
        with full_storage(running):
            problem = await failure(running)
        assert isinstance(problem, StorageUnavailable)
        assert (problem.status, problem.should_retry) == (503, False)
        assert await running.money() == UNTOUCHED
        assert running.annex.submits == 0
        assert await running.image()


@sqlite_only
async def test_a_recording_that_cannot_be_stored(open_gateway: OpenGateway) -> None:
    """Neither when it is made nor when it is replayed; a recording may also lose its files."""
    async with open_gateway() as running:
        ask = {"x-service-replay": "replay-or-record"}
        with full_storage(running), pytest.raises(StorageUnavailable):
            await running.image(headers=ask)
        await running.image(headers=ask)
        with full_storage(running), pytest.raises(Problem, match="gone"):
            await running.image(headers=ask)
        assert await running.image(headers=ask)
        assert len(running.lab.images) == 2


@sqlite_only
async def test_a_video_waits_until_it_can_be_stored(open_gateway: OpenGateway) -> None:
    """It waits for hours, not charged, and is completed as soon as its file can be stored."""
    async with open_gateway() as running:
        with full_storage(running):
            video_id = (await running.video()).json["id"]

            async def tried() -> bool:
                return len(running.lab.contents) >= 8

            await running.wait_until(tried, step_seconds=30)
            assert (await running.get_video(video_id))["status"] == "in_progress"
            assert await running.money() == (nanos("9.6"), nanos("0.4"))
        assert (await running.wait_for_video(video_id, step_seconds=5))["status"] == "completed"
        assert len(running.lab.videos) == 1


@sqlite_only
async def test_the_usage_that_a_provider_reports_is_charged(open_gateway: OpenGateway) -> None:
    """Seconds and tokens as reported; malformed reports are ignored."""
    price = {"unit": "token", "output_usd": "0.0001", "max_tokens": 1000}
    async with open_gateway(models={"image-1": {"price": price}}) as running:
        for usage, cost in (
            ({"input_tokens": 1, "output_tokens": 10}, "0.001"),
            ({"input_tokens": 1, "output_tokens": -10}, "0.1"),
            ({"input_tokens": 1, "output_tokens": "many"}, "0.1"),
            ({"input_tokens": 1, "output_tokens": 10**30}, "0.1"),
        ):
            running.lab.usage = usage
            assert (await running.image())["metadata"]["cost"] == Decimal(cost), usage


@sqlite_only
async def test_nothing_is_left_in_the_scratch_folder(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        running.lab.contents.next(faults.cut(), faults.file(b"<html>", "video/mp4"))
        await running.wait_for_video((await running.video()).json["id"])
        assert running.scratch == []


@sqlite_only
async def test_an_image_too_large_to_be_converted_is_delivered_as_it_was_made(open_gateway: OpenGateway) -> None:
    """It is paid for, and the provider is not to blame for what a caller asked of the gateway."""
    header = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + (8000).to_bytes(4, "big") + (6000).to_bytes(4, "big") + b"\x08\x02"
    large = header + b"\0" * 1000
    async with open_gateway() as running:
        running.lab.images.always(faults.altered(data=[{"b64_json": base64.b64encode(large).decode()}]))
        for _ in range(4):
            made = await running.image(output_format="jpeg", response_format="b64_json")
            assert base64.b64decode(made["data"][0]["b64_json"]) == large
            assert (made["output_format"], made["size"]) == ("png", "8000x6000")
        assert await running.money() == (nanos("9.84"), 0)
        assert running.gateway.health.is_healthy("lab", "easel-1")


@sqlite_only
async def test_a_broken_image_is_not_delivered(open_gateway: OpenGateway) -> None:
    header = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + (64).to_bytes(4, "big") + (64).to_bytes(4, "big") + b"\x08\x02"
    async with open_gateway() as running:
        running.lab.images.next(faults.altered(data=[{"b64_json": base64.b64encode(header + b"\0" * 99).decode()}]))
        assert "unusable" in (await failure(running, output_format="jpeg")).message
        assert await running.money() == UNTOUCHED


@sqlite_only
async def test_a_file_that_is_too_large_does_not_count_against_the_provider(open_gateway: OpenGateway) -> None:
    """A caller can cause it, so the provider stays healthy for others, and no second provider is paid for the same."""
    async with open_gateway(annex=True, video_bytes=3) as running:
        for _ in range(4):
            done = await running.wait_for_video((await running.video()).json["id"])
            assert "too large" in done["error"]["message"]
        assert running.annex.submits == 0
        assert running.gateway.health.is_healthy("lab", "reel-1")
        assert await running.money() == UNTOUCHED
        losses = await running.rows("SELECT amount FROM transfers WHERE kind = 'loss'")
        assert [row["amount"] for row in losses] == [nanos("0.4")] * 4
