"""Measure a video in an MP4 or QuickTime file without decoding it: its length, frames, width and height."""

import struct

import msgspec

from penstock.imaging.convert import BadImage
from penstock.imaging.formats import MAX_PIXELS
from penstock.imaging.sniff import big_endian, sniff
from penstock.imaging.video_boxes import Place, check_places, inside, named_boxes, sample_tables, starts_of
from penstock.imaging.video_codecs import Size, coded_sizes

# This runs in a child process (see workers.py): the bytes are those that a caller chose.

CONTENT_TYPES = ("video/mp4", "video/quicktime")
_SECONDS_MAX = 24 * 3600
_FRAMES_MAX = 1_000_000
_NOT_READ = (b"mdat", b"free", b"skip", b"wide")  # what is in these is found by the index, or not at all
# Formats of samples that are no video: what cameras measure, times and texts.
_NO_VIDEO = frozenset(
    b"mebx gpmd camm rtmd fdsc djmd dbgi mett metx urim tmcd text tx3g wvtt stpp sbtt c608 c708 mp4s".split()
)


class VideoMeasures(msgspec.Struct, frozen=True):
    """What is known about an input video."""

    content_type: str
    width: int
    height: int
    seconds: float
    frames: int


def measure(data: bytes) -> VideoMeasures:
    """The type, the size, the length and the number of frames of a complete MP4 or QuickTime video.

    Raises BadImage for anything else.
    """
    found = sniff(data)
    if found is None or found.content_type not in CONTENT_TYPES:
        raise BadImage("The file is not one of mp4, mov.")
    found_boxes = named_boxes(data, (0, len(data)))
    indexes = [place for name, place in found_boxes if name == b"moov"]
    if not indexes or found_boxes[-1][1][1] != len(data):
        raise BadImage("The file is not complete.")
    if len(indexes) > 1:
        raise BadImage("The file has more than one index.")
    index = indexes[0]
    if inside(data, index, b"mvex") or any(name == b"moof" for name, _ in found_boxes):
        raise BadImage("The video is in fragments; send it as one whole.")
    check_places(data, index, [place for name, place in found_boxes if name not in _NOT_READ])
    tracks = inside(data, index, b"trak")
    videos = [track for track in tracks if _is_video(data, track)]
    headers = inside(data, index, b"mvhd")
    lengths = [_seconds(data, header) for header in headers]
    scale = min((_time_scale(data, header) for header in headers), default=1)
    lengths += [_track_seconds(data, track, scale) for track in tracks]
    seconds = round(max(lengths, default=0.0), 3)
    frames = max((_track_frames(data, track, scale) for track in videos), default=0)
    if seconds <= 0 or frames <= 0:
        raise BadImage("The file does not say how long the video is.")
    if seconds > _SECONDS_MAX or frames > _FRAMES_MAX:
        raise BadImage(f"The video may have {_SECONDS_MAX} seconds and {_FRAMES_MAX} frames at most.")
    sizes = [_track_size(data, track) for track in videos]
    width, height = max(sizes, key=lambda sides: sides[0] * sides[1])
    if not 0 < width * height <= MAX_PIXELS:
        raise BadImage("The file has no video of a usable size.")
    return VideoMeasures(found.content_type, width, height, seconds, frames)


def _seconds(data: bytes, header: Place) -> float:
    """The length in a movie header; its numbers are longer in version 1."""
    start, end = header
    is_long = _is_long(data, header)
    if end - start < (32 if is_long else 20):
        return 0.0
    length = big_endian(data, start + (24 if is_long else 16), 8 if is_long else 4)
    return length / _time_scale(data, header)


def _is_long(data: bytes, box: Place) -> bool:
    """Whether a box is of version 1, in which times have eight bytes."""
    return data[box[0] : box[0] + 1] == b"\x01"


def _time_scale(data: bytes, header: Place) -> int:
    """The units per second of a movie's or a track's header; players take 0 for 1."""
    return big_endian(data, header[0] + (20 if _is_long(data, header) else 12), 4) or 1


def _track_seconds(data: bytes, track: Place, movie_scale: int) -> float:
    """The length of all samples of a track, or of the edits by which players play some of them again, whatever the
    headers say: the caller has written those.
    """
    samples = _samples_seconds(data, track)
    edits = sum(
        length / movie_scale if length else samples
        for edit_list in inside(data, track, b"edts", b"elst")
        for length in _edit_lengths(data, edit_list)
    )
    return max(samples, edits)


def _track_frames(data: bytes, track: Place, movie_scale: int) -> int:
    """How many samples a track has, of which players play some again."""
    samples = _sample_count(data, track)
    once = _samples_seconds(data, track)
    return round(samples * _track_seconds(data, track, movie_scale) / once) if once else samples


def _sample_count(data: bytes, track: Place) -> int:
    """How many samples a track has, by their times or by their sizes."""
    sizes = sample_tables(data, track, b"stsz")
    return max(
        sum(count for count, _ in _sample_times(data, track)),
        *(big_endian(data, start + 8, 4) for start, end in sizes if end - start >= 12),
        0,
    )


def _edit_lengths(data: bytes, edit_list: Place) -> list[int]:
    """How long each edit of a list is, in the units of the movie; 0 is for the whole track."""
    start, end = edit_list
    entry = ">QqI" if _is_long(data, edit_list) else ">IiI"
    size = struct.calcsize(entry)
    first = start + 8
    return [length for length, _, _ in struct.iter_unpack(entry, data[first : end - (end - first) % size])]


def _samples_seconds(data: bytes, track: Place) -> float:
    """How long all samples of a track are. Those for which no time is stated are as long as the last one."""
    scales = [_time_scale(data, header) for header in inside(data, track, b"mdia", b"mdhd")]
    times = _sample_times(data, track)
    missing = _sample_count(data, track) - sum(count for count, _ in times)
    length = sum(count * duration for count, duration in times) + missing * (times[-1][1] if times else 0)
    return max((length / scale for scale in scales), default=0.0)


def _sample_times(data: bytes, track: Place) -> list[tuple[int, int]]:
    """Numbers of samples, and how long each of those samples is."""
    return [
        (count, duration)
        for start, end in sample_tables(data, track, b"stts")
        for count, duration in struct.iter_unpack(">II", data[start + 8 : end - (end - start) % 8])
    ]


def _is_video(data: bytes, track: Place) -> bool:
    """Whether players may take a track for a video. They go by the format of its samples, unless it says that it is
    sound.
    """
    handlers = [data[start + 12 : start + 16] for start in starts_of(b"hdlr", data, track)]  # wherever they are
    if b"vide" in handlers or b"soun" in handlers:
        return b"vide" in handlers
    descriptions = sample_tables(data, track, b"stsd")
    return any(name not in _NO_VIDEO for start, end in descriptions for name, _ in named_boxes(data, (start + 8, end)))


def _track_size(data: bytes, track: Place) -> Size:
    """Width and height as they are shown: the largest of what the file states and what a decoder makes of it."""
    sizes = set()
    is_turned = False
    for start, end in inside(data, track, b"tkhd"):
        matrix = start + (52 if _is_long(data, (start, end)) else 40)
        if end - matrix >= 44:
            sizes.add((big_endian(data, matrix + 36, 4) >> 16, big_endian(data, matrix + 40, 4) >> 16))
            is_turned = big_endian(data, matrix, 4) == 0 and big_endian(data, matrix + 16, 4) == 0
    width, height = max(sizes | coded_sizes(data, track), key=lambda sides: sides[0] * sides[1])
    return (height, width) if is_turned else (width, height)
