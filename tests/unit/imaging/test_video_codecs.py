"""The size of a video is what its decoder makes, whatever its headers say, for each codec."""

import io
import struct
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

import av
import pytest

from penstock.imaging.convert import BadImage
from penstock.imaging.video_boxes import inside
from penstock.imaging.video_codecs import coded_sizes
from tests.unit.imaging.videos import changed, encoded, with_small_headers


class Case(NamedTuple):
    codec: str
    name: bytes
    container: str = "mp4"
    pixels: str = "yuv420p"
    options: Mapping[str, str] = MappingProxyType({})


CASES = [
    Case("libx264", b"avc1"),
    Case("libx264", b"avc1", pixels="yuv422p"),
    Case("libx264", b"avc1", pixels="yuv444p"),
    Case("libx264", b"avc1", pixels="gray"),
    Case("libx264", b"avc1", options={"x264-params": "interlaced=1"}),
    Case("libx264", b"avc1", options={"x264-params": "cqm=jvt"}),
    Case("libx264", b"avc1", options={"profile": "baseline"}),
    Case("libx265", b"hev1", options={"x265-params": "log-level=none:bframes=0"}),
    Case("libx265", b"hev1", "mov", "yuv444p", {"x265-params": "log-level=none:bframes=0"}),
    Case("libx265", b"hev1", options={"x265-params": "log-level=none:bframes=0:temporal-layers=1"}),
    Case("libsvtav1", b"av01"),
    Case("prores_ks", b"apch", "mov", "yuv422p10le"),
]


def sizes_of(data: bytes) -> set[tuple[int, int]]:
    return coded_sizes(data, inside(data, (0, len(data)), b"moov", b"trak")[0])


def decoded_size(data: bytes) -> tuple[int, int]:
    with av.open(io.BytesIO(data), "r") as opened:
        frame = next(opened.decode(video=0))
        return frame.width, frame.height


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_size_is_what_a_decoder_makes(case: Case) -> None:
    whole = encoded(case.container, 322, 188, 3, codec=case.codec, pixels=case.pixels, codec_options=case.options)
    name = case.name if case.name in whole else b"apcn"
    small = with_small_headers(whole, name)
    assert decoded_size(small) == (322, 188)
    assert sizes_of(small) == {(16, 16), (322, 188)}


@pytest.mark.parametrize(
    ("codec", "name", "parameters"), [("libx264", b"avc1", b"avcC"), ("libx265", b"hev1", b"hvcC")]
)
def test_parameters_among_the_frames_count(codec: str, name: bytes, parameters: bytes) -> None:
    """A decoder takes new parameters from a frame; those that the file states can be of another video."""
    options = {f"{codec.removeprefix('lib')}-params": "repeat-headers=1:bframes=0"}
    large = encoded("mp4", 640, 368, 1, codec=codec, codec_options=options)
    small = encoded("mp4", 64, 64, 1, codec=codec, codec_options=options)
    mixed = with_small_headers(replaced(large, parameters, small), name)
    assert decoded_size(mixed) == (640, 368)
    assert sizes_of(mixed) == {(16, 16), (64, 64), (640, 368)}


def replaced(whole: bytes, name: bytes, source: bytes) -> bytes:
    """A file with the contents of the box of a name in another file, filled up to the same length."""
    at = whole.rindex(name) + 4
    end = at - 8 + int.from_bytes(whole[at - 8 : at - 4], "big")
    start = source.rindex(name) + 4
    content = source[start : start - 8 + int.from_bytes(source[start - 8 : start - 4], "big")]
    return whole[:at] + content.ljust(end - at, b"\x00") + whole[end:]


def test_what_a_decoder_could_read_in_another_way_is_refused() -> None:
    whole = encoded("mp4", 64, 48, 3)
    first = int.from_bytes(whole[whole.rindex(b"stco") + 12 :][:4], "big")
    refused = {
        "another codec": encoded("mp4", 64, 48, 3, codec="mpeg4"),
        "parameters of another version": changed(whole, b"avcC", 4, b"\x00"),
        "no parameters": whole.replace(b"avcC", b"free"),
        "parameters in another box": whole.replace(b"btrt", b"glbl"),
        "an unknown name": whole.replace(b"avc1\x00", b"xxxx\x00"),
        "units of another form": whole[:first] + b"\x00\x00\x00\x01" + whole[first + 4 :],
        "a unit that is longer than its sample": whole[:first] + b"\x7f" + whole[first + 1 :],
        "an empty unit": whole[:first] + bytes(4) + whole[first + 4 :],
        "parameters that end early": changed(whole, b"avcC", 10, struct.pack(">H", 60_000)),
    }
    accepted = []
    for name, data in refused.items():
        try:
            sizes_of(data)
        except BadImage:
            continue
        accepted.append(name)
    assert accepted == []


@pytest.mark.parametrize("case", [CASES[5], CASES[7], CASES[10], CASES[11]], ids=str)
def test_every_damaged_file_is_measured_or_refused(case: Case) -> None:
    """Bytes of the parameters and of the first frame are changed; nothing but BadImage is raised."""
    whole = encoded(case.container, 64, 64, 1, codec=case.codec, pixels=case.pixels, codec_options=case.options)
    starts = [whole.rindex(b"stsd"), int.from_bytes(whole[whole.rindex(b"stco") + 12 :][:4], "big")]
    for start in starts:
        end = whole.index(b"moov", start) - 4 if start < whole.rindex(b"moov") else len(whole)
        for place in range(start, min(start + 160, end)):
            for value in (0, 1, 128, 255):
                damaged = whole[:place] + bytes([value]) + whole[place + 1 :]
                try:
                    sizes_of(damaged)
                except BadImage:
                    continue
