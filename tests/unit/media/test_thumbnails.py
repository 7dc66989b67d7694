"""Small copies of files: made when they are asked for, kept beside the file, and deleted with it."""

import io
import os
import time
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from penstock.accounts import audit
from penstock.errors import NotFound, PermissionDenied
from penstock.generations.records import detailed_records
from penstock.media.files import find_strays
from penstock.media.storage import storage_key
from penstock.media.thumbnails import THUMBNAIL_WIDTHS, can_have_thumbnail, original_key
from penstock.schema import Response
from tests.fake_providers.scripted import png
from tests.gateway import OpenGateway, RunningGateway, sqlite_only
from tests.unit.media.signed_urls import create_image, open_url, split_url


def opened(response: Response) -> Image.Image:
    assert response.media_type == "image/webp"
    assert isinstance(response.body, bytes)
    return Image.open(io.BytesIO(response.body))


async def output(running: RunningGateway) -> dict[str, Any]:
    """The only output, as the list of requests shows it."""
    (row,) = await running.rows("SELECT id FROM requests")
    found = await running.gateway.requests.get(running.caller.org_id, row["id"])
    assert found is not None
    ((shown,),) = [record["outputs"] for record in await detailed_records(running.gateway, running.call(), [found])]
    return dict(shown)


def with_width(url: str, width: int) -> str:
    return f"{url.rpartition('&w=')[0] or url}&w={width}"


@sqlite_only
async def test_a_thumbnail_has_each_width_and_is_never_larger_than_the_image(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        await running.image(size="512x512")
        url = (await output(running))["thumbnail_url"]
        assert [opened(await open_url(running, with_width(url, width))).size for width in THUMBNAIL_WIDTHS] == [
            (160, 160),
            (480, 480),
            (512, 512),
        ]


@sqlite_only
async def test_the_thumbnail_of_a_video_is_one_of_its_frames(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        await running.wait_for_video((await running.video()).json["id"])
        url = (await output(running))["thumbnail_url"]
        assert opened(await open_url(running, url)).size == (64, 64)


@sqlite_only
async def test_the_url_of_a_thumbnail_opens_no_file_and_that_of_the_file_opens_thumbnails(
    open_gateway: OpenGateway,
) -> None:
    async with open_gateway() as running:
        url = await create_image(running)
        small = (await output(running))["thumbnail_url"]
        assert opened(await open_url(running, with_width(url, 160))).size == (64, 64)
        with pytest.raises(PermissionDenied):
            await open_url(running, small.rpartition("&w=")[0])
        media_id, query = split_url(small)
        with pytest.raises(PermissionDenied):
            await running.gateway.media.open(media_id[:-2] + "77", query, None)
        running.clock.advance(24 * 3600 + 61)
        with pytest.raises(PermissionDenied, match="expired"):
            await open_url(running, small)


@sqlite_only
async def test_a_thumbnail_is_made_once_and_again_when_it_was_lost(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        await create_image(running)
        shown = await output(running)
        first = (await open_url(running, shown["thumbnail_url"])).body
        key = f"{storage_key(shown['id'])}_w480"
        await running.storage.replace(key, b"kept", "image/webp")
        assert (await open_url(running, shown["thumbnail_url"])).body == b"kept"
        await running.storage.delete(key)
        assert (await open_url(running, shown["thumbnail_url"])).body == first


async def test_thumbnails_go_with_their_file(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        for _ in range(2):
            await create_image(running)
        requests = [row["id"] for row in await running.rows("SELECT id FROM requests ORDER BY id")]
        for request_id in requests:
            row = await running.gateway.requests.get(running.caller.org_id, request_id)
            assert row is not None
            [record] = await detailed_records(running.gateway, running.call(), [row])
            for width in THUMBNAIL_WIDTHS:
                await open_url(running, with_width(record["outputs"][0]["thumbnail_url"], width))
        assert len(await running.storage.list_files()) == 8
        assert (await running.purge(requests[0]))["media_deleted"] == 1
        assert len(await running.storage.list_files()) == 4
        running.clock.advance(25 * 3600)
        await running.gateway.media.delete_expired()
        assert await running.storage.list_files() == []


@sqlite_only
async def test_a_thumbnail_belongs_to_its_file_until_that_is_gone(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        await create_image(running)
        shown = await output(running)
        await open_url(running, shown["thumbnail_url"])
        gateway = running.gateway
        make_old(gateway.settings.data)
        assert await find_strays(gateway.store, running.storage) == []
        assert await audit.audit(gateway.store, running.storage, running.clock) == []
        await running.change(f"DELETE FROM media WHERE id = '{shown['id']}'")  # noqa: S608
        assert await gateway.media.delete_strays() == 2
        assert await running.storage.list_files() == []


def make_old(data: Path) -> None:
    before = time.time() - 4000
    for path in (data / "media").rglob("*"):
        os.utime(path, (before, before))


@sqlite_only
async def test_a_file_without_a_picture_has_no_thumbnail(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        url = await create_image(running)
        await running.change("UPDATE media SET content_type = 'audio/mpeg'")
        assert (await output(running))["thumbnail_url"] is None
        with pytest.raises(NotFound, match="no thumbnails"):
            await open_url(running, with_width(url, 160))
        await running.change("UPDATE media SET content_type = 'image/png'")
        await running.storage.replace(storage_key(split_url(url)[0]), b"no image", "image/png")
        with pytest.raises(NotFound, match="cannot be made"):
            await open_url(running, with_width(url, 160))
        await running.storage.replace(storage_key(split_url(url)[0]), png(64, 64), "image/png")


def test_vector_images_and_sound_have_no_thumbnails() -> None:
    types = ("image/png", "image/svg+xml", "video/mp4", "audio/mpeg")
    assert [can_have_thumbnail(each) for each in types] == [True, False, True, False]


def test_the_key_of_a_thumbnail_names_its_file() -> None:
    assert original_key("a0/med_01a0_w480") == "a0/med_01a0"
    assert original_key("a0/med_01a0") == "a0/med_01a0"
