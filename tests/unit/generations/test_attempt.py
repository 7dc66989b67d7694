"""One provider asked for one share: what each way of failing means for the caller, the money and the next provider."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from penstock.errors import Problem, StorageUnavailable, UpstreamError, UpstreamTimeout
from penstock.values import nanos
from tests.house import House, OpenHouse, sqlite_only
from tests.upstreams import faults
from tests.upstreams.server import Act

UNTOUCHED = (nanos("10"), 0)


async def failure(house: House, **body: Any) -> Problem:
    with pytest.raises(Problem) as caught:
        await house.image(**body)
    return caught.value


# --------------------------------------------------------------------------------------------------- answers to submits

# Said by a provider: nothing was made. The next may be asked.
DEFINITE = {
    "busy": faults.busy(),
    "broken": faults.broken,
    "unauthorized": faults.unauthorized,
    "rejected": faults.rejected,
    "forbidden": faults.error(403, "No."),
    "unpaid": faults.error(402, "Pay first."),
    "redirect": faults.redirect("http://127.0.0.1:1/"),
    "unavailable": faults.error(503, "Overloaded."),
}
# Nobody knows whether it was made.
DOUBTFUL = {
    "dropped": faults.dropped,
    "truncated": faults.truncated(),
    "huge": faults.huge(70),
    "huge and announced": faults.huge(70, announced=True),
}
# For a job: it may have been begun. For a picture: it is not here.
NONSENSE = {
    "nonsense": faults.nonsense,
    "page": faults.page,
    "not a number": faults.not_a_number,
    "nested": faults.nested,
    "lone surrogate": faults.lone_surrogate,
    "not an object": faults.not_an_object,
    "nothing said": faults.nothing_said,
    "odd types": faults.odd_types,
    "gateway timeout": faults.raw(b"<html>504</html>", "text/html", 504),
    "bad gateway": faults.raw(b"", "text/plain", 502),
}


def named(table: dict[str, Act]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("act", table.values(), ids=table.keys())


@named(DEFINITE)
@sqlite_only
async def test_a_definite_no_lets_another_be_asked(open_house: OpenHouse, act: Act) -> None:
    async with open_house(annex=True) as house:
        house.lab.images.always(act)
        house.lab.videos.always(act)
        made = await house.image()
        assert made["metadata"]["provider"] == "annex"
        done = await house.finished((await house.video()).json["id"])
        assert (done["status"], done["metadata"]["executed_model"]) == ("completed", "annex/reel-1")
        assert house.lab.invoice == []
        assert await house.money() == (nanos("9.56"), 0)


@named(DOUBTFUL | NONSENSE)
@sqlite_only
async def test_a_doubtful_video_is_begun_nowhere_else(open_house: OpenHouse, act: Act) -> None:
    async with open_house(annex=True) as house:
        house.lab.videos.next(act)
        done = await house.finished((await house.video()).json["id"])
        assert (done["status"], done["error"]["code"]) == ("failed", "UPSTREAM_OUTCOME_UNKNOWN")
        assert (len(house.lab.videos), len(house.annex.videos)) == (1, 0)
        assert await house.money() == UNTOUCHED


@named(DOUBTFUL)
@sqlite_only
async def test_a_doubtful_image_is_made_nowhere_else(open_house: OpenHouse, act: Act) -> None:
    async with open_house(annex=True) as house:
        house.lab.images.next(act)
        problem = await failure(house)
        assert isinstance(problem, UpstreamError)
        assert (problem.status, problem.should_retry) == (502, False)
        assert house.annex.submits == 0
        assert await house.money() == UNTOUCHED


@named(NONSENSE)
@sqlite_only
async def test_nonsense_is_no_image(open_house: OpenHouse, act: Act) -> None:
    """Never a fault of ours in the caller's eyes, never a charge; and the next call is served."""
    async with open_house() as house:
        house.lab.images.next(act)
        problem = await failure(house)
        assert (problem.status, problem.should_retry) == (502, False)
        assert await house.money() == UNTOUCHED
        assert await house.image()


@sqlite_only
async def test_the_right_words_under_the_wrong_type(open_house: OpenHouse) -> None:
    """What can be understood is taken: plenty of servers mislabel their JSON."""
    async with open_house() as house:
        house.lab.images.next(faults.mislabelled)
        assert await house.image()


