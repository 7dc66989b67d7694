"""Find what a file says about its origin, from its headers alone: Content Credentials, and marks in its XMP."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from penstock.imaging.sniff import MAX_SEGMENTS, big_endian, boxes
from penstock.long_bodies.buffers import Buffer

# This runs on the event loop, on untrusted bytes, within the bounds of `sniff`: it never raises, decodes nothing and
# reads at most MAX_SEGMENTS segments, _GIF_PIECES_MAX pieces of a GIF and _XMP_BYTES_MAX bytes of XMP. Only the
# library, in a child process, can say whether a seal holds.

VIDEO_HEAD_BYTES = 64 * 1024  # enough for what marks a video: credentials stand at its beginning
_XMP_BYTES_MAX = 64 * 1024
_GIF_PIECES_MAX = 16 * MAX_SEGMENTS  # of at most 255 bytes
_C2PA_BOX = bytes.fromhex("d8fec3d61b0e483c92975828877ec481")
_XMP_BOX = bytes.fromhex("be7acfcb97a942e89c71999491e3afac")
_JPEG_XMP = b"http://ns.adobe.com/xap/1.0/\0"
_SOURCE_TYPE = re.compile(
    rb"DigitalSourceType[^<\"']{0,40}[>\"']\s*(?:http://cv\.iptc\.org/newscodes/digitalsourcetype/)?(\w{3,40})"
)
_AIGC = re.compile(rb"TC260:AIGC|tc260\.org\.cn/ns/AIGC")
_SVG_SEAL = re.compile(rb"<c2pa:manifest[\s>]")


class Marks(msgspec.Struct, frozen=True):
    """What a file says about its origin."""

    c2pa_bytes: int = 0  # the size of its Content Credentials; 0: it has none
    digital_source_type: str | None = None  # IPTC's word in its XMP, such as trainedAlgorithmicMedia
    aigc: bool = False  # it has the label of China's GB 45438 in its XMP


NO_MARKS = Marks()


def find_marks(data: Buffer) -> Marks:
    """Return the marks of an image, of the beginning of a video, or of an audio file; none for any other bytes."""
    seal = 0
    source_type = None
    aigc = False
    unread = _XMP_BYTES_MAX
    for kind, start, end in _segments(data):
        if kind == b"c2pa":
            seal += end - start
            continue
        xmp = bytes(data[start : min(end, start + unread)])
        unread -= len(xmp)
        found = _SOURCE_TYPE.search(xmp)
        source_type = source_type or (found[1].decode() if found else None)
        aigc = aigc or _AIGC.search(xmp) is not None
    return Marks(seal, source_type, aigc) if seal or source_type or aigc else NO_MARKS


def _segments(data: Buffer) -> Iterator[tuple[bytes, int, int]]:
    """Yield `c2pa` or `xmp`, start and end of each part of a file that may have a mark."""
    head = bytes(data[:16])
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        return _png(data)
    if head.startswith(b"\xff\xd8\xff"):
        return _jpeg(data)
    if head.startswith(b"RIFF"):
        return _riff(data)
    if head.startswith((b"GIF87a", b"GIF89a")):
        return _gif(data)
    if head[4:8] == b"ftyp":
        return _base_media(data)
    if head.startswith(b"ID3"):
        return _id3(data)
    if head.lstrip()[:1] == b"<" or head.startswith(b"\xef\xbb\xbf"):
        return _svg(data)
    return iter(())


def _png(data: Buffer) -> Iterator[tuple[bytes, int, int]]:
    start = 8
    for _ in range(MAX_SEGMENTS):
        size = big_endian(data, start, 4)
        kind = bytes(data[start + 4 : start + 8])
        if len(kind) < 4 or kind == b"IEND":
            return
        if kind == b"caBX":
            yield b"c2pa", start + 8, start + 8 + size
        elif kind == b"iTXt" and bytes(data[start + 8 : start + 25]) == b"XML:com.adobe.xmp":
            yield b"xmp", start + 8, start + 8 + size
        start += 12 + size


def _jpeg(data: Buffer) -> Iterator[tuple[bytes, int, int]]:
    start = 2
    for _ in range(MAX_SEGMENTS):
        if start + 4 > len(data) or data[start] != 0xFF:
            return
        marker = data[start + 1]
        if marker == 0xFF:  # padding
            start += 1
            continue
        if marker in (0xDA, 0xD9):
            return
        size = max(2, big_endian(data, start + 2, 2))
        if marker == 0xEB and bytes(data[start + 4 : start + 6]) == b"JP":  # JUMBF, in the first piece or a further one
            yield b"c2pa", start + 4, start + 2 + size
        elif marker == 0xE1 and bytes(data[start + 4 : start + 4 + len(_JPEG_XMP)]) == _JPEG_XMP:
            yield b"xmp", start + 4, start + 2 + size
        start += 2 + size


def _riff(data: Buffer) -> Iterator[tuple[bytes, int, int]]:
    start = 12
    for _ in range(MAX_SEGMENTS):
        kind = bytes(data[start : start + 4])
        if len(kind) < 4:
            return
        size = int.from_bytes(data[start + 4 : start + 8], "little")
        if kind == b"C2PA":
            yield b"c2pa", start + 8, start + 8 + size
        elif kind == b"XMP ":
            yield b"xmp", start + 8, start + 8 + size
        start += 8 + size + (size & 1)


def _gif(data: Buffer) -> Iterator[tuple[bytes, int, int]]:
    """Only the application extensions before the first image: the library writes its own there."""
    flags = data[10] if len(data) > 10 else 0
    start = 13 + (3 << ((flags & 7) + 1) if flags & 0x80 else 0)
    pieces = iter(range(_GIF_PIECES_MAX))
    for _ in range(MAX_SEGMENTS):
        if bytes(data[start : start + 1]) != b"\x21":
            return
        is_seal = bytes(data[start + 1 : start + 14]) == b"\xff\x0bC2PA_GIF\x01\x00\x00"
        begin = start
        start += 2
        for _ in pieces:
            size = data[start] if start < len(data) else 0
            start += 1 + size
            if size == 0:
                break
        if is_seal:
            yield b"c2pa", begin, start


def _base_media(data: Buffer) -> Iterator[tuple[bytes, int, int]]:
    for kind, start, end in boxes(data, 0, len(data)):
        if kind != b"uuid":
            continue
        box = bytes(data[start : start + 16])
        if box == _C2PA_BOX:
            yield b"c2pa", start, end
        elif box == _XMP_BOX:
            yield b"xmp", start, end


def _id3(data: Buffer) -> Iterator[tuple[bytes, int, int]]:
    """The frame of an ID3 tag, with which MP3 and FLAC carry credentials."""
    tag = bytes(data[: min(len(data), VIDEO_HEAD_BYTES)])
    found = tag.find(b"GEOB")
    if found >= 0 and b"application/x-c2pa-manifest-store" in tag[found : found + 200]:
        yield b"c2pa", found, found + 10 + big_endian(data, found + 4, 4)


def _svg(data: Buffer) -> Iterator[tuple[bytes, int, int]]:
    head = bytes(data[: 1 << 20])
    found = _SVG_SEAL.search(head)
    if found:
        end = head.find(b"</c2pa:manifest>", found.end())
        yield b"c2pa", found.end(), end if end > 0 else len(head)
