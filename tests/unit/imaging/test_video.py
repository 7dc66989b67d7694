"""Input videos are measured by their boxes, and whatever is not a complete video is refused."""

import io
import struct

import av
import pytest

from penstock.imaging.convert import BadImage
from penstock.imaging.video import VideoMeasures, measure
from tests.fake_providers.scripted import blank_frame, mp4, png
from tests.unit.imaging.videos import box, by_hand, changed, encoded, inserted, with_small_headers

FRAGMENTS = {"movflags": "frag_keyframe+empty_moov+default_base_moof"}


def test_real_videos() -> None:
    assert measure(encoded("mp4", 64, 48, 20)) == VideoMeasures("video/mp4", 64, 48, 2.5, 20)
    assert measure(encoded("mov", 128, 64, 8)) == VideoMeasures("video/quicktime", 128, 64, 1.0, 8)


def test_a_header_that_says_too_little_does_not_shorten_a_video() -> None:
    """The length decides what is held for an edit, and the caller has written the header."""
    whole = encoded("mp4", 64, 48, 20)
    for name in (b"mvhd", b"mdhd", b"tkhd"):
        at = whole.index(name) + (24 if name == b"tkhd" else 20)
        whole = whole[:at] + (1).to_bytes(4, "big") + whole[at + 4 :]
    assert measure(whole).seconds == 2.5


def test_times_that_are_missing_do_not_shorten_a_video() -> None:
    """A decoder gives the last time that is stated to all samples that follow."""
    whole = encoded("mp4", 64, 48, 20)
    for name in (b"mvhd", b"mdhd", b"elst", b"tkhd"):
        whole = changed(whole, name, {b"tkhd": 24, b"elst": 12}.get(name, 20), (1).to_bytes(4, "big"))
    whole = changed(whole, b"stts", 12, (1).to_bytes(4, "big"))
    with av.open(io.BytesIO(whole), "r") as opened:
        packets = [packet for packet in opened.demux(video=0) if packet.size]
        assert len(packets) == 20, "what FFmpeg finds"
    assert measure(whole).seconds == 2.5


def test_headers_that_say_too_little_do_not_make_a_video_smaller() -> None:
    """The size decides what is held for an upscaled video, and the caller has written the headers."""
    small = with_small_headers(encoded("mp4", 322, 182, 4), b"avc1")
    with av.open(io.BytesIO(small), "r") as opened:
        frame = next(opened.decode(video=0))
        assert (frame.width, frame.height) == (322, 182), "what FFmpeg makes of it"
    assert measure(small) == VideoMeasures("video/mp4", 322, 182, 0.5, 4)
    large = changed(encoded("mp4", 64, 48, 4), b"tkhd", 80, struct.pack(">II", 640 << 16, 480 << 16))
    assert measure(large) == VideoMeasures("video/mp4", 640, 480, 0.5, 4), "the largest counts"


def edit_list(*lengths: int, version: int = 0) -> bytes:
    entries = b"".join(struct.pack(">QqI" if version else ">IiI", length, 0, 65536) for length in lengths)
    return box(b"edts", box(b"elst", bytes([version, 0, 0, 0]) + struct.pack(">I", len(lengths)) + entries))


def test_parts_that_are_played_again_count_as_often_as_they_are_played() -> None:
    """Players repeat what an edit list names several times, so the header and the samples can be short."""
    for version in (0, 1):
        again = inserted(by_hand(), [b"moov", b"trak"], edit_list(*[5000] * 12, version=version))
        assert measure(again).seconds == 60.0
    whole = encoded("mp4", 64, 48, 20)
    assert measure(inserted(whole, [b"moov", b"trak"], edit_list(0))).seconds == 5.0, "0 is the whole track again"
    scale = whole.index(b"mvhd") + 16
    slow = whole[:scale] + bytes(4) + whole[scale + 4 :]
    assert measure(slow).seconds == 2500.0, "a scale of 0 is 1"


def test_frames_are_counted_by_their_times_and_by_their_sizes_and_again_where_they_are_played_again() -> None:
    """The number decides what is held for an upscaled video; whoever leaves out times leaves the sizes."""
    whole = encoded("mp4", 64, 48, 20)
    at = whole.index(b"stsz") + 12
    assert measure(whole[:at] + (1).to_bytes(4, "big") + whole[at + 4 :]).frames == 20
    at = whole.index(b"stts") + 12
    assert measure(whole[:at] + (1).to_bytes(4, "big") + whole[at + 4 :]).frames >= 20
    assert measure(inserted(whole, [b"moov", b"trak"], edit_list(*[2500] * 3))).frames >= 60


