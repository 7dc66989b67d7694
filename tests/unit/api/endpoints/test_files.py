"""Downloads by signed URL and with a key, whole and by range."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

from penstock.api.asgi import AsgiApp
from penstock.media.storage import storage_key
from tests.api.raw_http import Server, serving
from tests.gateway import OpenGateway, RunningGateway


@asynccontextmanager
async def served(open_gateway: OpenGateway) -> AsyncIterator[tuple[RunningGateway, Server]]:
    async with (
        open_gateway(audited=False) as running,
        serving(AsgiApp(running.gateway), running.gateway.settings) as server,
    ):
        yield running, server


def path_of(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.path}?{parts.query}"


async def made(running: RunningGateway, server: Server) -> tuple[str, bytes]:
    """Store an image; return the path of its signed URL, and its bytes."""
    path = path_of((await running.image())["data"][0]["url"])
    response = await server.call("GET", path)
    assert (response.status, response.headers["content-type"]) == (200, "image/png")
    assert response.body.startswith(b"\x89PNG")
    assert int(response.headers["content-length"]) == len(response.body)
    return path, response.body


async def test_a_signed_url_is_enough_to_download(open_gateway: OpenGateway) -> None:
    async with served(open_gateway) as (running, server):
        path, whole = await made(running, server)
        assert (await server.call("GET", path, key="rubbish")).body == whole
        head = await server.call("HEAD", path)
        assert (head.status, head.headers["content-length"], head.body) == (200, str(len(whole)), b"")


async def test_ranges_are_served_and_ranges_beyond_the_end_are_refused(open_gateway: OpenGateway) -> None:
    async with served(open_gateway) as (running, server):
        path, whole = await made(running, server)
        part = await server.call("GET", path, headers={"range": "bytes=4-9"})
        assert (part.status, part.body) == (206, whole[4:10])
        assert part.headers["content-range"] == f"bytes 4-9/{len(whole)}"
        assert (await server.call("GET", path, headers={"range": "bytes=-3"})).body == whole[-3:]
        beyond = await server.call("GET", path, headers={"range": f"bytes={len(whole)}-"})
        assert (beyond.status, beyond.code) == (416, "INVALID_REQUEST")
        assert beyond.headers["content-range"] == f"bytes */{len(whole)}"
        many = "bytes=" + ",".join("0-1" for _ in range(5000))
        assert (await server.call("GET", path, headers={"range": many})).body == whole


async def test_one_changed_character_is_a_403(open_gateway: OpenGateway) -> None:
    async with served(open_gateway) as (running, server):
        path, _ = await made(running, server)
        start, _, signature = path.partition("sig=")
        swapped = ("B" if signature[0] == "A" else "A") + signature[1:]
        for changed in (
            f"{start}sig={swapped}",
            start,
            path.replace("exp=", "exp=1"),
            path.split("?")[0],
            f"{start}sig=",
        ):
            response = await server.call("GET", changed)
            assert response.status in (400, 403), changed
            assert response.code in ("PERMISSION_DENIED", "INVALID_REQUEST")
            assert b"PNG" not in response.body


async def test_a_signed_url_expires(open_gateway: OpenGateway) -> None:
    async with served(open_gateway) as (running, server):
        path, _ = await made(running, server)
        running.clock.advance(3602)
        response = await server.call("GET", path)
        assert (response.status, response.code) == (403, "PERMISSION_DENIED")


async def test_a_missing_file_is_a_404_and_not_half_a_response(open_gateway: OpenGateway) -> None:
    async with served(open_gateway) as (running, server):
        path, _ = await made(running, server)
        media_id = path.split("?")[0].removeprefix("/m/")
        assert await running.storage.delete(storage_key(media_id))
        response = await server.call("GET", path)
        assert (response.status, response.code) == (404, "NOT_FOUND")


async def test_a_video_is_downloaded_with_a_key_of_its_organization(open_gateway: OpenGateway) -> None:
    async with served(open_gateway) as (running, server):
        started = await running.video()
        video = await running.wait_for_video(started.json["id"])
        path = f"/compat/v1/videos/{video['id']}/content"
        whole = await server.call("GET", path, key=running.key)
        assert (whole.status, whole.headers["content-type"]) == (200, "video/mp4")
        assert len(whole.body) == video["output"]["size_bytes"]
        part = await server.call("GET", path, key=running.key, headers={"range": "bytes=0-3"})
        assert (part.status, part.body) == (206, whole.body[:4])
        beyond = await server.call("GET", path, key=running.key, headers={"range": "bytes=99999999-"})
        assert (beyond.status, beyond.code) == (416, "INVALID_REQUEST")
        assert (await server.call("GET", path)).status == 401
        assert (await server.call("GET", path_of(video["output"]["url"]))).body == whole.body
