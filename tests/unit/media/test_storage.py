"""Files go in whole and come out in ranges, from a folder and from an object store alike."""

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from penstock.errors import StorageUnavailable
from penstock.media.storage import Bucket, FileMissing, Folder, Storage, key_of, open_storage
from penstock.values import new_id
from tests.s3_server import S3Server, run_s3_server

KEY = "ab/med_1"
PNG = "image/png"


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with run_s3_server(tmp_path_factory.mktemp("buckets")) as s3:
        yield s3


@pytest.fixture
def bucket(s3: S3Server) -> Storage:
    return open_storage(s3.new_url(), s3.options, Path("/nowhere"))


@pytest.fixture
def folder(tmp_path: Path) -> Storage:
    return open_storage("", {}, tmp_path)


@pytest.fixture(params=["folder", "bucket"])
def shelf(request: pytest.FixtureRequest) -> Storage:
    found: Storage = request.getfixturevalue(request.param)
    return found


async def read(shelf: Storage, key: str, start: int = 0, length: int = 10**9) -> bytes:
    return b"".join([chunk async for chunk in shelf.read(key, start, length)])


async def test_the_kinds_of_shelf(folder: Storage, bucket: Storage) -> None:
    assert isinstance(folder, Folder)
    assert isinstance(bucket, Bucket)


async def test_what_goes_in_comes_out(shelf: Storage) -> None:
    await shelf.put(KEY, b"0123456789", PNG)
    assert await read(shelf, KEY, 0, 10) == b"0123456789"


@pytest.mark.parametrize(
    ("start", "length", "expected"),
    [(0, 4, b"0123"), (3, 4, b"3456"), (9, 1, b"9"), (0, 10, b"0123456789"), (5, 0, b"")],
)
async def test_ranges(shelf: Storage, start: int, length: int, expected: bytes) -> None:
    await shelf.put(KEY, b"0123456789", PNG)
    assert await read(shelf, KEY, start, length) == expected


async def test_large_files_go_by_in_pieces(shelf: Storage, tmp_path: Path) -> None:
    data = os.urandom(3 * 2**20 + 17)
    source = tmp_path / "film"
    source.write_bytes(data)
    await shelf.put(KEY, source, "video/mp4")
    pieces = [chunk async for chunk in shelf.read(KEY, 0, len(data))]
    assert b"".join(pieces) == data
    assert len(pieces) > 1
    assert await read(shelf, KEY, 2**20, 5) == data[2**20 : 2**20 + 5]


async def test_putting_again_replaces(shelf: Storage) -> None:
    await shelf.put(KEY, b"the first, which is longer", PNG)
    await shelf.put(KEY, b"the second", PNG)
    assert await read(shelf, KEY, 0, 10) == b"the second"
    assert [key for key, _, _ in await shelf.keys()] == [KEY]


async def test_deleting(shelf: Storage) -> None:
    await shelf.put(KEY, b"x", PNG)
    assert await shelf.delete(KEY) is True
    assert await shelf.delete(KEY) is False
    with pytest.raises(FileMissing):
        await read(shelf, KEY, 0, 1)
    assert await shelf.keys() == []


async def test_what_is_not_there(shelf: Storage) -> None:
    with pytest.raises(FileMissing):
        await read(shelf, "zz/med_none", 0, 1)


async def test_keys_with_size_and_age(shelf: Storage) -> None:
    for number in range(3):
        await shelf.put(f"a{number}/med_{number}", b"x" * number, PNG)
    found = sorted(await shelf.keys())
    assert [(key, size) for key, size, _ in found] == [("a0/med_0", 0), ("a1/med_1", 1), ("a2/med_2", 2)]
    assert all(-5 < age < 60 for _, _, age in found)


async def test_many_at_once(shelf: Storage) -> None:
    await asyncio.gather(*(shelf.put(f"a{number}/med_{number}", b"%d" % number, PNG) for number in range(20)))
    whole = await asyncio.gather(*(read(shelf, f"a{number}/med_{number}", 0, 2) for number in range(20)))
    assert whole == [b"%d" % number for number in range(20)]


def test_names_spread_over_folders() -> None:
    keys = {key_of(new_id("med", 1_700_000_000_000)).split("/")[0] for _ in range(500)}
    assert len(keys) > 200
    outputs = {key_of(new_id("med", 1_700_000_000_000) + "00").split("/")[0] for _ in range(500)}
    assert len(outputs) > 100
    assert key_of("med_abcxy00") == "xy/med_abcxy00"


# --------------------------------------------------------------------------------------------------------------- folder


async def test_a_folder_has_no_addresses_of_its_own(folder: Storage) -> None:
    assert await folder.address(KEY, 60, {}) is None


