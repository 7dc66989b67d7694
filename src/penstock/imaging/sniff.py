"""Recognise the type of a file, and the size of an image, by the first bytes and without decoding."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from penstock.imaging.formats import CONTENT_TYPES, FORMATS, LOSSY, MAX_PIXELS, MAX_SIDE, OutputFormat
from penstock.long_bodies.buffers import Buffer

# This runs on the event loop, on untrusted bytes. So it never raises, and it reads at most MAX_SEGMENTS segments or
# boxes of a file, whatever the file contains.
MAX_SEGMENTS = 2_000


class FileInfo(NamedTuple):
    """The type of a file and, for an image, its size."""

    content_type: str
    width: int = 0  # as stored, before a rotation by EXIF; 0 for videos
    height: int = 0


_JPEG_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_JPEG_WITHOUT_LENGTH = frozenset({0x01, *range(0xD0, 0xD8)})
_BMP_HEADERS = frozenset({40, 52, 56, 108, 124})  # lengths of the second header
_AVIF_BRANDS = frozenset({b"avif", b"avis"})
_VIDEO_BRANDS = frozenset({b"isom", b"mp41", b"mp42", b"avc1", b"M4V ", b"MSNV", b"dash", b"3gp4", b"3gp5", b"mmp4"})


def sniff(data: Buffer) -> FileInfo | None:
    """Return what a file is by its first bytes; None when the type is unknown or the header is incomplete."""
    head = bytes(data[:64])
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        return _png(data)
    if head.startswith(b"\xff\xd8\xff"):
        return _jpeg(data)
    if head.startswith((b"GIF87a", b"GIF89a")):
        return _image("image/gif", _little(data, 6, 2), _little(data, 8, 2))
    if head.startswith(b"RIFF") and head[8:12] == b"WEBP":
        return _webp(data)
    if head.startswith(b"\x1aE\xdf\xa3"):
        return FileInfo("video/webm") if b"webm" in head else None
    if head[4:8] == b"ftyp":
        return _base_media(data)
    if head.startswith(b"BM") and _little(data, 14, 4) in _BMP_HEADERS:
        return _image("image/bmp", _little(data, 18, 4), abs(int.from_bytes(data[22:26], "little", signed=True)))
    return None


def unconverted(data: Buffer, output_format: OutputFormat, output_compression: int = 100) -> FileInfo | None:
    """Return what the file is when `convert` would not change it, so that no child process is needed; else None."""
    found = sniff(data)
    return found if found and is_unconverted(found, output_format, output_compression) else None


def is_unconverted(found: FileInfo, output_format: OutputFormat, output_compression: int = 100) -> bool:
    """Whether `convert` would not change such a file."""
    if found.content_type not in FORMATS or found.width == 0:
        return False
    too_long = max(found.width, found.height) > MAX_SIDE.get(output_format, MAX_PIXELS)
    too_large = found.width * found.height > MAX_PIXELS
    same = found.content_type == CONTENT_TYPES[output_format]
    finished = same and (output_compression == 100 or output_format not in LOSSY)
    return too_long or too_large or finished


def is_svg(data: Buffer) -> bool:
    """Whether a file begins as an SVG does, by its first bytes."""
    head = bytes(data[:4096]).removeprefix(b"\xef\xbb\xbf").lstrip()
    for start, end in ((b"<?xml", b"?>"), (b"<!--", b"-->"), (b"<!DOCTYPE", b">"), (b"<!--", b"-->")):
        if head.startswith(start):
            head = head.partition(end)[2].lstrip()
    return re.match(rb"<(\w{1,20}:)?svg[\s/>]", head) is not None


def _image(content_type: str, width: int, height: int) -> FileInfo | None:
    return FileInfo(content_type, width, height) if width > 0 and height > 0 else None


def big_endian(data: Buffer, start: int, size: int) -> int:
    return int.from_bytes(data[start : start + size], "big") if start + size <= len(data) else 0


def _little(data: Buffer, start: int, size: int) -> int:
    return int.from_bytes(data[start : start + size], "little") if start + size <= len(data) else 0


def _png(data: Buffer) -> FileInfo | None:
    if data[12:16] != b"IHDR":
        return None
    return _image("image/png", big_endian(data, 16, 4), big_endian(data, 20, 4))


def _jpeg(data: Buffer) -> FileInfo | None:
    position = 2
    for _ in range(MAX_SEGMENTS):
        if position + 4 > len(data) or data[position] != 0xFF:
            return None
        marker = data[position + 1]
        if marker in _JPEG_FRAMES:
            return _image("image/jpeg", big_endian(data, position + 7, 2), big_endian(data, position + 5, 2))
        if marker == 0xFF:  # padding
            position += 1
        elif marker in _JPEG_WITHOUT_LENGTH:
            position += 2
        else:
            position += 2 + max(2, big_endian(data, position + 2, 2))
    return None


def _webp(data: Buffer) -> FileInfo | None:
    kind = data[12:16]
    if kind == b"VP8X":
        return _image("image/webp", 1 + _little(data, 24, 3), 1 + _little(data, 27, 3)) if len(data) >= 30 else None
    if kind == b"VP8L" and data[20:21] == b"\x2f" and len(data) >= 25:
        bits = _little(data, 21, 4)
        return _image("image/webp", 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF))
    if kind == b"VP8 " and data[23:26] == b"\x9d\x01\x2a":
        return _image("image/webp", _little(data, 26, 2) & 0x3FFF, _little(data, 28, 2) & 0x3FFF)
    return None


def _base_media(data: Buffer) -> FileInfo | None:
    head = bytes(data[:512])
    end = min(big_endian(head, 0, 4), len(head))
    brands = {head[8:12], *(head[start : start + 4] for start in range(16, end, 4))}
    if brands & _AVIF_BRANDS:
        return _avif(data)
    if head[8:12] == b"qt  ":
        return FileInfo("video/quicktime")
    if brands & _VIDEO_BRANDS or head[8:11] == b"iso":
        return FileInfo("video/mp4")
    return None


def _avif(data: Buffer) -> FileInfo | None:
    # Thumbnails, tiles and alpha planes have sizes too; the size of the image is the largest.
    width = height = 0
    rotated = False
    for box_type, start, end in _properties(data):
        if box_type == b"ispe" and end - start >= 12:
            size = big_endian(data, start + 4, 4), big_endian(data, start + 8, 4)
            width, height = max((width, height), size, key=lambda sides: sides[0] * sides[1])
        elif box_type == b"irot" and end > start:
            rotated = data[start] & 1 == 1
    return _image("image/avif", *((height, width) if rotated else (width, height)))


def _properties(data: Buffer) -> Iterator[tuple[bytes, int, int]]:
    """Yield the properties of the images in an AVIF file, as `boxes` does."""
    start = 0
    end = len(data)
    for name, skipped in ((b"meta", 4), (b"iprp", 0), (b"ipco", 0)):
        found = next((box for box in boxes(data, start, end) if box[0] == name), None)
        if found is None:
            return
        start, end = found[1] + skipped, found[2]
    yield from boxes(data, start, end)


def boxes(data: Buffer, start: int, end: int) -> Iterator[tuple[bytes, int, int]]:
    """Yield the type, start and end of the contents of each box between two positions."""
    for _ in range(MAX_SEGMENTS):
        size = big_endian(data, start, 4)
        head = 8
        if size == 1:
            size = big_endian(data, start + 8, 8)
            head = 16
        elif size == 0:
            size = end - start
        if size < head or start + head > end:
            return
        yield bytes(data[start + 4 : start + 8]), start + head, min(start + size, end)
        start += size
