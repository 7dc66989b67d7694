"""Find boxes and samples in MP4 and QuickTime files that strangers wrote."""

import struct
from collections.abc import Iterable, Iterator
from itertools import islice, pairwise, repeat

from penstock.imaging.convert import BadImage
from penstock.imaging.sniff import MAX_SEGMENTS, big_endian, boxes

Place = tuple[int, int]  # where the contents of a box, or a sample, start and end

_STBL = (b"mdia", b"minf", b"stbl")
# Where the boxes are that decide how long and how large a video is.
_PLACES = (
    ((), b"mvhd"),
    ((), b"trak"),
    ((b"trak",), b"tkhd"),
    ((b"trak", b"edts"), b"elst"),
    ((b"trak", b"mdia"), b"mdhd"),
    *(((b"trak", *_STBL), name) for name in b"stsd stts stsz stsc stco co64".split()),
)
_NOWHERE = b"moov moof traf trun mvex trex cmov stz2".split()  # boxes of files that are not measured


def named_boxes(data: bytes, place: Place) -> list[tuple[bytes, Place]]:
    """The names and places of all boxes inside another box. Raises BadImage if there may be more than are read: a
    longer video could be behind them.
    """
    found = [(name, (start, end)) for name, start, end in boxes(data, *place)]
    if len(found) >= MAX_SEGMENTS:
        raise BadImage("The file has too many parts.")
    return found


def inside(data: bytes, place: Place, *path: bytes) -> list[Place]:
    """All boxes at a path of names inside another box."""
    places = [place]
    for wanted in path:
        places = [inner for outer in places for name, inner in named_boxes(data, outer) if name == wanted]
    return places


def starts_of(name: bytes, data: bytes, place: Place) -> Iterator[int]:
    """Where a box of a name may begin inside another box, at whatever depth: each place where its name is."""
    position = data.find(name, *place)
    while position >= 0:
        yield position
        position = data.find(name, position + 4, place[1])


def check_places(data: bytes, index: Place, parts: Iterable[Place]) -> None:
    """Raise BadImage if a part of a file may have a box in a place where it is not looked for. Some programs read a box
    wherever it is, and would find another video than the one that is measured.
    """
    known = {name: len(inside(data, index, *path, name)) for path, name in _PLACES}
    known |= dict.fromkeys(_NOWHERE, 0)
    places = list(parts)
    if any(sum(data.count(name, *place) for place in places) != count for name, count in known.items()):
        raise BadImage("The file has a part of its index in an unusual place.")


def sample_tables(data: bytes, track: Place, name: bytes) -> list[Place]:
    """The tables of a name, such as `stts`, that describe the samples of a track."""
    return inside(data, track, *_STBL, name)


def sample_places(data: bytes, track: Place) -> Iterator[Place]:
    """Where the samples of a track are in the file, in the order of their chunks.

    Raises BadImage for samples outside of the file, and for tables that are missing or there twice: programs differ in
    which of two they read.
    """
    sizes = _sample_sizes(data, _only(data, track, b"stsz"))
    counts = _samples_of_chunks(data, _only(data, track, b"stsc"))
    for start, count in zip(_chunk_starts(data, track), counts, strict=False):
        for size in islice(sizes, count):
            end = start + size
            if end > len(data):
                raise BadImage("The file is not complete.")
            yield start, end
            start = end
    if next(sizes, None) is not None:
        raise BadImage("The file does not say where all of its frames are.")


def _only(data: bytes, track: Place, *names: bytes) -> Place:
    found = [place for name in names for place in sample_tables(data, track, name)]
    if len(found) != 1:
        raise BadImage(f"The index of the video must have one of {', '.join(name.decode() for name in names)}.")
    return found[0]


def _sample_sizes(data: bytes, table: Place) -> Iterator[int]:
    start, end = table
    fixed = big_endian(data, start + 4, 4)
    count = big_endian(data, start + 8, 4)
    first = start + 12
    if fixed:
        yield from repeat(fixed, count)
    elif first + 4 * count > end:
        raise BadImage("The file does not say how large all of its frames are.")
    else:
        yield from (size for (size,) in struct.iter_unpack(">I", data[first : first + 4 * count]))


def _samples_of_chunks(data: bytes, table: Place) -> Iterator[int]:
    """How many samples each chunk has, without end. The table has the first chunk of each run of equal chunks."""
    start, end = table
    length = min(12 * big_endian(data, start + 4, 4), (end - start - 8) // 12 * 12)
    runs = [(chunk, count) for chunk, count, _ in struct.iter_unpack(">III", data[start + 8 : start + 8 + length])]
    firsts = [chunk for chunk, _ in runs]
    if firsts[:1] != [1] or firsts != sorted(set(firsts)):
        raise BadImage("The file does not say which frames are where.")
    for (first, count), (following, _) in pairwise(runs):
        yield from repeat(count, following - first)
    yield from repeat(runs[-1][1])


def _chunk_starts(data: bytes, track: Place) -> Iterator[int]:
    start, end = _only(data, track, b"stco", b"co64")
    is_long = bool(sample_tables(data, track, b"co64"))
    size = 8 if is_long else 4
    length = min(size * big_endian(data, start + 4, 4), (end - start - 8) // size * size)
    for (position,) in struct.iter_unpack(">Q" if is_long else ">I", data[start + 8 : start + 8 + length]):
        yield position