@sqlite_only
async def test_an_image_provider_that_never_answers(open_house: OpenHouse) -> None:
    async with open_house(annex=True, upstream_seconds=0.3) as house:
        house.lab.images.next(faults.stalled)
        problem = await failure(house)
        assert isinstance(problem, UpstreamTimeout)
        assert (problem.status, problem.should_retry) == (504, False)
        assert house.annex.submits == 0
        assert await house.money() == UNTOUCHED


async def test_a_video_provider_that_never_answers(open_house: OpenHouse) -> None:
    async with open_house(annex=True, upstream_seconds=0.3) as house:
        house.lab.videos.next(faults.stalled)
        video_id = (await house.video()).json["id"]
        await house.lab.videos.reached(1)
        assert (await house.shown(video_id))["status"] == "queued"
        done = await house.finished(video_id)
        assert done["error"]["code"] == "UPSTREAM_OUTCOME_UNKNOWN"
        assert house.annex.submits == 0


@sqlite_only
async def test_a_provider_that_is_not_there(open_house: OpenHouse) -> None:
    """Proof that nothing was sent: the caller may ask again by itself."""
    async with open_house() as house:
        base_url = "http://127.0.0.1:9/v1"
        providers = {"lab": {**house.lab.settings(), "base_url": base_url}}
    async with open_house(providers=providers) as house:
        problem = await failure(house)
        assert (problem.code, problem.should_retry) == ("ALL_PROVIDERS_EXHAUSTED", True)
        assert "could not be reached" in problem.message


@sqlite_only
async def test_a_video_refused_for_its_content(open_house: OpenHouse) -> None:
    async with open_house(annex=True) as house:
        house.lab.videos.next(faults.blocked, faults.is_refused)
        for _ in range(2):
            done = await house.finished((await house.video()).json["id"])
            assert done["error"]["code"] == "CONTENT_POLICY_VIOLATION"
        assert house.annex.submits == 0


async def test_two_jobs_of_one_name(open_house: OpenHouse) -> None:
    """The second cannot be told from the first, so it is not claimed."""
    async with open_house() as house:
        act = faults.film("queued", "in_progress", "completed", name="video_same")
        house.lab.videos.next(act, act)
        first = (await house.video()).json["id"]
        await house.lab.videos.reached(1)
        second = (await house.video()).json["id"]
        assert (await house.finished(second))["error"]["code"] == "UPSTREAM_OUTCOME_UNKNOWN"
        assert (await house.finished(first))["status"] == "completed"
        assert await house.money() == (nanos("9.6"), 0)


async def test_two_pictures_of_one_name(open_house: OpenHouse) -> None:
    """Answers that are here need no name; some providers give all of theirs the same."""
    async with open_house() as house:
        house.lab.next_ids.extend(["same", "same"])
        made = [await house.image(), await house.image()]
        assert [one["metadata"]["upstream_id"] for one in made] == ["same", "same"]


# ---------------------------------------------------------------------------------------------------------------- polls


@sqlite_only
async def test_trouble_with_asking_fails_nothing(open_house: OpenHouse) -> None:
    """An hour of errors of every kind; the hold stays, nothing is sent again, and it ends well."""
    async with open_house(annex=True) as house:
        trouble = [faults.broken, faults.page, faults.nonsense, faults.missing, faults.dropped, faults.busy(5)]
        house.lab.polls.next(*trouble * 8)
        video_id = (await house.video()).json["id"]

        async def weathered() -> bool:
            return len(house.lab.polls) >= 30

        began = house.clock.monotonic()
        await house.until(weathered, step_seconds=5)
        assert (await house.record(video_id))["status"] == "processing"
        assert await house.money() == (nanos("9.6"), nanos("0.4"))
        assert house.clock.monotonic() - began > 900, "the pauses grow"
        assert (await house.finished(video_id, step_seconds=5))["status"] == "completed"
        assert (len(house.lab.videos), house.annex.submits) == (1, 0)


@sqlite_only
async def test_a_job_that_a_provider_lost(open_house: OpenHouse) -> None:
    """It may have been paid for: nobody else is asked."""
    async with open_house(annex=True) as house:
        house.lab.polls.always(faults.missing)
        done = await house.finished((await house.video()).json["id"], step_seconds=5)
        assert done["error"]["code"] == "UPSTREAM_OUTCOME_UNKNOWN"
        assert house.annex.submits == 0


async def test_a_job_that_fails_goes_to_the_next(open_house: OpenHouse) -> None:
    async with open_house(annex=True) as house:
        house.lab.videos.next(faults.fails)
        done = await house.finished((await house.video()).json["id"])
        assert (done["status"], done["metadata"]["provider"]) == ("completed", "annex")
        assert await house.money() == (nanos("9.6"), 0)


