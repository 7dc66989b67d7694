"""Stand-ins: one recording for calls that come together, takeover when it fails, cancel while waiting."""

import asyncio

import pytest

from penstock.errors import Problem
from penstock.generations import endpoints, retrieve
from tests.house import House, OpenHouse, neighbours, sqlite_only
from tests.upstreams import faults

WISH = {"model": "picture", "prompt": "a pear", "size": "64x64"}
FILM = {"model": "film", "prompt": "a train", "seconds": 4}
OR_RECORD = {"x-service-replay": "replay-or-record"}


async def image(house: House, headers: dict[str, str]) -> dict[str, str]:
    answer = await endpoints.make_images(house.gateway, house.call(WISH, endpoint="/image", headers=headers))
    return dict(answer.headers)


async def together(house: House, count: int) -> list[dict[str, str] | BaseException]:
    """Calls made at once, while time passes."""
    calls = asyncio.gather(*(image(house, OR_RECORD) for _ in range(count)), return_exceptions=True)

    async def met() -> bool:
        return calls.done()

    await house.until(met)
    return list(await calls)


async def test_d10_calls_alike_make_one_recording_and_one_upstream_call(open_house: OpenHouse) -> None:
    async with open_house() as house:
        answers = await together(house, 5)
        assert len(house.lab.invoice) == 1
        recordings = (await house.gateway.recordings.page(house.caller.org_id)).data
        assert len(recordings) == 1
        stands = sorted(one["x-service-replay-status"] for one in answers if isinstance(one, dict))
        assert stands == ["recorded", *["replayed"] * 4]
        assert {one["x-service-replay-recording"] for one in answers if isinstance(one, dict)} == {recordings[0]["id"]}


@sqlite_only
async def test_when_the_first_fails_the_next_one_records(open_house: OpenHouse) -> None:
    async with open_house() as house:
        house.lab.images.next(faults.error(500, "Oops."))
        answers = await together(house, 3)
        assert sum(isinstance(one, Problem) for one in answers) == 1
        assert sorted(one["x-service-replay-status"] for one in answers if isinstance(one, dict)) == [
            "recorded",
            "replayed",
        ]
        assert len((await house.gateway.recordings.page(house.caller.org_id)).data) == 1


@sqlite_only
async def test_videos_alike_follow_the_first(open_house: OpenHouse) -> None:
    async with open_house() as house:
        calls = [house.call(FILM, headers=OR_RECORD) for _ in range(3)]
        started = [await endpoints.start_video(house.gateway, one) for one in calls]
        assert [one.headers["x-service-replay-status"] for one in started] == ["recorded", "replayed", "replayed"]
        for one in started:
            assert (await house.ended(one.json["id"]))["status"] == "completed"
        assert len(house.lab.invoice) == 1
        costs = [(await house.record(one.json["id"]))["cost"] for one in started]
        assert [cost > 0 for cost in costs] == [True, False, False]


@sqlite_only
async def test_a_replay_can_be_cancelled_while_it_waits(open_house: OpenHouse) -> None:
    async with open_house() as house:
        first = await endpoints.start_video(house.gateway, house.call(FILM, headers={"x-service-replay": "record"}))
        await house.ended(first.json["id"])
        headers = {"x-service-replay": "replay-or-error", "x-service-replay-latency": "1000,900000"}
        waiting = await endpoints.start_video(house.gateway, house.call(FILM, headers=headers))
        await house.cancel(waiting.json["id"])
        record = await house.ended(waiting.json["id"], 0.01)
        assert (record["status"], record["cost"]) == ("cancelled", 0)


@sqlite_only
async def test_a_recording_deleted_meanwhile_fails_the_replay(open_house: OpenHouse) -> None:
    """Accepted while there was a recording, and driven by the next process when there is none."""
    async with neighbours() as labs:
        async with open_house(labs=labs) as house:
            first = await endpoints.start_video(house.gateway, house.call(FILM, headers={"x-service-replay": "record"}))
            await house.ended(first.json["id"])
            recording = first.headers["x-service-replay-recording"]
        async with open_house(labs=labs, works=False, worker=False) as house:
            headers = {"x-service-replay": "replay-or-error"}
            again = await endpoints.start_video(house.gateway, house.call(FILM, headers=headers))
            await house.gateway.recordings.delete(house.caller.org_id, recording)
        async with open_house(labs=labs) as house:
            record = await house.ended(again.json["id"])
            assert (record["status"], record["error_code"]) == ("upstream_failure", "RECORDING_NOT_FOUND")


@sqlite_only
async def test_purge_takes_the_recordings_of_a_request_along(open_house: OpenHouse) -> None:
    async with open_house() as house:
        made = house.call(WISH, endpoint="/image", headers={"x-service-replay": "record"})
        await endpoints.make_images(house.gateway, made)
        assert (await house.purge(made.id))["media_deleted"] == 2
        assert (await house.gateway.recordings.page(house.caller.org_id)).data == []
        assert await house.shelf.keys() == []


@sqlite_only
async def test_a_replay_outlives_the_media_of_the_request_it_was_made_from(open_house: OpenHouse) -> None:
    async with open_house() as house:
        made = house.call(WISH, endpoint="/image", headers={"x-service-replay": "record"})
        await endpoints.make_images(house.gateway, made)
        house.clock.advance(3 * 86_400)
        await house.gateway.media.sweep()
        answer = await image(house, {"x-service-replay": "replay-or-error"})
        assert answer["x-service-replay-status"] == "replayed"


@sqlite_only
async def test_retrieving_says_how_it_came_about(open_house: OpenHouse) -> None:
    async with open_house() as house:
        started = await endpoints.start_video(house.gateway, house.call(FILM, headers={"x-service-replay": "mock"}))
        await house.ended(started.json["id"])
        shown = await retrieve.video(house.gateway, house.call(id=started.json["id"]))
        assert shown.headers["x-service-replay-status"] == "mocked"
        plain = await endpoints.start_video(house.gateway, house.call(FILM))
        assert "x-service-replay-status" not in plain.headers
        await house.ended(plain.json["id"])


@pytest.mark.parametrize("kind", ["record", "mock"])
@sqlite_only
async def test_books_stay_right(open_house: OpenHouse, kind: str) -> None:
    async with open_house() as house:
        before = await house.money()
        await image(house, {"x-service-replay": kind})
        after = await house.money()
        assert (after == before) is (kind == "mock")
