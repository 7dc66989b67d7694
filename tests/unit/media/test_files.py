"""Files are kept for as long as promised, handed to whoever holds a signed address, and then gone."""

import asyncio
import os
import time
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit
from urllib.request import urlopen

import pytest

from penstock.errors import NotFound, PermissionDenied, Problem
from penstock.media.files import Opened
from penstock.media.storage import key_of
from penstock.values import nanos
from tests.fake_providers import faults
from tests.fake_providers.scripted import mp4, png
from tests.gateway import OpenGateway, RunningGateway, postgres_only, sqlite_only, tripping
from tests.s3_server import S3Server, run_s3_server


async def made(running: RunningGateway) -> str:
    """The address of a picture that was just made."""
    url: str = (await running.image())["data"][0]["url"]
    return url


def parts(url: str) -> tuple[str, dict[str, str]]:
    found = urlsplit(url)
    return found.path.removeprefix("/m/"), {name: values[0] for name, values in parse_qs(found.query).items()}


async def opened(running: RunningGateway, url: str, range_header: str | None = None) -> Opened:
    media_id, query = parts(url)
    return await running.gateway.media.open(media_id, query, range_header)


async def body(found: Opened) -> bytes:
    return b"".join([chunk async for chunk in found.chunks])


# ------------------------------------------------------------------------------------------------------------ addresses


