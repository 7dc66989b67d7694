"""What callers ask about afterwards is theirs alone, and says what happened."""

from decimal import Decimal
from typing import Any

import pytest

from penstock.errors import Conflict, InvalidRequest, NotFound, Problem
from penstock.generations import retrieve
from penstock.schema import Caller, Response
from tests.house import House, OpenHouse, sqlite_only
from tests.upstreams import faults
from tests.upstreams.lab import mp4


async def listed(house: House, caller: Caller | None = None, **query: Any) -> Any:
    call = house.call(endpoint="/compat/v1/videos", query=query, caller=caller)
    return (await retrieve.list_videos(house.gateway, call)).json


async def content(house: House, video_id: str, **headers: str) -> Response:
    return await retrieve.video_content(house.gateway, house.call(id=video_id, headers=headers))


async def image(house: House, request_id: str) -> Response:
    return await retrieve.image_status(house.gateway, house.call(id=request_id))


# --------------------------------------------------------------------------------------------------------------- videos


async def test_a_video_while_it_is_made(open_house: OpenHouse) -> None:
    async with open_house() as house:
        house.lab.videos.next(faults.film("queued", "in_progress 40"))
        video_id = (await house.video()).json["id"]

        async def begun() -> bool:
            return bool((await house.shown(video_id))["status"] == "in_progress")

        await house.until(begun)
        answer = await retrieve.video(house.gateway, house.call(id=video_id))
        assert answer.headers["openai-poll-after-ms"] == "1000"
        shown = answer.json
        assert (shown["progress"], shown["completed_at"], shown["expires_at"], shown["output"]) == (
            40,
            None,
            None,
            None,
        )
        assert shown["metadata"]["upstream_id"] in house.lab.films
        assert shown["metadata"]["cost_estimate"] == Decimal("0.4")
        assert "cost" not in shown["metadata"]


@sqlite_only
async def test_a_finished_video_need_not_be_polled(open_house: OpenHouse) -> None:
    async with open_house() as house:
        video_id = (await house.finished((await house.video()).json["id"]))["id"]
        assert (await retrieve.video(house.gateway, house.call(id=video_id))).headers == {}


@sqlite_only
async def test_a_failed_video(open_house: OpenHouse) -> None:
    async with open_house() as house:
        house.lab.videos.next(faults.fails)
        shown = await house.finished((await house.video()).json["id"])
        assert shown["error"]["code"] == "ALL_PROVIDERS_EXHAUSTED"
        assert "The film could not be made." in shown["error"]["message"]
        assert (shown["output"], shown["completed_at"]) == (None, None)
        assert not {"cost", "cost_estimate"} & set(shown["metadata"])


async def test_pages_of_videos(open_house: OpenHouse) -> None:
    async with open_house(works=False, worker=False) as house:
        made = []
        for _ in range(5):
            house.clock.advance(1)
            made.append((await house.video()).json["id"])
        page = await listed(house, limit="2")
        assert [one["id"] for one in page["data"]] == [made[4], made[3]]
        assert (page["object"], page["first_id"], page["last_id"], page["has_more"]) == ("list", made[4], made[3], True)
        page = await listed(house, limit="3", after=made[3])
        assert [one["id"] for one in page["data"]] == made[2::-1]
        assert page["has_more"] is False
        page = await listed(house, order="asc", after=made[1], limit="2")
        assert [one["id"] for one in page["data"]] == made[2:4]
        assert page["has_more"] is True
        assert (await listed(house, await house.another()))["data"] == []


@pytest.mark.parametrize(
    "query", [{"limit": "0"}, {"limit": "101"}, {"limit": "x"}, {"limit": "٣"}, {"limit": "10000"}, {"order": "up"}]
)
@sqlite_only
async def test_pages_that_cannot_be(open_house: OpenHouse, query: dict[str, Any]) -> None:
    async with open_house(works=False) as house:
        with pytest.raises(InvalidRequest, match=next(iter(query))):
            await listed(house, **query)


@sqlite_only
async def test_a_cursor_of_somebody_else(open_house: OpenHouse) -> None:
    async with open_house(works=False, worker=False) as house:
        video_id = (await house.video()).json["id"]
        with pytest.raises(NotFound):
            await listed(house, await house.another(), after=video_id)


# -------------------------------------------------------------------------------------------------------------- content


