"""What a provider finishes after we gave up: our loss, once; nothing for the caller, no second event."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from penstock.accounts.audit import orphans
from penstock.generations import orphans as late
from penstock.schema import Caller
from penstock.values import nanos
from tests.house import House, OpenHouse, neighbours, sqlite_only
from tests.upstreams import faults
from tests.upstreams.server import answers

HOOK = "https://receiver.example/hook"
UNTOUCHED = (nanos("10"), 0)
DAY = 86_400.0


async def given_up(house: House, **body: Any) -> str:
    """A video that the provider goes on making after its deadline, having ignored that it was called off."""
    house.lab.videos.next(faults.never_ends)
    house.lab.cancels.always(faults.rejected)
    video_id: str = (await house.video(webhook_url=HOOK, **body)).json["id"]
    done = await house.finished(video_id, step_seconds=10)
    assert done["error"]["code"] == "UPSTREAM_TIMEOUT"
    return video_id


async def states(house: House, video_id: str) -> list[str]:
    return [row["state"] for row in await house.attempts(video_id)]


def is_now(house: House, video_id: str, *wanted: str) -> Callable[[], Awaitable[bool]]:
    async def met() -> bool:
        return await states(house, video_id) == list(wanted)

    return met


def finish(house: House, state: str) -> None:
    for film in house.lab.films.values():
        film.states.clear()
        film.states.append(state)


async def test_a_late_success(open_house: OpenHouse) -> None:
    async with open_house(job_deadline_seconds=60) as house:
        video_id = await given_up(house)
        before = await house.shown(video_id), await house.record(video_id), await house.rows("SELECT * FROM messages")
        finish(house, "completed")
        await house.until(is_now(house, video_id, "made"), step_seconds=10)
        assert (await house.shown(video_id), await house.record(video_id)) == before[:2]
        news = await house.rows("SELECT * FROM messages")
        assert [(row["id"], row["event"], row["body"]) for row in news] == [
            (row["id"], row["event"], row["body"]) for row in before[2]
        ]
        assert await house.money() == UNTOUCHED
        (attempt,) = await house.attempts(video_id)
        losses = await house.rows("SELECT ref, amount, source, target FROM transfers WHERE kind = 'loss'")
        assert losses == [
            {"ref": attempt["id"], "amount": nanos("0.4"), "source": "platform_loss", "target": "providers"}
        ]
        assert await orphans(house.gateway.store) == (1, nanos("0.4"))
        asked = len(house.lab.polls)
        house.clock.advance(DAY)
        assert await late.ask(house.gateway) == 0
        assert len(house.lab.polls) == asked, "it is over"


@pytest.mark.parametrize(("state", "then"), [("failed", "failed"), ("gone", "cancelled")])
@sqlite_only
async def test_a_job_that_came_to_nothing(open_house: OpenHouse, state: str, then: str) -> None:
    async with open_house(job_deadline_seconds=60) as house:
        video_id = await given_up(house)
        if state == "gone":
            house.lab.films.clear()
        else:
            finish(house, state)
        await house.until(is_now(house, video_id, then), step_seconds=10)
        assert await orphans(house.gateway.store) == (0, 0)


@sqlite_only
async def test_questions_are_few(open_house: OpenHouse) -> None:
    """A job that never ends, and one that nothing sensible is said about, are asked about five times, then let be."""
    async with neighbours() as labs:
        async with open_house(labs=labs, job_deadline_seconds=60) as house:
            await given_up(house)
        labs[0].polls.next(faults.ok, faults.broken, faults.nonsense)
        before, pauses = len(labs[0].polls), []
        async with open_house(labs=labs, works=False) as house:
            while (due := (await house.rows("SELECT ask_at_ms FROM attempts"))[0]["ask_at_ms"]) is not None:
                pauses.append(round((due - house.clock.steady_ms()) / 60_000))
                house.clock.advance((due - house.clock.steady_ms() - 1) / 1000)
                await late.ask(house.gateway)
                assert len(labs[0].polls) == before + len(pauses) - 1, "not yet"
                house.clock.advance(0.001)
                assert await late.ask(house.gateway) == 0
            assert pauses == [1, 4, 16, 64, 256]
            house.clock.advance(DAY)
            assert await late.ask(house.gateway) == 0
        assert len(labs[0].polls) == before + 5


@sqlite_only
async def test_each_of_several_is_a_loss_of_its_own(open_house: OpenHouse) -> None:
    async with open_house(job_deadline_seconds=60) as house:
        house.lab.videos.next(faults.never_ends, faults.never_ends)
        video_id = await given_up(house, n=3)
        finish(house, "completed")
        await house.until(is_now(house, video_id, "made", "made", "made"), step_seconds=10)
        assert await orphans(house.gateway.store) == (3, nanos("1.2"))


@sqlite_only
async def test_a_cancel_that_was_taken_and_not_kept(open_house: OpenHouse) -> None:
    """The provider said yes to the cancel, and made it all the same."""
    async with open_house() as house:
        house.lab.videos.next(faults.never_ends)
        house.lab.cancels.always(answers({}))
        video_id = (await house.video()).json["id"]
        await house.until(is_now(house, video_id, "submitted"))
        await house.cancel(video_id)
        assert (await house.finished(video_id))["error"]["code"] == "CANCELLED"
        finish(house, "completed")
        await house.until(is_now(house, video_id, "made"), step_seconds=10)
        assert (await house.shown(video_id))["error"]["code"] == "CANCELLED"
        assert await house.money() == UNTOUCHED
        assert await orphans(house.gateway.store) == (1, nanos("0.4"))


@sqlite_only
async def test_asked_by_two_at_once(open_house: OpenHouse) -> None:
    async with open_house(job_deadline_seconds=60) as house:
        video_id = await given_up(house)
        finish(house, "completed")
        row = {**(await house.attempts(video_id))[0]}
        assert sorted([await late._ask(house.gateway, row), await late._ask(house.gateway, row)]) == [False, True]
        assert await orphans(house.gateway.store) == (1, nanos("0.4"))


@sqlite_only
async def test_after_a_purge_nothing_is_asked(open_house: OpenHouse) -> None:
    async with open_house(job_deadline_seconds=60) as house:
        video_id = await given_up(house)
        await house.purge(video_id)
        before = len(house.lab.polls)
        house.clock.advance(DAY)
        assert await late.ask(house.gateway) == 0
        assert len(house.lab.polls) == before


@sqlite_only
async def test_a_provider_that_is_not_set_up_any_more(open_house: OpenHouse, ground: Any) -> None:
    async with open_house(job_deadline_seconds=60) as house:
        await given_up(house)
        caller: Caller = house.caller
    async with open_house(labs=(house.lab, house.annex), providers={}, works=False) as house:
        house.clock.advance(DAY)
        assert await late.ask(house.gateway) == 0
        assert house.caller == caller