@sqlite_only
async def test_a_provider_that_gives_a_job_up(open_house: OpenHouse) -> None:
    """Nobody here cancelled anything."""
    async with open_house(annex=True) as house:
        house.lab.videos.next(faults.film("queued", "cancelled"))
        done = await house.finished((await house.video()).json["id"])
        assert done["metadata"]["provider"] == "annex"


@sqlite_only
async def test_a_verdict_that_changes(open_house: OpenHouse) -> None:
    """What was finished was finished, whatever is said while the file is fetched."""
    async with open_house() as house:
        house.lab.videos.next(faults.changes_its_mind)
        house.lab.contents.next(faults.broken)
        done = await house.finished((await house.video()).json["id"])
        assert done["status"] == "completed"
        assert len(house.lab.videos) == 1


async def test_a_job_without_end(open_house: OpenHouse) -> None:
    async with open_house(job_deadline_seconds=600) as house:
        house.lab.videos.next(faults.never_ends)
        done = await house.finished((await house.video()).json["id"], step_seconds=3)
        assert done["error"]["code"] == "UPSTREAM_TIMEOUT"
        assert len(house.lab.cancels) == 1
        assert await house.money() == UNTOUCHED


@sqlite_only
async def test_a_success_that_comes_too_late(open_house: OpenHouse) -> None:
    """It had failed here; that the provider finishes after all changes nothing."""
    async with open_house(job_deadline_seconds=60) as house:
        house.lab.videos.next(faults.never_ends)
        house.lab.cancels.always(faults.broken)
        video_id = (await house.video()).json["id"]
        await house.ended(video_id, step_seconds=3)
        next(iter(house.lab.films.values())).states.append("completed")
        house.clock.advance(3600)
        await house.idle()
        assert (await house.shown(video_id))["error"]["code"] == "UPSTREAM_TIMEOUT"
        assert await house.money() == UNTOUCHED


@sqlite_only
async def test_nothing_is_begun_after_its_time(open_house: OpenHouse) -> None:
    """The gateway was away for longer than the generation may take."""
    async with open_house(works=False, worker=False) as house:
        video_id = (await house.video()).json["id"]
    house.clock.advance(25 * 3600)
    async with open_house(labs=(house.lab, house.annex)) as house:
        done = await house.finished(video_id)
        assert done["error"]["code"] == "UPSTREAM_TIMEOUT"
        assert house.lab.submits == 0


@sqlite_only
async def test_the_state_of_a_video(open_house: OpenHouse) -> None:
    """Queued while it waits there, then in progress, with steps that never go back."""
    async with open_house() as house:
        states = (
            "queued",
            "queued",
            "in_progress 10",
            "in_progress 55",
            "in_progress 30",
            "in_progress 99",
            "completed",
        )
        house.lab.videos.next(faults.film(*states))
        video_id, seen = (await house.video()).json["id"], list[tuple[str, int]]()

        async def met() -> bool:
            shown = await house.shown(video_id)
            seen.append((shown["status"], shown["progress"]))
            return bool(shown["status"] == "completed")

        await house.until(met)
        assert sorted(set(seen)) == sorted(
            [("queued", 0), ("in_progress", 10), ("in_progress", 55), ("in_progress", 99), ("completed", 100)]
        )
        assert [percent for _, percent in seen] == sorted(percent for _, percent in seen)


# ---------------------------------------------------------------------------------------------------------------- files


async def test_a_file_that_cannot_be_fetched_at_first(open_house: OpenHouse) -> None:
    """It was made, and is waited for."""
    async with open_house(annex=True) as house:
        house.lab.contents.next(faults.broken, faults.dropped, faults.cut(), faults.missing)
        done = await house.finished((await house.video()).json["id"])
        assert (done["status"], done["metadata"]["provider"]) == ("completed", "lab")
        assert len(house.lab.contents) == 5
        assert len(house.lab.invoice) == 1


@sqlite_only
async def test_a_file_that_can_never_be_fetched(open_house: OpenHouse) -> None:
    """It was made, and somebody else would make, and bill, it again."""
    async with open_house(annex=True) as house:
        house.lab.contents.always(faults.broken)
        done = await house.finished((await house.video()).json["id"], step_seconds=5)
        assert done["error"]["code"] == "UPSTREAM_ERROR"
        assert house.annex.submits == 0
        assert await house.money() == UNTOUCHED


