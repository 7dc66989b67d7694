"""A video that was cut off is recognised by the structure of its file."""

import io

import pytest

from penstock.media import container
from tests.fake_providers.scripted import mp4


def box(kind: bytes, content: bytes = b"", *, length: int | None = None) -> bytes:
    return (len(content) + 8 if length is None else length).to_bytes(4, "big") + kind + content


def is_complete(data: bytes, content_type: str = "video/mp4") -> bool:
    return container.is_complete(lambda start: data[start : start + 16], len(data), content_type)


FTYP = box(b"ftyp", b"isom")
MOOV = box(b"moov", b"\0" * 40)
WHOLE = {
    "a real one": mp4(),
    "index first": FTYP + MOOV + box(b"mdat", b"x" * 50),
    "index last": FTYP + box(b"mdat", b"x" * 50) + MOOV,
    "a long length": FTYP + MOOV + box(b"mdat", (66).to_bytes(8, "big") + b"x" * 50, length=1),
    "a last box without length": FTYP + MOOV + box(b"mdat", b"x" * 50, length=0),
}


@pytest.mark.parametrize("data", WHOLE.values(), ids=WHOLE.keys())
def test_a_whole_video(data: bytes) -> None:
    assert is_complete(data)


@pytest.mark.parametrize("name", [name for name in WHOLE if "without length" not in name])
def test_a_video_that_was_cut_off_anywhere(name: str) -> None:
    data = WHOLE[name]
    whole = {len(FTYP + MOOV)} if data.startswith(FTYP + MOOV) else set()
    for size in set(range(0, len(data), 7)) - whole:
        assert not is_complete(data[:size]), size


@pytest.mark.parametrize("data", [FTYP, b"", b"\0" * 100, box(b"moov", length=4), FTYP + box(b"mdat", b"x", length=0)])
def test_what_cannot_be_played(data: bytes) -> None:
    assert not is_complete(data)


def test_other_containers_are_not_read() -> None:
    assert is_complete(b"", "video/webm")


def test_a_file_in_memory_is_read_like_one_on_the_disk() -> None:
    for data in (*WHOLE.values(), mp4()[:-1], b"", b"\x1aE\xdf\xa3webm", b"<html>"):
        assert container.inspect_bytes(data) == container.inspect_video(io.BytesIO(data)), data[:20]
