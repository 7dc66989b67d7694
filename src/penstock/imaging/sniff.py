"""Tell a file's type and its picture's size from the first bytes, without decoding."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

# Pure Python and bounded, so it may run on the event loop on bytes from anybody: it never raises, and it takes at most
# STEPS steps through the segments or boxes of a file, however long the file is and whatever it claims.
STEPS = 2_000


class Sniffed(NamedTuple):
    content_type: str
    width: int = 0  # as stored, before any EXIF turn; 0 for videos, whose headers are not read that far
    height: int = 0


_JPEG_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_JPEG_ALONE = frozenset({0x01, *range(0xD0, 0xD8)})  # markers without a length behind them
_AVIF_BRANDS = frozenset({b"avif", b"avis"})
_VIDEO_BRANDS = frozenset({b"isom", b"mp41", b"mp42", b"avc1", b"M4V ", b"MSNV", b"dash", b"3gp4", b"3gp5", b"mmp4"})


def sniff(data: bytes) -> Sniffed | None:
    """The type by its magic bytes; None for anything we do not know or whose header is broken off."""
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return _png(data)
    if data.startswith(b"\xff\xd8\xff"):
        return _jpeg(data)
    if data.startswith((b"GIF87a", b"GIF89a")):
        return _picture("image/gif", _little(data, 6, 2), _little(data, 8, 2))
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        return _webp(data)
    if data.startswith(b"\x1aE\xdf\xa3"):
        return Sniffed("video/webm") if b"webm" in data[:64] else None
    if data[4:8] == b"ftyp":
        return _base_media(data)
    return None


def _picture(content_type: str, width: int, height: int) -> Sniffed | None:
    return Sniffed(content_type, width, height) if width > 0 and height > 0 else None


def _big(data: bytes, start: int, size: int) -> int:
    return int.from_bytes(data[start : start + size], "big") if start + size <= len(data) else 0


def _little(data: bytes, start: int, size: int) -> int:
    return int.from_bytes(data[start : start + size], "little") if start + size <= len(data) else 0


def _png(data: bytes) -> Sniffed | None:
    if data[12:16] != b"IHDR":
        return None
    return _picture("image/png", _big(data, 16, 4), _big(data, 20, 4))


def _jpeg(data: bytes) -> Sniffed | None:
    position = 2
    for _ in range(STEPS):
        if position + 4 > len(data) or data[position] != 0xFF:
            return None
        marker = data[position + 1]
        if marker in _JPEG_FRAMES:
            return _picture("image/jpeg", _big(data, position + 7, 2), _big(data, position + 5, 2))
        if marker == 0xFF:  # fill
            position += 1
        elif marker in _JPEG_ALONE:
            position += 2
        else:
            position += 2 + max(2, _big(data, position + 2, 2))
    return None


def _webp(data: bytes) -> Sniffed | None:
    kind = data[12:16]
    if kind == b"VP8X":
        return _picture("image/webp", 1 + _little(data, 24, 3), 1 + _little(data, 27, 3)) if len(data) >= 30 else None
    if kind == b"VP8L" and data[20:21] == b"\x2f" and len(data) >= 25:
        bits = _little(data, 21, 4)
        return _picture("image/webp", 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF))
    if kind == b"VP8 " and data[23:26] == b"\x9d\x01\x2a":
        return _picture("image/webp", _little(data, 26, 2) & 0x3FFF, _little(data, 28, 2) & 0x3FFF)
    return None


def _base_media(data: bytes) -> Sniffed | None:
    end = min(_big(data, 0, 4), len(data), 512)
    brands = {data[8:12], *(data[start : start + 4] for start in range(16, end, 4))}
    if brands & _AVIF_BRANDS:
        return _avif(data)
    if data[8:12] == b"qt  ":
        return Sniffed("video/quicktime")
    if brands & _VIDEO_BRANDS or data[8:11] == b"iso":
        return Sniffed("video/mp4")
    return None


def _avif(data: bytes) -> Sniffed | None:
    # Thumbnails, tiles and alpha planes have extents of their own; the picture itself is the largest.
    width = height = 0
    turned = False
    for kind, start, end in _properties(data):
        if kind == b"ispe" and end - start >= 12:
            extent = _big(data, start + 4, 4), _big(data, start + 8, 4)
            width, height = max((width, height), extent, key=lambda sides: sides[0] * sides[1])
        elif kind == b"irot" and end > start:
            turned = data[start] & 1 == 1
    return _picture("image/avif", *((height, width) if turned else (width, height)))


def _properties(data: bytes) -> Iterator[tuple[bytes, int, int]]:
    start, end = 0, len(data)
    for name, skipped in ((b"meta", 4), (b"iprp", 0), (b"ipco", 0)):
        found = next((box for box in _boxes(data, start, end) if box[0] == name), None)
        if found is None:
            return
        start, end = found[1] + skipped, found[2]
    yield from _boxes(data, start, end)


def _boxes(data: bytes, start: int, end: int) -> Iterator[tuple[bytes, int, int]]:
    """Kind, start and end of the contents of each box in a row of boxes."""
    for _ in range(STEPS):
        size, head = _big(data, start, 4), 8
        if size == 1:
            size, head = _big(data, start + 8, 8), 16
        elif size == 0:
            size = end - start
        if size < head or start + head > end:
            return
        yield data[start + 4 : start + 8], start + head, min(start + size, end)
        start += size
