"""Files are stored, read in ranges, listed and deleted, in a folder and in an object store alike."""

import asyncio
import errno
import os
from pathlib import Path

import pytest

from penstock.errors import StorageUnavailable
from penstock.media.opening import open_storage
from penstock.media.storage import FileExists, FileMissing, Folder, Storage, storage_key
from penstock.values import new_id

KEY = "ab/med_1"
PNG = "image/png"


@pytest.fixture
def folder(tmp_path: Path) -> Storage:
    return open_storage("", {}, tmp_path)


@pytest.fixture(params=["folder", "bucket"])
def storage(request: pytest.FixtureRequest) -> Storage:
    found: Storage = request.getfixturevalue(request.param)
    return found


async def read(storage: Storage, key: str, start: int = 0, length: int = 10**9) -> bytes:
    return b"".join([chunk async for chunk in storage.read(key, start, length)])


async def test_a_stored_file_can_be_read(storage: Storage) -> None:
    await storage.replace(KEY, b"0123456789", PNG)
    assert await read(storage, KEY, 0, 10) == b"0123456789"


@pytest.mark.parametrize(
    ("start", "length", "expected"),
    [(0, 4, b"0123"), (3, 4, b"3456"), (9, 1, b"9"), (0, 10, b"0123456789"), (5, 0, b"")],
)
async def test_a_range_can_be_read(storage: Storage, start: int, length: int, expected: bytes) -> None:
    await storage.replace(KEY, b"0123456789", PNG)
    assert await read(storage, KEY, start, length) == expected


async def test_large_files_are_read_in_chunks(storage: Storage, tmp_path: Path) -> None:
    data = os.urandom(3 * 2**20 + 17)
    source = tmp_path / "video"
    source.write_bytes(data)
    await storage.replace(KEY, source, "video/mp4")
    pieces = [chunk async for chunk in storage.read(KEY, 0, len(data))]
    assert b"".join(pieces) == data
    assert len(pieces) > 1
    assert await read(storage, KEY, 2**20, 5) == data[2**20 : 2**20 + 5]


async def test_a_new_file_never_replaces_another(storage: Storage) -> None:
    await storage.create(KEY, b"the first", PNG)
    with pytest.raises(FileExists):
        await storage.create(KEY, b"the second", PNG)
    assert await read(storage, KEY, 0, 9) == b"the first"
    assert [key for key, _, _ in await storage.list_files()] == [KEY]


async def test_only_one_of_many_creators_stores_its_file(folder: Storage) -> None:
    results = await asyncio.gather(
        *(folder.create(KEY, b"%d" % number, PNG) for number in range(8)), return_exceptions=True
    )
    (winner,) = (number for number, result in enumerate(results) if result is None)
    assert await read(folder, KEY) == b"%d" % winner


