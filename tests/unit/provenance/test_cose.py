"""A time-stamp fits into the empty place of a seal, or is refused."""

import pytest

from penstock.provenance.cose import byte_string, text_string, with_stamp
from tests import cbor


@pytest.mark.parametrize("size", [0, 23, 24, 255, 256, 65535, 65536])
def test_bytes_are_written_as_they_are_read(size: int) -> None:
    assert cbor.decode(byte_string(b"x" * size)) == b"x" * size
    assert cbor.decode(text_string("pad")) == "pad"


def store(empty: int) -> bytes:
    return b"before\xa1\x63pad\x59" + empty.to_bytes(2, "big") + bytes(empty) + b"\xf6\x58\x40" + b"s" * 64 + b"after"


def test_a_stamp_takes_the_place_of_zeros() -> None:
    whole = store(2000)
    made = with_stamp(b"<" + whole + b">", "video/mp4", whole, b"t" * 1000)
    assert len(made) == len(whole) + 2
    headers = cbor.decode(made[made.index(b"before") + 6 :])
    assert headers["sigTst2"] == {"tstTokens": [{"val": b"t" * 1000}]}
    assert not any(headers["pad"])
    assert made.endswith(b"\xf6\x58\x40" + b"s" * 64 + b"after>")


@pytest.mark.parametrize(
    ("file", "whole", "reason"),
    [
        (store(2000), b"nothing", "has no place"),
        (store(2000), store(2000).replace(b"\xf6", b"\xf7"), "has no place"),
        (store(800), store(800), "is too large"),
        (b"another file", store(2000), "in one piece"),
        (store(2000) * 2, store(2000), "in one piece"),
    ],
)
def test_a_stamp_without_a_place_is_refused(file: bytes, whole: bytes, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        with_stamp(file, "video/mp4", whole, b"t" * 1000)