@sqlite_only
async def test_a_signed_address(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        url = await made(running)
        assert url.startswith("http://gateway.test/m/med_")
        found = await opened(running, url)
        assert (found.status, await body(found)) == (200, png(64, 64))
        media_id, query = parts(url)
        assert found.headers == {
            "content-type": "image/png",
            "content-length": str(len(png(64, 64))),
            "accept-ranges": "bytes",
            "content-disposition": f'inline; filename="{media_id}.png"',
            "x-content-type-options": "nosniff",
            "content-security-policy": "default-src 'none'; sandbox",
            "cache-control": "private, max-age=3600",
            "cross-origin-resource-policy": "cross-origin",
        }
        assert int(query["exp"]) == running.clock.now_ms() // 1000 + 3600


@sqlite_only
async def test_one_second_too_late(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        url = await made(running)
        running.clock.advance(3600)
        assert (await opened(running, url)).status == 200
        running.clock.advance(1)
        with pytest.raises(PermissionDenied, match="expired"):
            await opened(running, url)


@sqlite_only
async def test_every_bit_of_an_address_counts(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        url, other = await made(running), await made(running)
        media_id, query = parts(url)
        forged: list[tuple[str, dict[str, str]]] = [
            (parts(other)[0], query),
            (media_id, {**query, "exp": str(int(query["exp"]) + 1)}),
            (media_id, {**query, "exp": query["exp"] + "0"}),
            (media_id, {**query, "exp": "0" + query["exp"]}),
            (media_id, {**query, "exp": "-1"}),
            (media_id, {**query, "exp": "٣"}),
            (media_id, {**query, "exp": "9" * 40}),
            (media_id, {**query, "exp": ""}),
            (media_id, {"sig": query["sig"]}),
            (media_id, {"exp": query["exp"]}),
            (media_id, {**query, "sig": ""}),
            (media_id, {**query, "sig": "é" * 43}),
            (media_id.upper(), query),
        ]
        signature = query["sig"]
        for place in range(len(signature)):
            letter = "A" if signature[place] != "A" else "B"
            forged.append((media_id, {**query, "sig": signature[:place] + letter + signature[place + 1 :]}))
        for name, said in forged:
            with pytest.raises(PermissionDenied, match="not signed"):
                await running.gateway.media.open(name, said, None)


@sqlite_only
async def test_an_address_signed_for_nothing(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        url = await running.gateway.media.address("med_none", running.clock.now_ms() + 10_000, "")
        with pytest.raises(NotFound):
            await opened(running, url)


@pytest.mark.parametrize(
    ("header", "status", "start", "end"),
    [
        ("bytes=0-3", 206, 0, 4),
        ("bytes=10-", 206, 10, None),
        ("bytes=-5", 206, -5, None),
        ("bytes=0-99999999", 206, 0, None),
        ("bytes=-99999999", 206, 0, None),
        ("bytes=5-4", 416, 0, 0),
        ("bytes=99999999-", 416, 0, 0),
        ("bytes=-0", 416, 0, 0),
        ("bytes=-", 200, 0, None),
        ("bytes=0-1,5-6", 200, 0, None),
        ("bytes=" + ",".join(["0-1"] * 10_000), 200, 0, None),
        ("bytes=" + "9" * 30 + "-", 200, 0, None),
        ("pages=1-2", 200, 0, None),
        ("", 200, 0, None),
    ],
)
@sqlite_only
async def test_ranges(open_gateway: OpenGateway, header: str, status: int, start: int, end: int | None) -> None:
    async with open_gateway() as running:
        url = await made(running)
        whole = png(64, 64)
        began = time.perf_counter()
        found = await opened(running, url, header)
        assert time.perf_counter() - began < 0.5
        assert found.status == status
        expected = b"" if status == 416 else whole[start:end]
        assert await body(found) == expected
        assert found.headers["content-length"] == str(len(expected))
        if status == 206:
            first = start if start >= 0 else len(whole) + start
            assert found.headers["content-range"] == f"bytes {first}-{first + len(expected) - 1}/{len(whole)}"
        if status == 416:
            assert found.headers["content-range"] == f"bytes */{len(whole)}"


# ------------------------------------------------------------------------------------------------------------ retention


async def test_what_has_expired_is_swept(open_gateway: OpenGateway) -> None:
    """An hour of retention: gone at the next sweep, the record stays."""
    async with open_gateway() as running:
        done = await running.finished((await running.video(media_retention="1h")).json["id"])
        assert done["expires_at"] == done["completed_at"] + 3600
        url = done["output"]["url"]
        assert await body(await opened(running, url)) == mp4()
        running.clock.advance(3600 + 60)
        await running.gateway.media.sweep()
        assert await running.rows("SELECT id FROM media") == []
        assert await running.shelf.keys() == []
        with pytest.raises(Problem):
            await opened(running, url)
        shown = await running.shown(done["id"])
        assert (shown["status"], shown["output"]) == ("completed", None)
        assert (await running.record(done["id"]))["cost"] == done["metadata"]["cost"]


@sqlite_only
async def test_the_sweep_goes_by_itself(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        await running.finished((await running.video(media_retention="1h")).json["id"])
        running.clock.advance(3600)

        async def gone() -> bool:
            return await running.shelf.keys() == []

        await running.until(gone)


@sqlite_only
async def test_what_came_with_a_request_goes_when_it_ends(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        await running.edit(image="data:image/png;base64," + b64encode(png(32, 32)).decode())
        await running.gateway.media.sweep()
        assert [row["role"] for row in await running.rows("SELECT role FROM media")] == ["output"]


@sqlite_only
async def test_a_sweep_that_was_interrupted(open_gateway: OpenGateway) -> None:
    """The file went, the row did not: the next sweep takes it."""
    async with open_gateway() as running:
        await made(running)
        (row,) = await running.rows("SELECT id FROM media")
        await running.shelf.delete(key_of(row["id"]))
        running.clock.advance(25 * 3600)
        await running.gateway.media.sweep()
        assert await running.rows("SELECT id FROM media") == []


# --------------------------------------------------------------------------------------------------------------- strays


def age(running: RunningGateway, key: str, seconds: float = 7200) -> None:
    path = running.gateway.settings.data / "media" / key
    then = time.time() - seconds
    os.utime(path, (then, then))


@sqlite_only
async def test_strays_are_found_and_swept(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        await made(running)
        (kept,) = [key for key, _, _ in await running.shelf.keys()]
        for key in ("00/med_young00", "00/med_old00"):
            await running.shelf.put(key, b"x", "image/png")
        age(running, "00/med_old00")
        age(running, kept)
        assert await running.breaches() == ["media: 00/med_old00 belongs to nothing"]
        assert await running.gateway.media.sweep_strays() == 1
        assert sorted(key for key, _, _ in await running.shelf.keys()) == sorted(["00/med_young00", kept])


@sqlite_only
async def test_what_an_unfinished_generation_made_is_no_stray(open_gateway: OpenGateway) -> None:
    """One of two films is here since yesterday; the other still takes its time."""
    async with open_gateway() as running:
        running.lab.videos.next(faults.film("queued", "completed"), faults.never_ends)
        video_id = (await running.video(n=2)).json["id"]

        async def kept() -> bool:
            return bool(await running.shelf.keys())

        await running.until(kept)
        (key,) = [key for key, _, _ in await running.shelf.keys()]
        age(running, key)
        assert await running.breaches() == []
        assert await running.gateway.media.sweep_strays() == 0
        await running.cancel(video_id)
        await running.ended(video_id)
        assert await running.gateway.media.sweep_strays() == 1


@sqlite_only
async def test_a_refused_call_leaves_no_files_for_long(open_gateway: OpenGateway) -> None:
    async with open_gateway(starting_credit_usd="0.01") as running:
        with pytest.raises(Problem, match="available"):
            await running.edit(image="data:image/png;base64," + b64encode(png(32, 32)).decode())
        for key, _, _ in await running.shelf.keys():
            age(running, key)
        await running.gateway.media.sweep_strays()
        assert await running.shelf.keys() == []


@sqlite_only
async def test_no_finished_video_without_its_file(open_gateway: OpenGateway) -> None:
    """Struck down after the file was written and before its row: completed means that it is there."""
    async with open_gateway() as running:
        with tripping("media.after_fsync", 1):
            video_id = (await running.video()).json["id"]
            await running.idle()
        done = await running.finished(video_id, step_seconds=3)
        assert done["output"]["size_bytes"] == len(mp4())
        assert await body(await opened(running, done["output"]["url"])) == mp4()
        assert len(await running.shelf.keys()) == 1


# ----------------------------------------------------------------------------------------------------------- the bucket


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with run_s3_server(tmp_path_factory.mktemp("buckets")) as s3:
        yield s3


def fetched(url: str) -> bytes:
    with urlopen(url) as answer:  # noqa: S310
        found: bytes = answer.read()
        return found


@postgres_only
async def test_media_in_a_bucket(open_gateway: OpenGateway, s3: S3Server, tmp_path: Path) -> None:
    """Postgres and S3 together: nothing is kept on the machine itself."""
    async with open_gateway(media=s3.new_url(), media_options=s3.options) as running:
        url = await made(running)
        assert url.startswith(s3.endpoint)
        assert await asyncio.to_thread(fetched, url) == png(64, 64)
        answer = await running.image(response_format="b64_json")
        assert answer["data"][0]["b64_json"]
        done = await running.finished((await running.video(media_retention="30d")).json["id"])
        assert await asyncio.to_thread(fetched, done["output"]["url"]) == mp4()
        assert not [path for path in (tmp_path / "data").rglob("*") if path.is_file() and "lock" not in path.name]
        assert (await running.purge(done["id"]))["media_deleted"] == 1
        assert await running.money() == (nanos("9.52"), 0)
