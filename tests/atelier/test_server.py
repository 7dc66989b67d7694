"""The built-in provider's server: images and chat at once, videos as jobs, and every job comes to an end."""

import asyncio
import io
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import av
import msgspec
import pytest
from PIL import Image

from penstock.imaging.workers import WorkerPool, WorkFailed
from penstock.providers.spec import HttpRequest, LocalServer, LocalTools, Reply
from penstock.upstream import local
from penstock.values import OrgId
from penstock_atelier.server import AtelierServer, Job
from penstock_atelier.table import PROVIDER, read_images
from tests.child_tasks import run_tasks_in_threads
from tests.fake_providers.scripted import png
from tests.http_client import wait_until

ORG = OrgId("org_1")

VIDEO = {"prompt": "a lighthouse", "seconds": 1.0, "width": 64, "height": 64}
EXTRAS = {"foo": 1, "path": "/etc/passwd", "name": "sketch", "progress": 1, "fps": 60, "images": 3}


@asynccontextmanager
async def open_server() -> AsyncIterator[LocalServer]:
    """The server as the gateway starts it; its child tasks run in threads."""
    async with WorkerPool(2, tasks=local.child_tasks([PROVIDER])) as pool:
        run_tasks_in_threads(pool)
        server = local.start_servers([PROVIDER], pool)["atelier"]
        try:
            yield server
        finally:
            await server.close()


async def no_stream(name: str, arguments: Mapping[str, Any], for_org: OrgId) -> AsyncGenerator[bytes, None]:
    """Tasks that stream are not for this server."""
    yield b""


@asynccontextmanager
async def open_server_with(run: Callable[[], Any]) -> AsyncIterator[AtelierServer]:
    """A server whose child tasks are played by a function."""

    async def run_task(
        name: str, arguments: Mapping[str, Any], for_org: OrgId, progress: Callable[[float], None] | None = None
    ) -> dict[str, Any]:
        result: dict[str, Any] = await run()
        return result

    server = AtelierServer(LocalTools(run=run_task, stream=no_stream))
    try:
        yield server
    finally:
        await server.close()


async def send(
    server: LocalServer, method: str, path: str, fields: Mapping[str, Any] | None = None
) -> tuple[int, dict[str, Any]]:
    reply = await server.send(HttpRequest(method, f"atelier:{path}", {}, msgspec.msgpack.encode(fields or {})), ORG)
    return reply.status, msgspec.msgpack.decode(reply.body)


async def draw(server: LocalServer, endpoint: str, **fields: Any) -> list[Image.Image]:
    status, reply = await send(server, "POST", f"/{endpoint}", fields)
    assert status == 200, reply
    return [Image.open(io.BytesIO(image["data"])) for image in reply["images"]]


def jobs(server: LocalServer) -> dict[str, Job]:
    assert isinstance(server, AtelierServer)
    return server._jobs


async def finished(server: LocalServer, job_id: str) -> dict[str, Any]:
    await wait_until(lambda: jobs(server)[job_id].is_finished)
    return (await send(server, "GET", f"/videos/{job_id}"))[1]


# --------------------------------------------------------------------------------------------------------------- images


async def test_images() -> None:
    async with open_server() as server:
        fields = {"prompt": "a lighthouse at dusk", "width": 96, "height": 64}
        first, second = await draw(server, "sketch", n=2, **fields)
        assert (first.size, second.size) == ((96, 64), (96, 64))
        assert first.tobytes() != second.tobytes(), "two images of one request differ"
        (again,) = await draw(server, "sketch", n=1, **fields)
        assert again.tobytes() == first.tobytes(), "the same words and the same seed give the same image"
        (edited,) = await draw(server, "retouch", images=[png(96, 64)], **fields)
        assert edited.size == (96, 64)
        (larger,) = await draw(server, "enlarge", images=[png(32, 16)], scale_factor=2)
        assert larger.size == (64, 32)


async def test_words_that_are_not_drawn_are_named_in_the_revised_prompt() -> None:
    size = {"width": 32, "height": 32}
    async with open_server() as server:
        for prompt, revised in (
            ("a lighthouse at dusk, calm sea", None),
            ("a red sports car", "a red sports car [not drawn, unknown to Atelier: sports, car]"),
        ):
            _, reply = await send(server, "POST", "/sketch", {"prompt": prompt, **size})
            result = read_images(Reply(200, {}, msgspec.msgpack.encode(reply)))
            assert [file.revised_prompt for file in result.files] == [revised]
        for prompt, revised in (
            ("turn the background into a snowy forest, watercolour", None),
            ("add a car", "add a car [not drawn, unknown to Atelier: car]"),
        ):
            _, reply = await send(server, "POST", "/retouch", {"prompt": prompt, "images": [png(32, 32)], **size})
            assert reply["images"][0]["revised_prompt"] == revised


async def test_fields_that_are_not_listed_never_reach_a_renderer() -> None:
    async with open_server() as server:
        fields = {"prompt": "a lighthouse", "width": 64, "height": 64}
        (plain,) = await draw(server, "sketch", **fields)
        (with_extras,) = await draw(server, "sketch", **EXTRAS, **fields)
        assert with_extras.tobytes() == plain.tobytes()
        extras = {name: value for name, value in EXTRAS.items() if name != "images"}
        await draw(server, "retouch", images=[png(64, 64)], **extras, **fields)
        await draw(server, "enlarge", images=[png(32, 16)], **extras)
        _, job = await send(server, "POST", "/videos", {**VIDEO, **EXTRAS})
        assert (await finished(server, job["id"]))["status"] == "completed"


async def test_a_file_that_is_no_image_is_refused() -> None:
    async with open_server() as server:
        status, reply = await send(server, "POST", "/enlarge", {"images": [b"<html>"]})
        assert status in (400, 500)
        assert "Traceback" not in reply["message"]


