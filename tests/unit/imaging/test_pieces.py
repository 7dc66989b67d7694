"""Files that arrive in pieces are read one after the other."""

import io

import pytest

from penstock.imaging.messages import NO_MORE_FILES
from penstock.imaging.pieces import Pieces


def size(count: int) -> bytes:
    return count.to_bytes(4, "big")


def sent(*files: list[bytes]) -> Pieces:
    parts = [b"".join(size(len(piece)) + piece for piece in file) + size(0) for file in files]
    return Pieces(io.BytesIO(b"".join(parts) + size(NO_MORE_FILES)))


def test_each_file_is_read_to_its_end() -> None:
    read = [[file.read(2) for _ in range(5)] for file in sent([b"abc", b"de"], [b"f"]).files()]
    assert read == [[b"ab", b"c", b"de", b"", b""], [b"f", b"", b"", b"", b""]]


def test_what_is_left_unread_is_skipped() -> None:
    assert [file.read(1) for file in sent([b"abc", b"d"], [b"ef"]).files()] == [b"a", b"e"]


def test_nothing_follows_the_last_file() -> None:
    pieces = sent([b"a"])
    assert len(list(pieces.files())) == 1
    assert list(pieces.files()) == []


def test_an_end_in_the_middle_is_an_error() -> None:
    with pytest.raises(EOFError):
        list(Pieces(io.BytesIO(size(5) + b"ab")).files())
