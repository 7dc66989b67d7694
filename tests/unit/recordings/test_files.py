"""Recordings are exported to files and imported from them, also into another organization."""

import asyncio
import base64
import copy
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from penstock.errors import InvalidRequest, NotFound
from penstock.generations import endpoints
from penstock.long_bodies import base64_pieces
from penstock.long_bodies.base64_pieces import strict_pieces
from penstock.media.rows import list_media
from penstock.media.storage import FileExists
from penstock.recordings import files, folders
from penstock.recordings.rows import RecordingRow
from tests.fake_providers.scripted import png
from tests.gateway import OpenGateway, RunningGateway, exported, sqlite_only
from tests.work import peak_bytes

BODY = {"model": "image-1", "prompt": "a pear", "size": "64x64"}


async def record(running: RunningGateway) -> RecordingRow:
    call = running.call(BODY, endpoint="/image", headers={"x-service-replay": "record"})
    response = await endpoints.make_images(running.gateway, call)
    return await running.gateway.recordings.get(running.caller.org_id, response.headers["x-service-replay-recording"])


@sqlite_only
async def test_a_recording_moves_to_another_organization(open_gateway: OpenGateway, tmp_path: Path) -> None:
    async with open_gateway() as running:
        row = await record(running)
        path = folders.save_recording(tmp_path, *await files.export_recording(running.gateway.recordings, row))
        assert sorted(path.name for path in tmp_path.glob("rec_*")) == [f"{row.id}-0.png", f"{row.id}.json"]
        text = path.read_text()
        assert '"prompt": "a pear"' in text
        assert running.caller.org_id not in text
        running.caller = await running.create_caller_in_new_org()
        document, media = folders.load_recording(path)
        now = running.clock.now_ms()
        gateway = running.gateway
        org_id = running.caller.org_id
        imported = await files.import_recording(
            gateway.store, gateway.recordings, org_id, document, media, now, pool=gateway.worker_pool
        )
        assert imported != row.id
        call = running.call(BODY, endpoint="/image", headers={"x-service-replay": "replay-or-error"})
        response = await endpoints.make_images(running.gateway, call)
        assert response.headers["x-service-replay-recording"] == imported
        assert response.json["metadata"]["provider"] == "lab"


