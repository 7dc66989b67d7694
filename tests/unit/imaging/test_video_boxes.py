"""Boxes and samples are found where programs find them, and files that programs could read in two ways are refused."""

import io
import struct

import av
import pytest

from penstock.imaging.convert import BadImage
from penstock.imaging.video_boxes import check_places, inside, named_boxes, sample_places, starts_of
from tests.unit.imaging.videos import box, by_hand, changed, encoded, inserted


def track_of(data: bytes) -> tuple[int, int]:
    return inside(data, (0, len(data)), b"moov", b"trak")[0]


@pytest.mark.parametrize("container", ["mp4", "mov"])
def test_samples_are_where_a_decoder_finds_them(container: str) -> None:
    data = encoded(container, 64, 48, 20)
    with av.open(io.BytesIO(data), "r") as opened:
        packets = [(packet.pos or 0, packet.size) for packet in opened.demux(video=0) if packet.size]
    assert list(sample_places(data, track_of(data))) == [(start, start + size) for start, size in packets]


def test_tables_that_do_not_lead_to_every_sample_are_refused() -> None:
    whole = encoded("mp4", 64, 48, 20)
    refused = {
        "a sample behind the end": changed(whole, b"stco", 12, struct.pack(">I", len(whole))),
        "no chunk": changed(whole, b"stco", 8, bytes(4)),
        "no run of chunks": changed(whole, b"stsc", 8, bytes(4)),
        "runs that do not begin with the first chunk": changed(whole, b"stsc", 12, struct.pack(">I", 2)),
        "more sizes than there are": changed(whole, b"stsz", 12, struct.pack(">I", 10_000)),
        "two tables of sizes": inserted(
            whole, [b"moov", b"trak", b"mdia", b"minf", b"stbl"], box(b"stsz", struct.pack(">III", 0, 1, 1))
        ),
    }
    accepted = []
    for name, data in refused.items():
        try:
            list(sample_places(data, track_of(data)))
        except BadImage:
            continue
        accepted.append(name)
    assert accepted == []


def test_a_box_counts_wherever_it_is() -> None:
    data = inserted(by_hand(), [b"moov", b"trak"], box(b"hdlr", b"second"))
    first, second = starts_of(b"hdlr", data, track_of(data))
    assert data[first + 12 : first + 16] == b"vide"
    assert data[second + 4 : second + 10] == b"second"


def test_the_index_of_a_real_file_is_in_its_usual_places() -> None:
    for data in (encoded("mp4", 64, 48, 4), encoded("mov", 64, 48, 4, codec="prores_ks", pixels="yuv422p10le")):
        parts = [place for name, place in named_boxes(data, (0, len(data))) if name != b"mdat"]
        check_places(data, inside(data, (0, len(data)), b"moov")[0], parts)
