"""Retrieving images and videos: only by their organization, and with what happened to them."""

import asyncio
from contextlib import AsyncExitStack
from decimal import Decimal
from typing import Any

import msgspec
import pytest

from penstock import errors
from penstock.api.responses import encode
from penstock.errors import Conflict, NotFound
from penstock.generation_jobs.rows import ShownRow
from penstock.generations import retrieve
from penstock.long_bodies.buffers import Buffer
from penstock.schema import Caller, Response
from penstock.values import OrgId
from tests.fake_providers import faults
from tests.fake_providers.scripted import mp4
from tests.gateway import OpenGateway, RunningGateway, sqlite_only


async def listed(
    running: RunningGateway,
    caller: Caller | None = None,
    limit: int = 20,
    after: str | None = None,
    *,
    ascending: bool = False,
) -> Any:
    call = running.call(endpoint="/compat/v1/videos", caller=caller)
    response = await retrieve.list_videos(running.gateway, call, limit, after, ascending=ascending)
    return msgspec.json.decode(encode(response.json))


async def content(running: RunningGateway, video_id: str, **headers: str) -> Response:
    return await retrieve.video_content(running.gateway, running.call(id=video_id, headers=headers))


async def image(running: RunningGateway, request_id: str) -> Response:
    return await retrieve.image_status(running.gateway, running.call(id=request_id))


# --------------------------------------------------------------------------------------------------------------- videos