@sqlite_only
async def test_media_inside_the_recording_file(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        row = await record(running)
        recording_file = await exported(running.gateway.recordings, row)
        document = json.loads(msgspec.json.encode(recording_file))
        await running.gateway.recordings.delete(running.caller.org_id, row.id)
        gateway = running.gateway
        now = running.clock.now_ms()
        imported = await files.import_recording(
            gateway.store, gateway.recordings, running.caller.org_id, document, {}, now, pool=gateway.worker_pool
        )
        again = await exported(gateway.recordings, await gateway.recordings.get(running.caller.org_id, imported))
        assert msgspec.structs.replace(again, recorded_at="") == msgspec.structs.replace(recording_file, recorded_at="")


@sqlite_only
async def test_the_same_file_is_imported_once(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        gateway = running.gateway
        recordings = gateway.recordings
        inline = await exported(recordings, await record(running))
        beside, media = await files.export_recording(recordings, await record(running))

        async def import_file(recording_file: files.RecordingFile, media: dict[str, bytes]) -> str:
            document = json.loads(msgspec.json.encode(recording_file))
            now = running.clock.now_ms()
            return await files.import_recording(
                gateway.store, recordings, running.caller.org_id, document, media, now, pool=gateway.worker_pool
            )

        imported = await asyncio.gather(*(import_file(inline, {}) for _ in range(3)))
        assert len(set(imported)) == 1
        assert await import_file(beside, dict(media)) != imported[0]
        assert len(await recordings.all(running.caller.org_id)) == 4
        await recordings.delete(running.caller.org_id, imported[0])
        assert await import_file(inline, {}) != imported[0]
        running.caller = await running.create_caller_in_new_org()
        assert await import_file(inline, {}) != imported[0]


@sqlite_only
async def test_an_import_replaces_no_file(open_gateway: OpenGateway, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even if its new id were that of another recording."""
    async with open_gateway() as running:
        gateway = running.gateway
        org_id = running.caller.org_id
        row = await record(running)
        document = json.loads(msgspec.json.encode(await exported(gateway.recordings, row)))
        document["files"][0]["data"] = base64.b64encode(png(9, 9)).decode()
        ((_, file),) = await gateway.recordings.list_files(row)
        before = await gateway.recordings.read_file(file)
        monkeypatch.setattr(files, "new_id", lambda *_: row.id)
        with pytest.raises(FileExists):
            await files.import_recording(
                gateway.store, gateway.recordings, org_id, document, {}, 1, pool=gateway.worker_pool
            )
        assert await gateway.recordings.read_file(file) == before


@sqlite_only
async def test_files_of_recordings_have_other_names_than_outputs(
    open_gateway: OpenGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So no import can meet a file of a request, not even if its new id were made of the same digits."""
    async with open_gateway() as running:
        gateway = running.gateway
        row = await record(running)
        document = json.loads(msgspec.json.encode(await exported(gateway.recordings, row)))
        document["files"][0]["data"] = base64.b64encode(png(9, 9)).decode()
        (output,) = await list_media(gateway.store, str(row.request_id), row.org_id)
        before = await gateway.media.read(output.id, output.size_bytes)
        digits = output.id.removeprefix("med_")[:-2]  # behind them is the number of the file
        monkeypatch.setattr(files, "new_id", lambda *_: f"rec_{digits}")
        imported = await files.import_recording(
            gateway.store, gateway.recordings, row.org_id, document, {}, 1, pool=gateway.worker_pool
        )
        await gateway.recordings.delete(row.org_id, imported)
        assert await gateway.media.read(output.id, output.size_bytes) == before


@sqlite_only
async def test_an_imported_recording_can_be_pinned_by_the_id_in_its_file(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        gateway = running.gateway
        recording_file = await exported(gateway.recordings, await record(running))
        document = json.loads(msgspec.json.encode(recording_file))
        running.caller = await running.create_caller_in_new_org()
        now = running.clock.now_ms()
        imported = await files.import_recording(
            gateway.store, gateway.recordings, running.caller.org_id, document, {}, now, pool=gateway.worker_pool
        )
        for pinned in (imported, recording_file.id):
            headers = {
                "x-service-replay": "replay-or-error",
                "x-service-replay-match": "pinned",
                "x-service-replay-recording": pinned,
            }
            call = running.call(BODY, endpoint="/image", headers=headers)
            response = await endpoints.make_images(gateway, call)
            assert response.headers["x-service-replay-recording"] == imported


@sqlite_only
async def test_an_imported_file_is_decoded_outside_the_event_loop_and_in_steps(
    open_gateway: OpenGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In steps, because a thread lets no other one run while it decodes one."""
    monkeypatch.setattr(base64_pieces, "STEP", 8)
    threads = []

    def note_thread(text: str) -> Iterator[bytes]:
        threads.append(threading.current_thread())
        return strict_pieces(text)

    monkeypatch.setattr(files, "strict_pieces", note_thread)
    async with open_gateway() as running:
        gateway = running.gateway
        recording_file = await exported(gateway.recordings, await record(running))
        document = json.loads(msgspec.json.encode(recording_file))
        imported = await files.import_recording(
            gateway.store,
            gateway.recordings,
            running.caller.org_id,
            document,
            {},
            running.clock.now_ms(),
            pool=gateway.worker_pool,
        )
        row = await gateway.recordings.get(running.caller.org_id, imported)
        again = await exported(gateway.recordings, row)
        assert again.files == recording_file.files
    assert len(threads) == 1
    assert threading.main_thread() not in threads


@sqlite_only
async def test_a_recording_is_exported_in_pieces(open_gateway: OpenGateway) -> None:
    """Its files may have hundreds of megabytes: neither they nor the JSON are ever in memory as a whole."""
    data = png(8, 8) + bytes(16 * 2**20)
    async with open_gateway() as running:
        gateway = running.gateway
        small = await exported(gateway.recordings, await record(running))
        document = json.loads(msgspec.json.encode(small))
        document["files"] *= 2
        document["files"][0] = {"content_type": "image/png", "data": base64.b64encode(data).decode()}
        imported = await files.import_recording(
            gateway.store, gateway.recordings, running.caller.org_id, document, {}, 1, pool=gateway.worker_pool
        )
        row = await gateway.recordings.get(running.caller.org_id, imported)

        async def read() -> None:
            _, pieces = await files.stream_recording(gateway.recordings, row)
            assert max([len(piece) async for piece in pieces]) < 2 * 2**20

        assert await peak_bytes(read) < 8 * 2**20
        large = await exported(gateway.recordings, row)
        assert [file.data for file in large.files] == [file["data"] for file in document["files"]]


@sqlite_only
@pytest.mark.parametrize("point", ["before its files are listed", "before the first file is read"])
async def test_a_recording_that_is_deleted_while_it_is_exported_is_not_found(
    open_gateway: OpenGateway, point: str
) -> None:
    """Before anything is sent, so that the caller gets an error instead of half a file."""
    async with open_gateway() as running:
        recordings = running.gateway.recordings
        row = await record(running)
        if point == "before its files are listed":
            await recordings.delete(row.org_id, row.id)
            with pytest.raises(NotFound, match=row.id):
                await files.stream_recording(recordings, row)
            with pytest.raises(NotFound, match=row.id):
                await files.export_recording(recordings, row)
        else:
            _, pieces = await files.stream_recording(recordings, row)
            await recordings.delete(row.org_id, row.id)
            with pytest.raises(NotFound, match=row.id):
                await anext(pieces)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"penstock_recording": 2}, "version is 1"),
        ({"kind": "smell"}, "version is 1"),
        ({"standard": "xyz"}, "not a recording"),
        ({"files": []}, "1 to 10 files"),
        ({"files": [{"content_type": "image/png", "data": "?"}]}, "not base64"),
        ({"files": [{"content_type": "image/jpeg", "data": "iVBORw0KGgo="}]}, "not image/jpeg"),
        ({"files": [{"content_type": "image/png", "file": "gone.png"}]}, "does not exist"),
        ({"duration_ms": "long"}, "not a recording"),
    ],
)
@sqlite_only
async def test_a_malformed_recording_file_is_refused(
    open_gateway: OpenGateway, change: dict[str, Any], words: str
) -> None:
    async with open_gateway() as running:
        recording_file = await exported(running.gateway.recordings, await record(running))
        document = {**copy.deepcopy(json.loads(msgspec.json.encode(recording_file))), **change}
        gateway = running.gateway
        with pytest.raises(InvalidRequest, match=words):
            await files.import_recording(
                gateway.store, gateway.recordings, running.caller.org_id, document, {}, 1, pool=gateway.worker_pool
            )


@sqlite_only
async def test_recordings_of_another_organization_are_not_found(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        row = await record(running)
        stranger = await running.create_caller_in_new_org()
        with pytest.raises(NotFound):
            await running.gateway.recordings.get(stranger.org_id, row.id)
        with pytest.raises(NotFound):
            await running.gateway.recordings.delete(stranger.org_id, row.id)


@sqlite_only
async def test_pages_in_both_directions(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        ids = []
        for _ in range(5):
            running.clock.advance(1)
            ids.append((await record(running)).id)
        newest = ids[::-1]
        recordings = running.gateway.recordings
        org = running.caller.org_id
        first = await recordings.page(org, 2)
        assert ([row.id for row in first.data], first.previous_cursor) == (newest[:2], None)
        second = await recordings.page(org, 2, starting_after=first.next_cursor)
        assert [row.id for row in second.data] == newest[2:4]
        back = await recordings.page(org, 2, ending_before=second.previous_cursor)
        assert [row.id for row in back.data] == newest[:2]
        last = await recordings.page(org, 2, starting_after=second.next_cursor)
        assert ([row.id for row in last.data], last.next_cursor) == (newest[4:], None)
