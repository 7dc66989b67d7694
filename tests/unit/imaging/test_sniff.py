"""File types and image sizes agree with real encoders; no input raises an error or takes long."""

from __future__ import annotations

import io
import struct
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as some
from PIL import Image

from penstock.imaging.sniff import MAX_SEGMENTS, FileInfo, is_svg, sniff


def saved(name: str, size: tuple[int, int] = (37, 53), mode: str = "RGB", **options: object) -> bytes:
    buffer = io.BytesIO()
    Image.new(mode, size, None).save(buffer, name, **options)
    return buffer.getvalue()


REAL = [
    *(saved(name) for name in ("PNG", "JPEG", "GIF", "WEBP", "AVIF")),
    saved("WEBP", lossless=True),
    saved("WEBP", mode="RGBA"),
    saved("AVIF", mode="RGBA"),
    saved("JPEG", progressive=True, comment=b"x" * 60_000, icc_profile=b"\0" * 200_000),
]


@pytest.mark.parametrize("data", REAL)
def test_size_and_type_of_real_files(data: bytes) -> None:
    found = sniff(data)
    assert found is not None
    with Image.open(io.BytesIO(data)) as image:
        assert (found.width, found.height) == image.size == (37, 53)
        assert found.content_type == image.get_format_mimetype()


@pytest.mark.parametrize("data", REAL)
@pytest.mark.parametrize("length", [0, 1, 4, 12, 16, 20, 23])
def test_incomplete_headers_are_unknown(data: bytes, length: int) -> None:
    found = sniff(data[:length])
    assert found is None or found.content_type == "image/gif"  # its size is in the first ten bytes


def test_a_rotated_avif_gives_the_size_as_shown() -> None:
    plain = saved("AVIF")
    assert b"irot" not in plain
    rotation = struct.pack(">I4sB", 9, b"irot", 1)
    grown = plain
    for name in (b"meta", b"iprp", b"ipco"):
        at = grown.index(name) - 4
        grown = grown[:at] + struct.pack(">I", struct.unpack(">I", grown[at : at + 4])[0] + 9) + grown[at + 4 :]
    at = grown.index(b"ipco") - 4
    size = struct.unpack(">I", grown[at : at + 4])[0]
    grown = grown[: at + size - 9] + rotation + grown[at + size - 9 :]
    assert sniff(grown) == FileInfo("image/avif", 53, 37)


@pytest.mark.parametrize(
    ("brand", "content_type"),
    [(b"isom", "video/mp4"), (b"mp42", "video/mp4"), (b"iso6", "video/mp4"), (b"qt  ", "video/quicktime")],
)
def test_videos_are_recognised_by_their_brand(brand: bytes, content_type: str) -> None:
    assert sniff(struct.pack(">I4s4sI4s", 20, b"ftyp", brand, 512, b"free")) == FileInfo(content_type)


def test_webm_is_recognised_by_its_document_type() -> None:
    assert sniff(b"\x1aE\xdf\xa3\x9fB\x86\x81\x01B\xf7\x81\x01B\xf2\x81\x04B\xf3\x81\x08B\x82\x84webm") == FileInfo(
        "video/webm"
    )


@pytest.mark.parametrize(
    "data",
    [
        b"%!PS-Adobe-3.0 EPSF-3.0",
        b"8BPS\0\1",
        b"SIMPLE  =                    T",
        b"<svg xmlns='x'/>",
        b"II*\0",
        b"BM",
        b"PK\3\4",
    ],
)
def test_other_formats_are_unknown(data: bytes) -> None:
    assert sniff(data + bytes(64)) is None


class CountedBytes(bytes):
    """Counts how often it is read, and how many bytes."""

    reads = 0
    bytes_read = 0

    def __getitem__(self, key: Any) -> Any:
        found = super().__getitem__(key)
        self.reads += 1
        self.bytes_read += 1 if isinstance(found, int) else len(found)
        return found


def box(size: int, name: bytes) -> bytes:
    return struct.pack(">I4s", size, name)


@pytest.mark.parametrize(
    ("start", "segment"),
    [
        (b"\xff\xd8", b"\xff"),
        (b"\xff\xd8\xff", b"\xd0\xff"),
        (b"\xff\xd8", b"\xff\xe1\0\2"),
        (box(16, b"ftyp") + b"avif" + bytes(4), box(8, b"free")),
    ],
    ids=["padding", "restart markers", "empty segments", "boxes"],
)
def test_endless_headers_are_read_up_to_a_limit(start: bytes, segment: bytes) -> None:
    files = [CountedBytes(start + segment * count) for count in (10 * MAX_SEGMENTS, 1000 * MAX_SEGMENTS)]
    assert [sniff(file) for file in files] == [None, None]
    assert files[0].reads == files[1].reads < 10 * MAX_SEGMENTS
    assert files[0].bytes_read == files[1].bytes_read < 100 * MAX_SEGMENTS


@given(
    some.sampled_from(
        [
            b"",
            b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR",
            b"\xff\xd8\xff",
            b"GIF89a",
            b"RIFF\0\0\0\0WEBPVP8X",
            b"RIFF\0\0\0\0WEBPVP8L",
        ]
    ),
    some.binary(max_size=300),
)
def test_random_bytes_after_a_signature_raise_nothing(magic: bytes, rest: bytes) -> None:
    found = sniff(magic + rest)
    assert found is None or (found.width > 0 and found.height > 0)


@given(some.sampled_from(REAL), some.data())
def test_damaged_files_raise_nothing(data: bytes, draw: some.DataObject) -> None:
    damaged = bytearray(data)
    for _ in range(draw.draw(some.integers(1, 8))):
        at = draw.draw(some.integers(0, min(len(damaged) - 1, 400)))
        damaged[at] = draw.draw(some.integers(0, 255))
    sniff(bytes(damaged[: draw.draw(some.integers(0, len(damaged)))]))


@given(
    some.lists(
        some.tuples(
            some.integers(0, 2**32 - 1), some.sampled_from([b"meta", b"iprp", b"ipco", b"ispe", b"irot", b"free"])
        )
    )
)
@example([(0, b"meta"), (1, b"iprp")])
def test_boxes_with_wrong_sizes_raise_nothing(boxes: list[tuple[int, bytes]]) -> None:
    sniff(struct.pack(">I4s4sI", 16, b"ftyp", b"avif", 0) + b"".join(struct.pack(">I4s", *box) for box in boxes))


def test_is_svg() -> None:
    svg = '<svg xmlns="http://www.w3.org/2000/svg"/>'
    drawings = [svg, f'\ufeff<?xml version="1.0"?>\n<!-- x --><!DOCTYPE svg PUBLIC "-//W3C//DTD SVG 1.1//EN">{svg}']
    others = ["<html><svg>", "GIF89a<svg>", "<svgx>", "", "<?xml version='1.0'", "<!--" + "<" * 5000]
    others.append(f"<!--{'x' * 5000}-->{svg}")  # it begins too late
    assert [is_svg(text.encode()) for text in (*drawings, *others)] == [True] * 2 + [False] * len(others)