@pytest.mark.parametrize("key", ["../x", "a/../../x", "/etc/passwd", "a//b", "", "A/b", "a/b.part", "a\0b", "a/b\n"])
async def test_only_names_of_ours(folder: Storage, key: str) -> None:
    with pytest.raises(ValueError, match="not a key"):
        await folder.put(key, b"x", PNG)
    with pytest.raises(ValueError, match="not a key"):
        await read(folder, key)


async def test_no_place_to_write(folder: Storage, tmp_path: Path) -> None:
    """A file stands where the folder should be: what a full disk is to us, without filling one."""
    (tmp_path / "media" / "ab").write_text("in the way")
    with pytest.raises(StorageUnavailable):
        await folder.put(KEY, b"x", PNG)


async def test_a_failed_put_leaves_nothing(folder: Storage, tmp_path: Path) -> None:
    with pytest.raises(StorageUnavailable):
        await folder.put(KEY, tmp_path / "gone", PNG)
    assert [path for path in (tmp_path / "media").rglob("*") if path.is_file()] == []


async def test_half_written_files(folder: Storage, tmp_path: Path) -> None:
    """Looking at a shelf, as the audit does, must not disturb who writes to it; starting does tidy up."""
    await folder.put(KEY, b"whole", PNG)
    half = tmp_path / "media" / "ab" / "med_2.0badcafe.part"
    half.write_bytes(b"ha")
    another = Folder(tmp_path / "media")
    assert [key for key, _, _ in await another.keys()] == [KEY]
    assert half.exists()
    await another.tidy(3600)
    assert half.exists(), "it is young, and others write here too"
    await another.tidy()
    assert not half.exists()
    assert await read(folder, KEY, 0, 5) == b"whole"


async def test_nobody_else_may_look(folder: Storage, tmp_path: Path) -> None:
    await folder.put(KEY, b"x", PNG)
    assert [(tmp_path / "media" / part).stat().st_mode & 0o077 for part in ("", "ab")] == [0, 0]


# --------------------------------------------------------------------------------------------------------------- bucket


def fetched(url: str, **headers: str) -> tuple[int, bytes, str]:
    with urlopen(Request(url, headers=headers)) as answer:  # noqa: S310
        return answer.status, answer.read(), answer.headers["content-type"]


async def test_a_bucket_signs_its_own_addresses(bucket: Storage, s3: S3Server) -> None:
    await bucket.put(KEY, b"0123456789", PNG)
    url = await bucket.address(KEY, 60, {})
    assert url is not None
    assert url.startswith(f"{s3.endpoint}/")
    assert await asyncio.to_thread(fetched, url) == (200, b"0123456789", PNG)
    assert (await asyncio.to_thread(fetched, url, Range="bytes=2-4"))[1] == b"234"


async def test_an_altered_address_is_refused(bucket: Storage) -> None:
    await bucket.put(KEY, b"0123456789", PNG)
    await bucket.put("ab/med_2", b"another's", PNG)
    url = await bucket.address(KEY, 60, {}) or ""
    with pytest.raises(HTTPError, match="403"):
        await asyncio.to_thread(fetched, url.replace("med_1", "med_2"))


async def test_addresses_live_no_longer_than_a_store_allows(bucket: Storage) -> None:
    await bucket.put(KEY, b"x", PNG)
    url = await bucket.address(KEY, 30 * 86_400, {}) or ""
    assert "X-Amz-Expires=604800" in url
    assert (await asyncio.to_thread(fetched, url))[0] == 200


async def test_a_bucket_that_is_away(s3: S3Server) -> None:
    options = {**s3.options, "aws_endpoint": "http://127.0.0.1:1"}
    away = Bucket("s3://away", options)
    with pytest.raises(StorageUnavailable):
        await away.put(KEY, b"x", PNG)
    with pytest.raises(StorageUnavailable):
        await read(away, KEY, 0, 1)
    with pytest.raises(StorageUnavailable):
        await away.delete(KEY)
    with pytest.raises(StorageUnavailable):
        await away.keys()


async def test_a_bucket_that_does_not_exist(s3: S3Server) -> None:
    with pytest.raises(StorageUnavailable):
        await Bucket("s3://nonesuch", s3.options).put(KEY, b"x", PNG)


async def test_what_is_beside_stays_unseen(s3: S3Server) -> None:
    ours, theirs = (open_storage(s3.new_url(), s3.options, Path()) for _ in range(2))
    await theirs.put(KEY, b"x", PNG)
    assert await ours.keys() == []
    with pytest.raises(FileMissing):
        await read(ours, KEY, 0, 1)