async def test_requests_of_the_wrong_shape_are_refused() -> None:
    async with open_server() as server:
        assert (await send(server, "POST", "/enlarge", {"images": []}))[0] == 400
        assert (await send(server, "POST", "/retouch", {"prompt": "night"}))[0] == 400
        assert (await send(server, "POST", "/sketch", {"prompt": 1}))[0] == 400
        assert (await send(server, "POST", "/videos", {"prompt": None}))[0] == 400
        assert (await send(server, "POST", "/nothing"))[0] == 404


# --------------------------------------------------------------------------------------------------------------- videos


async def test_a_video_from_beginning_to_end() -> None:
    async with open_server() as server:
        status, job = await send(server, "POST", "/videos", VIDEO)
        assert (status, job["status"]) == (200, "queued")
        done = await finished(server, job["id"])
        assert done["status"] == "completed", done
        with av.open(io.BytesIO(done["data"]), "r") as video:
            stream = video.streams.video[0]
            assert (stream.codec_context.name, stream.width, stream.height) == ("h264", 64, 64)
            assert 0.9 <= (video.duration or 0) / 1_000_000 <= 1.2


async def test_a_video_names_the_words_that_are_not_drawn() -> None:
    async with open_server() as server:
        _, job = await send(server, "POST", "/videos", {**VIDEO, "prompt": "a car on a hill"})
        done = await finished(server, job["id"])
        assert done["revised_prompt"] == "a car on a hill [not drawn, unknown to Atelier: car]"


@pytest.mark.parametrize(("marker", "kind"), [("[fail]", "broken"), ("[REFUSE]", "refused")])
async def test_markers_in_a_prompt_make_a_video_fail(marker: str, kind: str) -> None:
    async with open_server() as server:
        _, job = await send(server, "POST", "/videos", {**VIDEO, "prompt": f"a train {marker}"})
        failed = await finished(server, job["id"])
        assert (failed["status"], failed["kind"]) == ("failed", kind)
        assert marker.lower() in failed["message"]


async def test_a_video_can_be_cancelled() -> None:
    async with open_server() as server:
        _, job = await send(server, "POST", "/videos", {**VIDEO, "seconds": 20.0, "width": 1280, "height": 720})
        _, after = await send(server, "DELETE", f"/videos/{job['id']}")
        assert after["status"] == "cancelled"
        assert (await send(server, "GET", f"/videos/{job['id']}"))[1]["status"] == "cancelled"


async def test_an_unknown_video_is_not_found() -> None:
    async with open_server() as server:
        assert (await send(server, "GET", "/videos/video_none"))[0] == 404
        assert (await send(server, "DELETE", "/videos/video_none"))[0] == 404


@pytest.mark.parametrize(
    "error",
    [
        WorkFailed("crashed", "SIGSEGV"),
        WorkFailed("timeout", "90 seconds"),
        OSError("disk full"),
        RuntimeError("The pool is closed."),
        TypeError("unexpected keyword"),
        KeyError("clip"),
        asyncio.CancelledError(),
    ],
    ids=lambda error: type(error).__name__,
)
async def test_a_video_whose_task_dies_is_failed(error: BaseException) -> None:
    async def die() -> None:
        raise error

    async with open_server_with(die) as server:
        _, job = await send(server, "POST", "/videos", VIDEO)
        failed = await finished(server, job["id"])
        assert (failed["status"], failed["message"]) == ("failed", "The renderer failed.")


async def test_a_video_whose_task_is_cancelled_from_outside_is_failed() -> None:
    async with open_server_with(asyncio.Event().wait) as server:
        _, job = await send(server, "POST", "/videos", VIDEO)
        await wait_until(lambda: jobs(server)[job["id"]].status != "queued")
        assert (await send(server, "GET", f"/videos/{job['id']}"))[1]["status"] == "in_progress"
        task = jobs(server)[job["id"]].task
        assert task is not None
        task.cancel()
        assert (await finished(server, job["id"]))["status"] == "failed"


async def test_finished_videos_are_forgotten_after_a_while() -> None:
    async with open_server() as server:
        for _ in range(20):
            _, job = await send(server, "POST", "/videos", {**VIDEO, "prompt": "[fail]"})
            await finished(server, job["id"])
        assert len(jobs(server)) <= 9
        for _ in range(80):
            _, job = await send(server, "POST", "/videos", {**VIDEO, "prompt": "[fail]"})
            await wait_until(lambda: all(job.is_finished for job in jobs(server).values()))
        assert len(jobs(server)) <= 65


async def test_a_finished_video_is_kept_until_its_first_poll() -> None:
    async with open_server() as server:
        started = [await send(server, "POST", "/videos", {**VIDEO, "prompt": "[fail]"}) for _ in range(20)]
        assert {(await finished(server, job["id"]))["status"] for _, job in started} == {"failed"}


# ----------------------------------------------------------------------------------------------------------------- chat


async def test_a_chat_completion_at_once_and_as_a_stream() -> None:
    async with open_server() as server:
        body = msgspec.json.encode({"model": "echo", "messages": [{"role": "user", "content": "one two"}]})
        reply = await server.send(HttpRequest("POST", "atelier:/echo", {}, body), ORG)
        completion = msgspec.json.decode(reply.body)
        assert completion["object"] == "chat.completion"
        chunks = [chunk async for chunk in server.stream(HttpRequest("POST", "atelier:/echo", {}, body), ORG)]
        assert chunks[-1] == b"data: [DONE]\n\n"
        assert all(chunk.startswith(b"data: ") and chunk.endswith(b"\n\n") for chunk in chunks)