def two_tracks() -> bytes:
    """A small video of one frame, and a larger one of twenty."""
    file = io.BytesIO()
    with av.open(file, "w", format="mp4") as output:
        streams = [output.add_stream("libx264", rate=8) for _ in range(2)]
        sizes = ((96, 16), (64, 48))
        for stream, (width, height) in zip(streams, sizes, strict=True):
            stream.width, stream.height, stream.pix_fmt = width, height, "yuv420p"
        for stream, (width, height), frames in zip(streams, sizes, (1, 20), strict=True):
            for _ in range(frames):
                output.mux(stream.encode(blank_frame(width, height)))
            output.mux(stream.encode(None))
    return file.getvalue()


def test_every_track_counts_that_players_take_for_a_video() -> None:
    """FFmpeg decodes a track by the format of its samples, unless it is sound. Which of several a provider takes is not
    known.
    """
    whole = two_tracks()
    at = whole.rindex(b"vide\x00")
    for handler in (b"vide", b"xxxx", b"meta"):
        hidden = whole[:at] + handler + whole[at + 4 :]
        with av.open(io.BytesIO(hidden), "r") as opened:
            shown = [(stream.width, stream.frames) for stream in opened.streams.video]
            assert shown == [(96, 1), (64, 20)], "what FFmpeg takes for videos"
        assert measure(hidden) == VideoMeasures("video/mp4", 64, 48, 2.5, 20), handler
    size = whole.rindex(b"tkhd") + 80
    assert measure(whole[:size] + bytes(8) + whole[size + 8 :]).frames == 20, "a track that states no size"
    form = whole.rindex(b"avc1", 0, whole.rindex(b"avcC"))
    measurements = whole[:at] + b"meta" + whole[at + 4 : form] + b"gpmd" + whole[form + 4 :]
    assert measure(measurements).frames == 1, "what cameras note beside a video"


@pytest.mark.parametrize("version", [0, 1])
def test_both_versions_of_the_boxes_and_videos_that_are_turned(version: int) -> None:
    assert measure(by_hand(version=version)) == VideoMeasures("video/mp4", 640, 360, 5.0, 40)
    assert measure(by_hand(version=version, turned=True)) == VideoMeasures("video/mp4", 360, 640, 5.0, 40)


def test_what_is_not_a_usable_video_is_refused() -> None:
    whole = mp4()
    refused = {
        "nothing": b"",
        "an image": png(8, 8),
        "half of a video": whole[: len(whole) // 2],
        "a video without its index": box(b"ftyp", b"isom" + bytes(4) + b"isommp42") + box(b"mdat", bytes(64)),
        "sound alone": by_hand(handler=b"soun"),
        "no length": by_hand(length=0),
        "no frames": by_hand(frames=0),
        "more frames than any file has": by_hand(frames=2**32 - 1),
        "more seconds than a day has": by_hand(length=100_000_000),
        "fragments, of which the index does not say how long they are": encoded("mp4", 64, 48, 20, FRAGMENTS),
    }
    trak = by_hand()[by_hand().index(b"trak") - 4 :]
    whole_again = by_hand() + by_hand(length=60_000)[52:]
    refused["a second index"] = whole_again
    refused["fragments that no box announces"] = by_hand() + box(b"moof", bytes(8))
    refused["a compressed index beside another one"] = inserted(by_hand(), [b"moov"], box(b"cmov", bytes(8)))
    refused["a track behind more boxes than are read"] = inserted(by_hand(), [b"moov"], box(b"free", b"") * 2000 + trak)
    refused["fragments inside the index"] = inserted(by_hand(), [b"moov"], box(b"moof", bytes(8)))
    refused["times beside their table"] = inserted(by_hand(), [b"moov", b"trak"], box(b"stts", bytes(16)))
    refused["a track beside the index"] = by_hand() + trak
    refused["sizes in a form that is not read"] = by_hand().replace(b"stsz", b"stz2")
    fragments = refused["fragments, of which the index does not say how long they are"]
    at = fragments.index(b"mvhd") + 20
    refused["fragments with a length"] = fragments[:at] + (500).to_bytes(4, "big") + fragments[at + 4 :]
    accepted = []
    for name, data in refused.items():
        try:
            measure(data)
        except BadImage:
            continue
        accepted.append(name)
    assert accepted == []


def test_every_damaged_file_is_measured_or_refused() -> None:
    """Each byte of the boxes is changed once; nothing but BadImage is raised."""
    whole = by_hand()
    for place in range(len(whole)):
        for value in (0, 1, 255):
            damaged = whole[:place] + bytes([value]) + whole[place + 1 :]
            try:
                found = measure(damaged)
            except BadImage:
                continue
            assert found.width > 0
            assert found.seconds > 0
