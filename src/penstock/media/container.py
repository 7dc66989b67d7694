"""Measure a video file, and check that it is whole by the structure of its container, without decoding."""

import hashlib
from collections.abc import Callable
from typing import BinaryIO, NamedTuple

from penstock.imaging.sniff import sniff

_BOX_TYPES = frozenset({"video/mp4", "video/quicktime"})
_BOXES_MAX = 100_000  # a fragmented video has two for each second or so
_NO_LENGTH = 0
_LONG_LENGTH = 1
_READ_BYTES = 1024 * 1024
_BOX_HEAD_BYTES = 16


class VideoFile(NamedTuple):
    """What is known about a downloaded file that should be a video."""

    content_type: str  # empty if it is unknown
    size_bytes: int
    sha256: bytes
    is_complete: bool


def inspect_bytes(data: bytes) -> VideoFile:
    """As `inspect_video`, for a file in memory."""
    found = sniff(data)
    content_type = found.content_type if found else ""
    is_whole = is_complete(lambda start: data[start : start + _BOX_HEAD_BYTES], len(data), content_type)
    return VideoFile(content_type, len(data), hashlib.sha256(data).digest(), is_whole)


def inspect_video(file: BinaryIO) -> VideoFile:
    """Read a downloaded file: its type, size and digest, and whether all of it is there."""

    def read_head(start: int) -> bytes:
        file.seek(start)
        return file.read(_BOX_HEAD_BYTES)

    digest = hashlib.sha256()
    head = b""
    size_bytes = 0
    while chunk := file.read(_READ_BYTES):
        head = head or chunk
        digest.update(chunk)
        size_bytes += len(chunk)
    found = sniff(head)
    content_type = found.content_type if found else ""
    return VideoFile(content_type, size_bytes, digest.digest(), is_complete(read_head, size_bytes, content_type))


def is_complete(read_head: Callable[[int], bytes], size_bytes: int, content_type: str) -> bool:
    """Whether an MP4 or QuickTime file has all bytes that its boxes announce, and a `moov` box, without which it cannot
    be played. True for other containers, which are not read. `read_head` returns the first bytes of the box at a
    position.
    """
    if content_type not in _BOX_TYPES:
        return True
    position = 0
    has_index = False
    for _ in range(_BOXES_MAX):
        if position == size_bytes:
            return has_index
        head = read_head(position)
        if len(head) < 8:
            return False
        length = int.from_bytes(head[:4], "big")
        has_index = has_index or head[4:8] == b"moov"
        if length == _NO_LENGTH:  # the last box, up to the end of the file
            return has_index
        if length == _LONG_LENGTH:
            length = int.from_bytes(head[8:16], "big")
        position += length
        if length < 8 or position > size_bytes:
            return False
    return False
