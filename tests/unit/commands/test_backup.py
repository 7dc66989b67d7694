"""`penstock backup`: a copy of the database, with files if wanted, that a gateway can run on."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from penstock.media.storage import Storage
from tests.command_line import done, penstock
from tests.gateway import MASTER, Installation, OpenGateway, RunningGateway, postgres_only, sqlite_only
from tests.s3_server import run_s3_server


def test_a_backup_is_a_usable_data_folder(data_folder: Path, tmp_path: Path) -> None:
    data, copy = data_folder, tmp_path / "kept" / "copy"
    made = done("keys", "create", "--data", data, "--name", "first").lines[0][0]
    assert "Stored files are not included" in done("backup", copy, "--data", data).out
    assert (copy.stat().st_mode & 0o777, (copy / "secret.key").stat().st_mode & 0o777) == (0o700, 0o600)
    assert done("keys", "list", "--data", copy).lines == done("keys", "list", "--data", data).lines
    assert made not in (copy / "penstock.db").read_bytes().decode("latin-1")
    assert done("audit", "--data", copy).out.splitlines()[-1] == "audit clean"


def test_an_existing_folder_is_not_overwritten(data_folder: Path, tmp_path: Path) -> None:
    refused = penstock("backup", tmp_path, "--data", data_folder)
    assert refused.status == 1
    assert "exists" in refused.err


# --------------------------------------------------------------------------------------------------------------- files


async def make_files(running: RunningGateway) -> dict[str, bytes]:
    """Make an image, a recorded one and a video; return the bytes of every file by its key."""
    await running.image()
    await running.image(headers={"x-service-replay": "record"})
    await running.wait_for_video((await running.video()).json["id"])
    return {file.key: await read(running.storage, file.key) for file in await running.storage.list_files()}


async def read(storage: Storage, key: str) -> bytes:
    return b"".join([chunk async for chunk in storage.read(key, 0, 10**9)])


def files_of(open_gateway: OpenGateway, **changes: Any) -> dict[str, bytes]:
    async def work() -> dict[str, bytes]:
        async with open_gateway(**changes) as running:
            return await make_files(running)

    return asyncio.run(work())


@sqlite_only
@pytest.mark.parametrize("place", ["folder", "bucket"])
def test_a_restored_backup_has_the_files_and_goes_on(
    open_gateway: OpenGateway, installation: Installation, tmp_path: Path, place: str
) -> None:
    copy = tmp_path / "copy"
    (tmp_path / "buckets").mkdir()
    with run_s3_server(tmp_path / "buckets") as s3:
        media = s3.new_url() if place == "bucket" else ""
        files = files_of(open_gateway, media=media, media_options=s3.options)
        assert len(files) == 4, "two images, a video, and the file of the recording"
        options = ",".join(f"{name}={value}" for name, value in s3.options.items())
        where = {"PENSTOCK_SECRET": MASTER, "PENSTOCK_MEDIA": media, "PENSTOCK_MEDIA_OPTIONS": options}
        told = done("backup", copy, "--media", "--data", installation.data, **where).out
    assert told == f"Copied to {copy}, with 4 files of {sum(map(len, files.values()))} bytes.\n"
    assert done("audit", "--files", "--data", copy, PENSTOCK_SECRET=MASTER).out == "audit clean\n"

    async def restore() -> None:
        restored = Installation(copy, "", installation.clock, installation.key)
        async with restored.open() as running:
            assert {key: await read(running.storage, key) for key in files} == files
            replayed = await running.image(headers={"x-service-replay": "replay-or-error"})
            assert replayed["metadata"]["cost"] == 0
            await running.image()

    asyncio.run(restore())


@sqlite_only
def test_files_that_are_gone_are_named_and_damaged_ones_fail(
    open_gateway: OpenGateway, installation: Installation, tmp_path: Path
) -> None:
    files = files_of(open_gateway)
    gone, damaged, *_ = files
    (installation.data / "media" / gone).unlink()
    (installation.data / "media" / damaged).write_bytes(b"!" * len(files[damaged]))
    ended = penstock("backup", tmp_path / "copy", "--media", "--data", installation.data, PENSTOCK_SECRET=MASTER)
    assert ended.status == 1
    assert "with 3 files" in ended.out
    assert f"missing: {gone.rpartition('/')[2]}" in ended.err
    assert f"stored: {damaged.rpartition('/')[2]}" in ended.err


@postgres_only
def test_with_postgres_only_the_files_are_copied(
    open_gateway: OpenGateway, installation: Installation, tmp_path: Path
) -> None:
    where = {"PENSTOCK_SECRET": MASTER, "PENSTOCK_DATABASE": installation.database}
    refused = penstock("backup", tmp_path / "refused", "--data", installation.data, **where)
    assert (refused.status, "pg_dump" in refused.err) == (1, True)
    files = files_of(open_gateway)
    assert "with 4 files" in done("backup", tmp_path / "copy", "--media", "--data", installation.data, **where).out
    for key, content in files.items():
        assert (tmp_path / "copy" / "media" / key).read_bytes() == content