@sqlite_only
async def test_an_image_that_cannot_be_fetched(open_house: OpenHouse) -> None:
    async with open_house(annex=True) as house:
        house.lab.gives_addresses = True
        house.lab.files.next(faults.broken)
        waiting = asyncio.create_task(house.image())
        await house.lab.files.reached(1)
        await house.idle()
        assert (await waiting)["metadata"]["provider"] == "lab"
        house.lab.files.always(faults.broken)
        waiting = asyncio.create_task(failure(house))
        await house.lab.files.reached(3)
        await house.idle()
        assert (await waiting).code == "UPSTREAM_ERROR"
        assert house.annex.submits == 0


@named(
    {
        "a page": faults.file(b"<!doctype html>" + b" " * 5000, "video/mp4"),
        "a picture": faults.file(b"\x89PNG\r\n\x1a\n" + b"\0" * 100, "video/mp4"),
        "nothing": faults.file(b"", "video/mp4"),
    }
)
@sqlite_only
async def test_a_film_that_is_none(open_house: OpenHouse, act: Act) -> None:
    """Whatever it is called: what is no film is not sold as one. Another provider may do better."""
    async with open_house(annex=True) as house:
        house.lab.contents.always(act)
        done = await house.finished((await house.video()).json["id"])
        assert (done["status"], done["metadata"]["provider"]) == ("completed", "annex")
        assert await house.money() == (nanos("9.6"), 0)


@contextmanager
def full(house: House) -> Iterator[Path]:
    """A shelf without room: its folder will take no files."""
    media = house.gateway.settings.data / "media"
    away = media.with_name("media-away")
    media.rename(away)
    media.write_text("in the way")
    try:
        yield away
    finally:
        media.unlink()
        away.rename(media)


@sqlite_only
async def test_no_room_for_an_image(open_house: OpenHouse) -> None:
    async with open_house(annex=True) as house:
        with full(house):
            problem = await failure(house)
        assert isinstance(problem, StorageUnavailable)
        assert (problem.status, problem.should_retry) == (503, False)
        assert await house.money() == UNTOUCHED
        assert house.annex.submits == 0
        assert await house.image()


@sqlite_only
async def test_no_room_for_a_recording(open_house: OpenHouse) -> None:
    """Neither for what is recorded nor for what is replayed; and a recording may lose its files."""
    async with open_house() as house:
        ask = {"x-service-replay": "replay-or-record"}
        with full(house), pytest.raises(StorageUnavailable):
            await house.image(headers=ask)
        await house.image(headers=ask)
        with full(house), pytest.raises(Problem, match="gone"):
            await house.image(headers=ask)
        assert await house.image(headers=ask)
        assert len(house.lab.images) == 2


@sqlite_only
async def test_no_room_for_a_video_yet(open_house: OpenHouse) -> None:
    """It waits for hours, unbilled, and is there as soon as there is room."""
    async with open_house() as house:
        with full(house):
            video_id = (await house.video()).json["id"]

            async def tried() -> bool:
                return len(house.lab.contents) >= 8

            await house.until(tried, step_seconds=30)
            assert (await house.shown(video_id))["status"] == "in_progress"
            assert await house.money() == (nanos("9.6"), nanos("0.4"))
        assert (await house.finished(video_id, step_seconds=5))["status"] == "completed"
        assert len(house.lab.videos) == 1


@sqlite_only
async def test_what_a_provider_says_it_charged(open_house: OpenHouse) -> None:
    """Seconds as the model makes them, tokens as they are reported; nonsense is not heeded."""
    price = {"unit": "token", "output_usd": "0.0001", "most": 1000}
    async with open_house(models={"picture": {"price": price}}) as house:
        for usage, cost in (
            ({"input_tokens": 1, "output_tokens": 10}, "0.001"),
            ({"input_tokens": 1, "output_tokens": -10}, "0.1"),
            ({"input_tokens": 1, "output_tokens": "many"}, "0.1"),
            ({"input_tokens": 1, "output_tokens": 10**30}, "0.1"),
        ):
            house.lab.usage = usage
            assert (await house.image())["metadata"]["cost"] == Decimal(cost), usage


@sqlite_only
async def test_nothing_is_left_in_the_scratch_folder(open_house: OpenHouse) -> None:
    async with open_house() as house:
        house.lab.contents.next(faults.cut(), faults.file(b"<html>", "video/mp4"))
        await house.finished((await house.video()).json["id"])
        assert house.scratch == []
