"""The built-in provider answers like any vendor: pictures at once, clips as jobs, conversations bit by bit."""

import io
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import av
import msgspec
import pytest
from PIL import Image

from penstock.atelier.server import AtelierServer
from penstock.imaging.workers import WorkerPool
from penstock.providers.spec import Outgoing
from tests.fake_providers.scripted import png
from tests.http_client import until

CLIP = {"prompt": "a lighthouse", "seconds": 1.0, "width": 64, "height": 64}


@asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[AtelierServer]:
    async with WorkerPool(2) as pool:
        workshop = AtelierServer(pool, folder)
        try:
            yield workshop
        finally:
            await workshop.close()


async def told(
    workshop: AtelierServer, method: str, path: str, fields: dict[str, Any] | None = None
) -> tuple[int, Any]:
    reply = await workshop.send(Outgoing(method, f"atelier:{path}", {}, msgspec.msgpack.encode(fields or {})))
    return reply.status, msgspec.msgpack.decode(reply.body)


async def made(workshop: AtelierServer, kind: str, **fields: Any) -> list[Image.Image]:
    status, answer = await told(workshop, "POST", f"/{kind}", fields)
    assert status == 200, answer
    return [Image.open(io.BytesIO(one["data"])) for one in answer["pictures"]]


async def test_pictures(tmp_path: Path) -> None:
    async with opened(tmp_path) as workshop:
        wish = {"prompt": "a lighthouse at dusk", "width": 96, "height": 64}
        first, second = await made(workshop, "sketch", n=2, **wish)
        assert (first.size, second.size) == ((96, 64), (96, 64))
        assert first.tobytes() != second.tobytes(), "two wishes are two pictures"
        (again,) = await made(workshop, "sketch", n=1, **wish)
        assert again.tobytes() == first.tobytes(), "the same words and the same seed give the same picture"
        (edited,) = await made(workshop, "retouch", images=[png(96, 64)], **wish)
        assert edited.size == (96, 64)
        (larger,) = await made(workshop, "enlarge", images=[png(32, 16)], scale_factor=2)
        assert larger.size == (64, 32)


async def test_what_it_will_not_take(tmp_path: Path) -> None:
    async with opened(tmp_path) as workshop:
        status, answer = await told(workshop, "POST", "/enlarge", {"images": [b"<html>"]})
        assert status in (400, 500)
        assert "Traceback" not in answer["message"]


async def test_a_clip_from_beginning_to_end(tmp_path: Path) -> None:
    async with opened(tmp_path) as workshop:
        status, job = await told(workshop, "POST", "/clips", CLIP)
        assert (status, job["status"]) == (200, "queued")
        seen = [job]
        while seen[-1]["status"] in ("queued", "in_progress"):
            await until_changed(workshop, seen)
        assert seen[-1]["status"] == "completed", seen[-1]
        with av.open(io.BytesIO(seen[-1]["data"]), "r") as film:
            stream = film.streams.video[0]
            assert (stream.codec_context.name, stream.width, stream.height) == ("h264", 64, 64)
            assert 0.9 <= (film.duration or 0) / 1_000_000 <= 1.2
        assert list(tmp_path.iterdir()) == []


async def until_changed(workshop: AtelierServer, seen: list[dict[str, Any]]) -> None:
    name, before = seen[-1]["id"], seen[-1]["status"]
    await until(lambda: workshop._films[name].status != before)
    seen.append((await told(workshop, "GET", f"/clips/{seen[-1]['id']}"))[1])


@pytest.mark.parametrize(("word", "kind"), [("[fail]", "broken"), ("[REFUSE]", "refused")])
async def test_clips_that_go_wrong_on_purpose(tmp_path: Path, word: str, kind: str) -> None:
    async with opened(tmp_path) as workshop:
        _, job = await told(workshop, "POST", "/clips", {**CLIP, "prompt": f"a train {word}"})
        seen = [job]
        await until_changed(workshop, seen)
        assert (seen[-1]["status"], seen[-1]["kind"]) == ("failed", kind)
        assert word.lower() in seen[-1]["message"]


async def test_a_clip_that_is_cancelled(tmp_path: Path) -> None:
    async with opened(tmp_path) as workshop:
        _, job = await told(workshop, "POST", "/clips", {**CLIP, "seconds": 20.0, "width": 1280, "height": 720})
        _, after = await told(workshop, "DELETE", f"/clips/{job['id']}")
        assert after["status"] == "cancelled"
        await until(lambda: not list(tmp_path.iterdir()))
        assert (await told(workshop, "GET", f"/clips/{job['id']}"))[1]["status"] == "cancelled"


async def test_a_clip_that_nobody_knows(tmp_path: Path) -> None:
    async with opened(tmp_path) as workshop:
        assert (await told(workshop, "GET", "/clips/clip_none"))[0] == 404
        assert (await told(workshop, "DELETE", "/clips/clip_none"))[0] == 404


async def test_no_room_for_a_clip(tmp_path: Path) -> None:
    """It fails; it does not stay under way for ever."""
    async with opened(tmp_path / "nowhere") as workshop:
        _, job = await told(workshop, "POST", "/clips", CLIP)
        await until(lambda: workshop._films[job["id"]].task is None or workshop._films[job["id"]].task.done())  # type: ignore[union-attr]
        assert (await told(workshop, "GET", f"/clips/{job['id']}"))[1]["status"] == "failed"


async def test_finished_clips_are_forgotten_in_time(tmp_path: Path) -> None:
    async with opened(tmp_path) as workshop:
        for _ in range(20):
            await told(workshop, "POST", "/clips", {**CLIP, "prompt": "[fail]"})
            await until(lambda: all(film.task is not None and film.task.done() for film in workshop._films.values()))
        assert len(workshop._films) <= 9


async def test_a_conversation(tmp_path: Path) -> None:
    async with opened(tmp_path) as workshop:
        body = msgspec.json.encode({"model": "echo", "messages": [{"role": "user", "content": "one two"}]})
        reply = await workshop.send(Outgoing("POST", "atelier:/echo", {}, body))
        completion = msgspec.json.decode(reply.body)
        assert completion["object"] == "chat.completion"
        chunks = [chunk async for chunk in workshop.stream(Outgoing("POST", "atelier:/echo", {}, body))]
        assert chunks[-1] == b"data: [DONE]\n\n"
        assert all(chunk.startswith(b"data: ") and chunk.endswith(b"\n\n") for chunk in chunks)