async def test_an_unfinished_video(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        running.lab.videos.next(faults.video_states("queued", "in_progress 40"))
        video_id = (await running.video()).json["id"]

        async def begun() -> bool:
            return bool((await running.get_video(video_id))["status"] == "in_progress")

        await running.wait_until(begun)
        response = await retrieve.video(running.gateway, running.call(id=video_id))
        assert response.headers["openai-poll-after-ms"] == "1000"
        shown = response.json
        assert (shown["progress"], shown["completed_at"], shown["expires_at"], shown["output"]) == (
            40,
            None,
            None,
            None,
        )
        assert shown["metadata"]["upstream_id"] in running.lab.video_jobs
        assert shown["metadata"]["cost_estimate"] == Decimal("0.4")
        assert "cost" not in shown["metadata"]


@sqlite_only
async def test_others_run_between_the_videos_of_a_list(
    open_gateway: OpenGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hundred prompts may have 13 MB together, and take long to decode and encode."""
    rounds = 0
    encoded_in: list[int] = []
    encode = retrieve._encode

    def note_round(video: Any) -> bytes:
        encoded_in.append(rounds)
        return encode(video)

    async def count_rounds() -> None:
        nonlocal rounds
        while True:
            rounds += 1
            await asyncio.sleep(0)

    monkeypatch.setattr(retrieve, "_encode", note_round)
    async with open_gateway(works=False, worker=False) as running:
        for _ in range(5):
            await running.video(prompt="é" * 30_000)
        counting = asyncio.create_task(count_rounds())
        found = await listed(running)
        counting.cancel()
        assert [len(video["prompt"]) for video in found["data"]] == [30_000] * 5
        assert len({*encoded_in}) == 5, "each in a round of its own"


@sqlite_only
async def test_a_finished_video_need_not_be_polled(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        video_id = (await running.wait_for_video((await running.video()).json["id"]))["id"]
        assert (await retrieve.video(running.gateway, running.call(id=video_id))).headers == {}


@sqlite_only
async def test_a_failed_video(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        running.lab.videos.next(faults.fails)
        shown = await running.wait_for_video((await running.video()).json["id"])
        assert shown["error"]["code"] == "ALL_PROVIDERS_EXHAUSTED"
        assert "The video could not be made." in shown["error"]["message"]
        assert (shown["output"], shown["completed_at"]) == (None, None)
        assert not {"cost", "cost_estimate"} & set(shown["metadata"])


async def test_pages_of_videos(open_gateway: OpenGateway) -> None:
    async with open_gateway(works=False, worker=False) as running:
        made = []
        for _ in range(5):
            running.clock.advance(1)
            made.append((await running.video()).json["id"])
        page = await listed(running, limit=2)
        assert [video["id"] for video in page["data"]] == [made[4], made[3]]
        assert (page["object"], page["first_id"], page["last_id"], page["has_more"]) == ("list", made[4], made[3], True)
        page = await listed(running, limit=3, after=made[3])
        assert [video["id"] for video in page["data"]] == made[2::-1]
        assert page["has_more"] is False
        page = await listed(running, limit=2, after=made[1], ascending=True)
        assert [video["id"] for video in page["data"]] == made[2:4]
        assert page["has_more"] is True
        assert (await listed(running, await running.create_caller_in_new_org()))["data"] == []


@sqlite_only
async def test_a_list_reads_only_what_it_shows(open_gateway: OpenGateway) -> None:
    """A hundred rows are read at once, and a plan, which is shown until there is a result, may repeat the request."""
    async with open_gateway() as running:
        completed = (await running.wait_for_video((await running.video()).json["id"]))["id"]
        running.lab.videos.next(faults.rejected)
        failed = (await running.wait_for_video((await running.video()).json["id"]))["id"]
        rows = await running.gateway.store.all(
            "list_older_generations", org_id=running.caller.org_id, low="req_", high="req_~", limit=10
        )
        assert [set(row) for row in rows] == [set(ShownRow.__struct_fields__)] * 2
        assert {row["id"]: row["plan"] is None for row in rows} == {completed: True, failed: False}
        for video in (await listed(running))["data"]:
            assert video == msgspec.json.decode(encode(await running.get_video(video["id"])))


@sqlite_only
async def test_the_cursor_of_another_organization_is_unknown(open_gateway: OpenGateway) -> None:
    async with open_gateway(works=False, worker=False) as running:
        video_id = (await running.video()).json["id"]
        with pytest.raises(NotFound):
            await listed(running, await running.create_caller_in_new_org(), after=video_id)


# -------------------------------------------------------------------------------------------------------------- content


@sqlite_only
async def test_the_content_of_a_video(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        video_id = (await running.wait_for_video((await running.video()).json["id"]))["id"]
        response = await content(running, video_id)
        assert response.chunks is not None
        assert b"".join([chunk async for chunk in response.chunks]) == mp4()
        assert response.headers["content-type"] == "video/mp4"
        part = await content(running, video_id, range="bytes=4-7")
        assert part.chunks is not None
        assert (part.status, b"".join([chunk async for chunk in part.chunks])) == (206, b"ftyp")


@sqlite_only
async def test_previews_read_the_video_when_a_child_process_is_free(
    open_gateway: OpenGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A preview costs nothing, so any number of them may wait, and each video may have hundreds of megabytes."""
    async with open_gateway() as running:
        video_id = (await running.wait_for_video((await running.video()).json["id"]))["id"]
        pool = running.gateway.worker_pool
        read = running.gateway.media.read
        reads = 0

        async def count_and_read(media_id: str, size_bytes: int) -> Buffer:
            nonlocal reads
            reads += 1
            return await read(media_id, size_bytes)

        async def all_wait() -> bool:
            share = pool._places._shares.get(running.caller.org_id)
            return share is not None and len(share.waiting) == 3

        monkeypatch.setattr(running.gateway.media, "read", count_and_read)
        call = running.call(id=video_id)
        async with AsyncExitStack() as others:
            for number in range(pool.workers):
                await others.enter_async_context(pool._places.place(OrgId(f"org_{number}")))
            previews = [
                asyncio.create_task(retrieve.video_preview(running.gateway, call, "thumbnail")) for _ in range(3)
            ]
            await running.wait_until(all_wait, 0)
            assert reads == 0
        assert {response.media_type for response in await asyncio.gather(*previews)} == {"image/webp"}
        assert reads == 3


@sqlite_only
async def test_no_content_before_completion_or_after_expiry(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        running.lab.videos.next(faults.ok, faults.fails, faults.never_ends)
        done, failed = [(await running.wait_for_video((await running.video()).json["id"]))["id"] for _ in range(2)]
        unfinished = (await running.video()).json["id"]
        for video_id in (unfinished, failed):
            with pytest.raises(Conflict, match="has no content"):
                await content(running, video_id)
        running.clock.advance(25 * 3600)
        with pytest.raises(NotFound, match="gone"):
            await content(running, done)
        await running.wait_until_idle()


# --------------------------------------------------------------------------------------------------------------- images


@sqlite_only
async def test_an_image_by_its_id(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        made = await running.image()
        again = (await image(running, made["id"])).json
        for shown in (again, made):
            del shown["metadata"]["url_expires_at"]  # with the new URLs
        assert {**again, "data": None} == {**made, "data": None}
        assert again["data"][0]["url"].split("?")[0] == made["data"][0]["url"].split("?")[0]


@sqlite_only
async def test_an_image_that_failed(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        running.lab.images.next(faults.blocked)
        started = await running.image(headers={"prefer": "respond-async"})
        await running.wait_for_request(started["id"])
        shown = (await image(running, started["id"])).json
        assert (shown["status"], shown["error"]["code"]) == ("failed", "CONTENT_POLICY_VIOLATION")


@pytest.mark.parametrize("fields", [{}, {"response_format": "b64_json"}])
@sqlite_only
async def test_an_expired_image(open_gateway: OpenGateway, fields: dict[str, Any]) -> None:
    async with open_gateway() as running:
        purged, expired = await running.image(**fields), await running.image(**fields)
        await running.purge(purged["id"])
        running.clock.advance(25 * 3600)
        for made in (purged, expired):
            with pytest.raises(NotFound, match="gone"):
                await image(running, made["id"])


@sqlite_only
async def test_an_image_is_no_video_and_a_video_no_image(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        image_id, video_id = (await running.image())["id"], (await running.video()).json["id"]
        with pytest.raises(NotFound):
            await running.get_video(image_id)
        with pytest.raises(NotFound):
            await image(running, video_id)
        await running.wait_until_idle()


# -------------------------------------------------------------------------------------------------------------- tenants


async def test_an_id_of_another_organization_is_unknown(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        stranger = await running.create_caller_in_new_org()
        image_id, video_id = (
            (await running.image())["id"],
            (await running.wait_for_video((await running.video()).json["id"]))["id"],
        )
        unknown = "req_" + "0" * 32
        asks = (retrieve.image_status, retrieve.video, retrieve.video_content)
        for ask in asks:
            problems = []
            for found in (image_id, video_id, unknown):
                with pytest.raises(NotFound) as caught:
                    await ask(running.gateway, running.call(id=found, caller=stranger))
                problem = caught.value
                problems.append((problem.status, problem.code, problem.headers, problem.message.replace(found, "")))
            assert len(set(map(repr, problems))) == 1


def test_every_stored_code_becomes_its_problem() -> None:
    for code, status in (("CONTENT_POLICY_VIOLATION", 400), ("UPSTREAM_TIMEOUT", 504), ("NONESUCH", 502), ("", 502)):
        problem = retrieve.stored_problem(code, "words")
        assert (problem.status, problem.message, problem.should_retry, problem.recorded) == (
            status,
            "words",
            False,
            True,
        )
    for kind in errors.problem_kinds():
        assert type(retrieve.stored_problem(kind.code, "words")) is kind


@sqlite_only
async def test_a_restarted_process_gives_the_same_response(open_gateway: OpenGateway) -> None:
    """Everything in the response comes from the store."""
    async with open_gateway() as running:
        made, done = await running.image(), await running.wait_for_video((await running.video(n=2)).json["id"])
        labs = (running.lab, running.annex)
    async with open_gateway(labs=labs, works=False) as running:
        again = (await image(running, made["id"])).json
        for shown in (again, made):
            del shown["metadata"]["url_expires_at"]  # with the new URLs
        assert {**again, "data": None} == {**made, "data": None}
        assert await running.get_video(done["id"]) == done
