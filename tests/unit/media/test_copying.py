"""Stored files are copied to a folder and compared with their SHA-256."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from hashlib import sha256
from pathlib import Path

import pytest

from penstock.errors import StorageUnavailable
from penstock.media.copying import copy_files
from penstock.media.opening import open_storage
from penstock.media.rows import FileDigest
from penstock.media.storage import Folder, Storage, storage_key
from penstock.values import new_id
from tests.s3_server import S3Server, run_s3_server


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with run_s3_server(tmp_path_factory.mktemp("buckets")) as s3:
        yield s3


@pytest.fixture(params=["folder", "bucket"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    if request.param == "folder":
        return open_storage("", {}, tmp_path / "data")
    s3: S3Server = request.getfixturevalue("s3")
    return open_storage(s3.new_url(), s3.options, tmp_path)


def row(content: bytes, prefix: str = "med") -> FileDigest:
    return FileDigest(id=f"{new_id(prefix, 1)}00", size_bytes=len(content), sha256=sha256(content).digest())


async def test_copies_have_the_same_keys_and_bytes(storage: Storage, tmp_path: Path) -> None:
    contents = [b"", b"small", b"x" * 600_000, *[bytes([number]) * 1000 for number in range(20)]]
    rows = [row(content, "rfl" if number % 2 else "med") for number, content in enumerate(contents)]
    for each, content in zip(rows, contents, strict=True):
        await storage.replace(storage_key(each.id), content, "image/png")
    copied = await copy_files(storage, rows, tmp_path / "copy")
    assert (copied.files, copied.size_bytes) == (23, sum(map(len, contents)))
    assert (copied.missing, copied.damaged) == ([], [])
    copy = Folder(tmp_path / "copy")
    for each, content in zip(rows, contents, strict=True):
        assert (tmp_path / "copy" / storage_key(each.id)).read_bytes() == content
    assert len(await copy.list_files()) == 23, "nothing else is left there"


async def test_missing_and_damaged_files_are_named_and_the_others_copied(storage: Storage, tmp_path: Path) -> None:
    good = row(b"good")
    gone = row(b"gone")
    damaged = row(b"as it was")
    await storage.replace(storage_key(good.id), b"good", "image/png")
    await storage.replace(storage_key(damaged.id), b"as it is!", "image/png")
    copied = await copy_files(storage, [gone, good, damaged], tmp_path / "copy")
    assert (copied.files, copied.missing, copied.damaged) == (2, [gone.id], [damaged.id])
    assert len(await Folder(tmp_path / "copy").list_files()) == 2


class BrokenFile(Folder):
    """A folder of which one file cannot be read to its end."""

    broken = ""

    async def read(self, key: str, start: int, length: int) -> AsyncIterator[bytes]:
        async for chunk in super().read(key, start, length):
            yield chunk
            if key == self.broken:
                raise OSError(5, "Input/output error")


async def test_a_file_that_cannot_be_read_ends_the_copy_and_is_named(tmp_path: Path) -> None:
    storage = BrokenFile(tmp_path / "media")
    rows = [row(bytes([number]) * 10) for number in range(30)]
    for number, each in enumerate(rows):
        await storage.replace(storage_key(each.id), bytes([number]) * 10, "image/png")
    storage.broken = storage_key(rows[12].id)
    with pytest.raises(StorageUnavailable, match=f"{rows[12].id} could not be copied: Input/output error"):
        await copy_files(storage, rows, tmp_path / "copy")
    assert not list((tmp_path / "copy").glob("*.copy")), "no half of a file is left"


async def test_a_copy_that_cannot_be_written_is_named(storage: Storage, tmp_path: Path) -> None:
    (tmp_path / "copy").mkdir()
    first = row(b"first")
    await storage.replace(storage_key(first.id), b"first", "image/png")
    (tmp_path / "copy" / storage_key(first.id)).parent.write_text("where a folder should be")
    with pytest.raises(StorageUnavailable, match=f"{first.id} could not be copied: "):
        await copy_files(storage, [first], tmp_path / "copy")


async def test_a_copy_of_many_files_has_few_tasks(tmp_path: Path) -> None:
    storage = Folder(tmp_path / "media")
    rows = [row(b"gone") for _ in range(500)]
    most = 0

    def counted() -> Iterator[FileDigest]:
        nonlocal most
        for each in rows:
            most = max(most, len(asyncio.all_tasks()))
            yield each

    assert len((await copy_files(storage, counted(), tmp_path / "copy")).missing) == 500
    assert most < 20
