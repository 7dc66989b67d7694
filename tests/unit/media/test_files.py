"""Files are served by signed URLs until they expire, and then deleted."""

import os
import time
from base64 import b64encode

import pytest

from penstock.accounts import audit
from penstock.accounts.generation_ends import GenerationEnd
from penstock.errors import NotFound, PermissionDenied, Problem
from penstock.media.files import find_strays
from penstock.media.storage import Storage, storage_key
from penstock.store.base import Store
from tests.fake_providers import faults
from tests.fake_providers.scripted import mp4, png
from tests.gateway import OpenGateway, RunningGateway, failpoint_raises, sqlite_only
from tests.unit.media.signed_urls import create_image, open_url, read_body, split_url

# ---------------------------------------------------------------------------------------------------------- signed URLs


@sqlite_only
async def test_a_signed_url_serves_the_file(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        url = await create_image(running)
        assert url.startswith("http://gateway.test/m/med_")
        found = await open_url(running, url)
        assert (found.status, await read_body(found)) == (200, png(64, 64))
        media_id, query = split_url(url)
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
async def test_a_file_is_saved_under_a_plain_name(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        url = await create_image(running)
        media_id, _ = split_url(url)
        for name, saved_as in [("a-red-fox", "a-red-fox"), ('x";y', media_id), ("../etc", media_id), ("é", media_id)]:
            found = await running.gateway.media.open(media_id, {**split_url(url)[1], "name": name}, None)
            assert found.headers["content-disposition"] == f'inline; filename="{saved_as}.png"'


@sqlite_only
async def test_an_expired_url_is_refused(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        url = await create_image(running)
        running.clock.advance(3600)
        assert (await open_url(running, url)).status == 200
        running.clock.advance(1)
        with pytest.raises(PermissionDenied, match="expired"):
            await open_url(running, url)


@sqlite_only
async def test_the_url_of_a_video_works_for_seven_days_at_most_and_then_there_is_a_new_one(
    open_gateway: OpenGateway,
) -> None:
    async with open_gateway() as running:
        created = (await running.video(media_retention="30d")).json
        video = await running.wait_for_video(created["id"])
        assert video["expires_at"] == video["completed_at"] + 30 * 86_400
        first = video["output"]["url"]
        running.clock.advance(7 * 86_400 - 60)
        assert (await open_url(running, first)).status == 200
        running.clock.advance(120)
        with pytest.raises(PermissionDenied, match="expired"):
            await open_url(running, first)
        later = await running.get_video(created["id"])
        assert (await open_url(running, later["output"]["url"])).status == 200


@sqlite_only
async def test_an_altered_url_is_refused(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        url = await create_image(running)
        other = await create_image(running)
        media_id, query = split_url(url)
        forged: list[tuple[str, dict[str, str]]] = [
            (split_url(other)[0], query),
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
        for position in range(len(signature)):
            letter = "A" if signature[position] != "A" else "B"
            forged.append((media_id, {**query, "sig": signature[:position] + letter + signature[position + 1 :]}))
        for name, forged_query in forged:
            with pytest.raises(PermissionDenied, match="not signed"):
                await running.gateway.media.open(name, forged_query, None)


@sqlite_only
async def test_a_signed_url_of_a_missing_file_is_not_found(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        url = await running.gateway.media.signed_url("med_none", running.clock.now_ms() + 10_000, "")
        with pytest.raises(NotFound):
            await open_url(running, url)


RANGES = [
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
]


@sqlite_only
async def test_ranges_of_a_file(open_gateway: OpenGateway) -> None:
    content = png(64, 64)
    async with open_gateway() as running:
        url = await create_image(running)
        for header, status, start, end in RANGES:
            response = await open_url(running, url, header)
            expected = b"" if status == 416 else content[start:end]
            assert (response.status, await read_body(response)) == (status, expected), header[:40]
            assert response.headers["content-length"] == str(len(expected))
            first = start if start >= 0 else len(content) + start
            content_range = {
                200: None,
                206: f"bytes {first}-{first + len(expected) - 1}/{len(content)}",
                416: f"bytes */{len(content)}",
            }
            assert response.headers.get("content-range") == content_range[status]


# ------------------------------------------------------------------------------------------------------------ expiry


async def test_expired_files_are_deleted_and_the_request_stays(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        done = await running.wait_for_video((await running.video(media_retention="1h")).json["id"])
        assert done["expires_at"] == done["completed_at"] + 3600
        url = done["output"]["url"]
        assert await read_body(await open_url(running, url)) == mp4()
        running.clock.advance(3600 + 60)
        await running.gateway.media.delete_expired()
        assert await running.rows("SELECT id FROM media") == []
        assert await running.storage.list_files() == []
        with pytest.raises(Problem):
            await open_url(running, url)
        shown = await running.get_video(done["id"])
        assert (shown["status"], shown["output"]) == ("completed", None)
        assert (await running.record(done["id"]))["cost"] == done["metadata"]["cost"]


@sqlite_only
async def test_expired_files_are_deleted_in_the_background(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        await running.wait_for_video((await running.video(media_retention="1h")).json["id"])
        running.clock.advance(3600)

        async def is_deleted() -> bool:
            return await running.storage.list_files() == []

        await running.wait_until(is_deleted)


@sqlite_only
async def test_inputs_are_deleted_when_the_request_ends(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        await running.edit(image="data:image/png;base64," + b64encode(png(32, 32)).decode())
        await running.gateway.media.delete_expired()
        assert [row["role"] for row in await running.rows("SELECT role FROM media")] == ["output"]


@sqlite_only
async def test_a_row_whose_file_is_gone_is_deleted(open_gateway: OpenGateway) -> None:
    """As after a crash between the deletion of the file and of its row."""
    async with open_gateway() as running:
        await create_image(running)
        (row,) = await running.rows("SELECT id FROM media")
        await running.storage.delete(storage_key(row["id"]))
        running.clock.advance(25 * 3600)
        await running.gateway.media.delete_expired()
        assert await running.rows("SELECT id FROM media") == []


async def test_the_inputs_of_an_unfinished_video_are_kept_when_the_clock_is_set_forward(
    open_gateway: OpenGateway,
) -> None:
    """It may still have to be sent to a provider; its deadline does not follow the wall clock."""
    async with open_gateway() as running:
        running.lab.videos.next(faults.never_ends)
        image = "data:image/png;base64," + b64encode(png(32, 32)).decode()
        video_id = (await running.video(input_reference=image)).json["id"]
        running.clock.jump(30 * 86_400)
        assert await running.gateway.media.delete_expired() == 0
        assert len(await running.storage.list_files()) == 1
        await running.cancel(video_id)
        await running.wait_for_request(video_id)
        assert await running.gateway.media.delete_expired() == 1
        assert await running.storage.list_files() == []


# --------------------------------------------------------------------------------------------------------------- strays


def make_older(running: RunningGateway, key: str, seconds: float = 7200) -> None:
    """Set the modification time of a stored file back."""
    path = running.gateway.settings.data / "media" / key
    modified_at = time.time() - seconds
    os.utime(path, (modified_at, modified_at))


@sqlite_only
async def test_files_without_a_row_are_found_and_deleted(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        await create_image(running)
        (recorded,) = [key for key, _, _ in await running.storage.list_files()]
        for key in ("00/med_young00", "00/med_old00"):
            await running.storage.create(key, b"x", "image/png")
        make_older(running, "00/med_old00")
        make_older(running, recorded)
        assert await running.run_audit() == ["media: 00/med_old00 belongs to nothing"]
        assert await running.gateway.media.delete_strays() == 1
        assert sorted(key for key, _, _ in await running.storage.list_files()) == sorted(["00/med_young00", recorded])


@sqlite_only
async def test_a_file_that_is_deleted_during_an_audit_is_no_stray(
    open_gateway: OpenGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A recording is deleted before its files, so an audit may run between the two."""
    async with open_gateway() as running:
        await running.storage.create("00/med_old00", b"x", "image/png")
        make_older(running, "00/med_old00")

        async def find_and_delete(store: Store, storage: Storage) -> list[str]:
            found = await find_strays(store, storage)
            await running.gateway.media.delete_strays()
            return found

        monkeypatch.setattr(audit, "find_strays", find_and_delete)
        assert await running.run_audit() == []


@sqlite_only
async def test_the_files_of_an_unfinished_generation_are_not_deleted(open_gateway: OpenGateway) -> None:
    """One of two videos was stored long ago; the other is not finished."""
    async with open_gateway() as running:
        running.lab.videos.next(faults.video_states("queued", "completed"), faults.never_ends)
        video_id = (await running.video(n=2)).json["id"]

        async def is_stored() -> bool:
            return bool(await running.storage.list_files())

        await running.wait_until(is_stored)
        (key,) = [key for key, _, _ in await running.storage.list_files()]
        make_older(running, key)
        assert await running.run_audit() == []
        assert await running.gateway.media.delete_strays() == 0
        await running.cancel(video_id)
        await running.wait_for_request(video_id)
        assert await running.gateway.media.delete_strays() == 1


@sqlite_only
async def test_the_files_of_a_recording_are_not_deleted_before_it_is_written(
    open_gateway: OpenGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The database was away for hours after they were stored."""
    async with open_gateway() as running:
        completions = running.gateway.generation_ends
        add = completions.add

        async def sweep_and_add(completion: GenerationEnd) -> None:
            files = [key for key, _, _ in await running.storage.list_files()]
            assert len(files) == 2, "the output and its copy for the recording"
            for key in files:
                make_older(running, key)
            assert await running.gateway.media.delete_strays() == 0
            assert await running.run_audit() == []
            await add(completion)

        monkeypatch.setattr(completions, "add", sweep_and_add)
        await running.image(headers={"x-service-replay": "record"})
        assert len(await running.storage.list_files()) == 2


@sqlite_only
async def test_the_inputs_of_a_refused_call_are_deleted(open_gateway: OpenGateway) -> None:
    async with open_gateway(starting_credit_usd="0.01") as running:
        with pytest.raises(Problem, match="available"):
            await running.edit(image="data:image/png;base64," + b64encode(png(32, 32)).decode())
        for key, _, _ in await running.storage.list_files():
            make_older(running, key)
        await running.gateway.media.delete_strays()
        assert await running.storage.list_files() == []


@sqlite_only
async def test_a_completed_video_has_its_file_after_a_crash(open_gateway: OpenGateway) -> None:
    """The process fails after the file was stored and before its row was written."""
    async with open_gateway() as running:
        with failpoint_raises("media.after_fsync", 1):
            video_id = (await running.video()).json["id"]
            await running.wait_until_idle()
        done = await running.wait_for_video(video_id, step_seconds=3)
        assert done["output"]["size_bytes"] == len(mp4())
        assert await read_body(await open_url(running, done["output"]["url"])) == mp4()
        assert len(await running.storage.list_files()) == 1