async def test_a_folder_without_links_creates_files_too(folder: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError("links are not supported")

    monkeypatch.setattr(os, "link", refuse)
    await folder.create(KEY, b"the first", PNG)
    with pytest.raises(FileExists):
        await folder.create(KEY, b"the second", PNG)
    assert await read(folder, KEY) == b"the first"


async def test_a_folder_moves_a_file_on_the_same_disk(folder: Storage, tmp_path: Path) -> None:
    source = tmp_path / "video"
    source.write_bytes(b"a video")
    inode = source.stat().st_ino
    await folder.replace(KEY, source, "video/mp4")
    assert (tmp_path / "media" / KEY).stat().st_ino == inode
    assert not source.exists()


async def test_a_folder_copies_a_file_from_another_disk(
    folder: Storage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "video"
    source.write_bytes(b"a video")
    rename = Path.rename

    def rename_within_media(self: Path, target: Path) -> Path:
        if self == source:
            raise OSError(errno.EXDEV, "another disk")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", rename_within_media)
    await folder.replace(KEY, source, "video/mp4")
    assert await read(folder, KEY) == b"a video"


async def test_storing_again_replaces_the_file(storage: Storage) -> None:
    await storage.replace(KEY, b"the first, which is longer", PNG)
    await storage.replace(KEY, b"the second", PNG)
    assert await read(storage, KEY, 0, 10) == b"the second"
    assert [key for key, _, _ in await storage.list_files()] == [KEY]


async def test_a_copy_outlives_the_file_that_it_was_made_of(storage: Storage) -> None:
    await storage.replace("aa/med_1", b"clip", "video/mp4")
    for _ in range(2):  # a crash in between may have it copied again
        await storage.copy("aa/med_1", "recordings/bb/rfl_1")
    assert await storage.delete("aa/med_1")
    assert await read(storage, "recordings/bb/rfl_1") == b"clip"
    with pytest.raises(FileMissing):
        await storage.copy("aa/med_1", "recordings/bb/rfl_1")


async def test_a_deleted_file_is_gone(storage: Storage) -> None:
    await storage.replace(KEY, b"x", PNG)
    assert await storage.delete(KEY) is True
    assert await storage.delete(KEY) is False
    with pytest.raises(FileMissing):
        await read(storage, KEY, 0, 1)
    assert await storage.list_files() == []


async def test_reading_a_missing_file_is_an_error(storage: Storage) -> None:
    with pytest.raises(FileMissing):
        await read(storage, "zz/med_none", 0, 1)


async def test_files_are_listed_with_size_and_age(storage: Storage) -> None:
    for number in range(3):
        await storage.replace(f"a{number}/med_{number}", b"x" * number, PNG)
    found = sorted(await storage.list_files())
    assert [(key, size) for key, size, _ in found] == [("a0/med_0", 0), ("a1/med_1", 1), ("a2/med_2", 2)]
    assert all(-5 < age < 600 for _, _, age in found)


async def test_many_files_can_be_stored_and_read_at_once(storage: Storage) -> None:
    await asyncio.gather(*(storage.replace(f"a{number}/med_{number}", b"%d" % number, PNG) for number in range(20)))
    contents = await asyncio.gather(*(read(storage, f"a{number}/med_{number}", 0, 2) for number in range(20)))
    assert contents == [b"%d" % number for number in range(20)]


def test_keys_are_spread_over_folders() -> None:
    keys = {storage_key(new_id("med", 1_700_000_000_000)).split("/")[0] for _ in range(500)}
    assert len(keys) > 200
    outputs = {storage_key(new_id("med", 1_700_000_000_000) + "00").split("/")[0] for _ in range(500)}
    assert len(outputs) > 100
    assert storage_key("med_abcxy00") == "xy/med_abcxy00"
    assert storage_key("rfl_abcxy00") == "recordings/xy/rfl_abcxy00"


# --------------------------------------------------------------------------------------------------------------- folder


async def test_a_folder_has_no_signed_urls(folder: Storage) -> None:
    assert await folder.signed_url(KEY, 60) is None


async def test_malformed_keys_are_errors(folder: Storage) -> None:
    for key in ("../x", "a/../../x", "/etc/passwd", "a//b", "", "A/b", "a/b.part", "a\0b", "a/b\n"):
        with pytest.raises(ValueError, match="not a key"):
            await folder.replace(key, b"x", PNG)
        with pytest.raises(ValueError, match="not a key"):
            await read(folder, key)


async def test_a_write_that_fails_means_storage_unavailable(folder: Storage, tmp_path: Path) -> None:
    """A file in place of a folder gives the same kind of error as a full disk."""
    (tmp_path / "media" / "ab").write_text("in the way")
    with pytest.raises(StorageUnavailable):
        await folder.replace(KEY, b"x", PNG)


async def test_a_failed_write_leaves_no_file(folder: Storage, tmp_path: Path) -> None:
    with pytest.raises(StorageUnavailable):
        await folder.replace(KEY, tmp_path / "gone", PNG)
    assert [path for path in (tmp_path / "media").rglob("*") if path.is_file()] == []


async def test_half_written_files_are_not_listed_and_deleted_on_request(folder: Storage, tmp_path: Path) -> None:
    await folder.replace(KEY, b"whole", PNG)
    half = tmp_path / "media" / "ab" / "med_2.0badcafe.part"
    half.write_bytes(b"ha")
    another = Folder(tmp_path / "media")
    assert [key for key, _, _ in await another.list_files()] == [KEY]
    assert half.exists()
    await another.delete_unfinished(3600)
    assert half.exists(), "a running process may be writing it"
    await another.delete_unfinished()
    assert not half.exists()
    assert await read(folder, KEY, 0, 5) == b"whole"


async def test_folders_are_private(folder: Storage, tmp_path: Path) -> None:
    await folder.replace(KEY, b"x", PNG)
    assert [(tmp_path / "media" / part).stat().st_mode & 0o077 for part in ("", "ab")] == [0, 0]
