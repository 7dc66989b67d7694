"""Measure a video by the boxes of its MP4 or QuickTime file: length, width and height, without decoding."""

import struct

import msgspec

from penstock.imaging.convert import BadImage
from penstock.imaging.formats import MAX_PIXELS
from penstock.imaging.sniff import big_endian, boxes, sniff

# This runs in a child process (see workers.py): the bytes are those that a caller chose.

CONTENT_TYPES = ("video/mp4", "video/quicktime")
Place = tuple[int, int]  # where the contents of a box start and end


class VideoMeasures(msgspec.Struct, frozen=True):
    """What is known about an input video."""

    content_type: str
    width: int
    height: int
    seconds: float


def measure(data: bytes) -> VideoMeasures:
    """The type, the size and the length of a complete MP4 or QuickTime video. Raises BadImage for anything else."""
    found = sniff(data)
    if found is None or found.content_type not in CONTENT_TYPES:
        raise BadImage("The file is not one of mp4, mov.")
    index, end = None, 0
    for name, start, end in boxes(data, 0, len(data)):
        index = index or ((start, end) if name == b"moov" else None)
    if index is None or end != len(data):
        raise BadImage("The file is not complete.")
    width, height = max((_track_size(data, track) for track in _inside(data, index, b"trak")), default=(0, 0))
    if not 0 < width * height <= MAX_PIXELS:
        raise BadImage("The file has no video of a usable size.")
    if _inside(data, index, b"mvex"):
        raise BadImage("The video is in fragments; send it as one whole.")
    lengths = [_seconds(data, header) for header in _inside(data, index, b"mvhd")]
    lengths += [_track_seconds(data, track) for track in _inside(data, index, b"trak")]
    seconds = round(max(lengths, default=0.0), 3)
    if seconds <= 0:
        raise BadImage("The file does not say how long the video is.")
    return VideoMeasures(found.content_type, width, height, seconds)


def _inside(data: bytes, place: Place, *path: bytes) -> list[Place]:
    """All boxes at a path of names inside another box."""
    places = [place]
    for wanted in path:
        places = [(start, end) for outer in places for name, start, end in boxes(data, *outer) if name == wanted]
    return places


def _seconds(data: bytes, header: Place) -> float:
    """The length in a movie header; its numbers are longer in version 1."""
    start, end = header
    is_long = data[start : start + 1] == b"\x01"
    if end - start < (32 if is_long else 20):
        return 0.0
    scale = big_endian(data, start + (20 if is_long else 12), 4)
    length = big_endian(data, start + (24 if is_long else 16), 8 if is_long else 4)
    return length / scale if scale else 0.0


def _track_seconds(data: bytes, track: Place) -> float:
    """The length of all samples of a track, whatever the headers say: the caller has written those."""
    scales = [
        big_endian(data, start + (20 if data[start : start + 1] == b"\x01" else 12), 4)
        for start, _ in _inside(data, track, b"mdia", b"mdhd")
    ]
    length = sum(
        count * duration
        for start, end in _inside(data, track, b"mdia", b"minf", b"stbl", b"stts")
        for count, duration in struct.iter_unpack(">II", data[start + 8 : end - (end - start) % 8])
    )
    return max((length / scale for scale in scales if scale), default=0.0)


def _track_size(data: bytes, track: Place) -> tuple[int, int]:
    """Width and height as they are shown; zeros for a track that is not a video."""
    handlers = _inside(data, track, b"mdia", b"hdlr")
    if not any(data[start + 8 : start + 12] == b"vide" for start, _ in handlers):
        return 0, 0
    for start, end in _inside(data, track, b"tkhd"):
        matrix = start + (52 if data[start : start + 1] == b"\x01" else 40)
        if end - matrix < 44:
            continue
        width, height = (big_endian(data, matrix + 36 + 4 * side, 4) >> 16 for side in (0, 1))
        is_turned = big_endian(data, matrix, 4) == 0 and big_endian(data, matrix + 16, 4) == 0
        return (height, width) if is_turned else (width, height)
    return 0, 0
