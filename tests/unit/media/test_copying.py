"""Stored files are copied to a folder and compared with their SHA-256."""

from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest

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
