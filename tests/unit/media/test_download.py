"""A small video is downloaded into memory, a large one into a temporary file that is deleted."""

import hashlib
from contextlib import suppress
from pathlib import Path

import pytest

from penstock.event_loop import LONG_FILE_BYTES
from penstock.media.download import Download
from tests.fake_providers.scripted import mp4


def padded(size_bytes: int) -> bytes:
    """A video with a box of padding at its end."""
    video = mp4()
    rest = size_bytes - len(video)
    return video + rest.to_bytes(4, "big") + b"free" + bytes(rest - 8)


@pytest.mark.parametrize(("size_bytes", "is_in_memory"), [(LONG_FILE_BYTES, True), (LONG_FILE_BYTES + 1, False)])
async def test_a_video_is_kept_in_memory_up_to_a_size(tmp_path: Path, size_bytes: int, is_in_memory: bool) -> None:
    data = padded(size_bytes)
    with Download(tmp_path) as download:
        for start in range(0, len(data), 50_000):
            download.write(data[start : start + 50_000])
        assert [*tmp_path.iterdir()] == [] or not is_in_memory
        video, stored = await download.finish()
        assert video.content_type == "video/mp4"
        assert video.is_complete
        assert (video.size_bytes, video.sha256) == (size_bytes, hashlib.sha256(data).digest())
        assert isinstance(stored, bytes) is is_in_memory
        assert (stored if isinstance(stored, bytes) else stored.read_bytes()) == data
    assert [*tmp_path.iterdir()] == []


async def test_the_file_of_a_download_that_fails_is_deleted(tmp_path: Path) -> None:
    with suppress(ConnectionError), Download(tmp_path) as download:
        download.write(bytes(LONG_FILE_BYTES + 1))
        assert len([*tmp_path.iterdir()]) == 1
        raise ConnectionError
    assert [*tmp_path.iterdir()] == []