@sqlite_only
async def test_the_file_itself(open_house: OpenHouse) -> None:
    async with open_house() as house:
        video_id = (await house.finished((await house.video()).json["id"]))["id"]
        answer = await content(house, video_id)
        assert answer.chunks is not None
        assert b"".join([chunk async for chunk in answer.chunks]) == mp4()
        assert answer.headers["content-type"] == "video/mp4"
        part = await content(house, video_id, range="bytes=4-7")
        assert part.chunks is not None
        assert (part.status, b"".join([chunk async for chunk in part.chunks])) == (206, b"ftyp")


@sqlite_only
async def test_no_file_yet_and_no_file_any_more(open_house: OpenHouse) -> None:
    async with open_house() as house:
        house.lab.videos.next(faults.ok, faults.fails, faults.never_ends)
        done, failed = [(await house.finished((await house.video()).json["id"]))["id"] for _ in range(2)]
        running = (await house.video()).json["id"]
        for video_id in (running, failed):
            with pytest.raises(Conflict, match="has no content"):
                await content(house, video_id)
        house.clock.advance(25 * 3600)
        with pytest.raises(NotFound, match="gone"):
            await content(house, done)
        await house.idle()


# --------------------------------------------------------------------------------------------------------------- images


@sqlite_only
async def test_an_image_by_its_id(open_house: OpenHouse) -> None:
    async with open_house() as house:
        made = await house.image()
        again = (await image(house, made["id"])).json
        assert {**again, "data": None} == {**made, "data": None}
        assert again["data"][0]["url"].split("?")[0] == made["data"][0]["url"].split("?")[0]


@sqlite_only
async def test_an_image_that_failed(open_house: OpenHouse) -> None:
    async with open_house() as house:
        house.lab.images.next(faults.blocked)
        started = await house.image(headers={"prefer": "respond-async"})
        await house.ended(started["id"])
        shown = (await image(house, started["id"])).json
        assert (shown["status"], shown["error"]["code"]) == ("failed", "CONTENT_POLICY_VIOLATION")


@pytest.mark.parametrize("wish", [{}, {"response_format": "b64_json"}])
@sqlite_only
async def test_an_image_that_is_gone(open_house: OpenHouse, wish: dict[str, Any]) -> None:
    async with open_house() as house:
        purged, expired = await house.image(**wish), await house.image(**wish)
        await house.purge(purged["id"])
        house.clock.advance(25 * 3600)
        for made in (purged, expired):
            with pytest.raises(NotFound, match="gone"):
                await image(house, made["id"])


@sqlite_only
async def test_images_and_videos_are_not_mixed_up(open_house: OpenHouse) -> None:
    async with open_house() as house:
        picture, film = (await house.image())["id"], (await house.video()).json["id"]
        with pytest.raises(NotFound):
            await house.shown(picture)
        with pytest.raises(NotFound):
            await image(house, film)
        await house.idle()


# -------------------------------------------------------------------------------------------------------------- tenants


async def test_a_foreign_id_is_like_none_at_all(open_house: OpenHouse) -> None:
    async with open_house() as house:
        stranger = await house.another()
        picture, film = (await house.image())["id"], (await house.finished((await house.video()).json["id"]))["id"]
        unknown = "req_" + "0" * 32
        asks = (retrieve.image_status, retrieve.video, retrieve.video_content)
        for ask in asks:
            told = []
            for found in (picture, film, unknown):
                with pytest.raises(NotFound) as caught:
                    await ask(house.gateway, house.call(id=found, caller=stranger))
                problem = caught.value
                told.append((problem.status, problem.code, problem.headers, problem.message.replace(found, "")))
            assert len(set(map(repr, told))) == 1


def test_every_code_becomes_its_problem_again() -> None:
    for code, status in (("CONTENT_POLICY_VIOLATION", 400), ("UPSTREAM_TIMEOUT", 504), ("NONESUCH", 502), ("", 502)):
        problem = retrieve.problem_of(code, "words")
        assert (problem.status, problem.message, problem.should_retry, problem.recorded) == (
            status,
            "words",
            False,
            True,
        )
    assert isinstance(retrieve.problem_of("INTERNAL_ERROR", ""), Problem)


@sqlite_only
async def test_an_answer_from_the_next_process(open_house: OpenHouse) -> None:
    """Everything that is shown comes from the store."""
    async with open_house() as house:
        made, done = await house.image(), await house.finished((await house.video(n=2)).json["id"])
        labs = (house.lab, house.annex)
    async with open_house(labs=labs, works=False) as house:
        again = (await image(house, made["id"])).json
        assert {**again, "data": None} == {**made, "data": None}
        assert await house.shown(done["id"]) == done
