"""Input videos for tests: encoded ones, and ones that are put together box by box."""

import io
import struct
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

import av

from tests.fake_providers.scripted import blank_frame

FRAME_BYTES = 20


def encoded(
    container: str,
    width: int,
    height: int,
    frames: int,
    options: Mapping[str, str] | None = None,
    *,
    codec: str = "libx264",
    pixels: str = "yuv420p",
    codec_options: Mapping[str, str] | None = None,
) -> bytes:
    """A video of frames in one colour, eight in a second.

    It is encoded in a thread of its own: SVT-AV1 raises the priority of the thread that starts it.
    """

    def work() -> bytes:
        return _encoded(container, width, height, frames, options or {}, codec, pixels, codec_options or {})

    with ThreadPoolExecutor(1) as thread:
        return thread.submit(work).result()


def _encoded(
    container: str,
    width: int,
    height: int,
    frames: int,
    options: Mapping[str, str],
    codec: str,
    pixels: str,
    codec_options: Mapping[str, str],
) -> bytes:
    file = io.BytesIO()
    with av.open(file, "w", format=container, options=dict(options)) as output:
        stream = output.add_stream(codec, rate=8, options=dict(codec_options))
        assert isinstance(stream, av.VideoStream)
        stream.width, stream.height, stream.pix_fmt = width, height, pixels
        for index in range(frames):
            frame = blank_frame(width, height, pixels)
            frame.pts = index
            output.mux(stream.encode(frame))
        output.mux(stream.encode(None))
    return file.getvalue()


def box(name: bytes, content: bytes) -> bytes:
    return struct.pack(">I4s", 8 + len(content), name) + content


def by_hand(
    *, version: int = 0, turned: bool = False, handler: bytes = b"vide", length: int = 5000, frames: int = 40
) -> bytes:
    """A file with nothing but the boxes that are read: one ProRes frame of 640 by 360, and times for more."""
    times = bytes(16 if version else 8)
    head = bytes([version, 0, 0, 0]) + times
    movie = box(b"mvhd", head + struct.pack(">IQ" if version else ">II", 1000, length) + bytes(80))
    matrix = struct.pack(
        ">9i", *((0, 65536, 0, -65536, 0, 0, 0, 0, 0) if turned else (65536, 0, 0, 0, 65536, 0, 0, 0, 0))
    )
    track = head + bytes(20 if version else 16) + bytes(12) + matrix
    header = box(b"tkhd", track + struct.pack(">II", 640 << 16, 360 << 16))
    description = box(b"apch", bytes(24) + struct.pack(">HH", 640, 360) + bytes(50))
    tables = (
        box(b"stsd", struct.pack(">II", 0, 1) + description)
        + box(b"stts", struct.pack(">IIII", 0, 1, frames, 0))
        + box(b"stsz", struct.pack(">III", 0, FRAME_BYTES, min(frames, 1)))
        + box(b"stsc", struct.pack(">IIIII", 0, 1, 1, 1, 1))
        + box(b"stco", struct.pack(">III", 0, 1, 32))
    )
    media = box(b"mdia", box(b"hdlr", bytes(8) + handler + bytes(12)) + box(b"minf", box(b"stbl", tables)))
    frame = struct.pack(">I4sHHIHH", FRAME_BYTES, b"icpf", 12, 0, 0, 640, 360)
    start = box(b"ftyp", b"isom" + bytes(4) + b"isommp42")
    return start + box(b"mdat", frame) + box(b"moov", movie + box(b"trak", header + media))


def inserted(whole: bytes, path: Sequence[bytes], extra: bytes) -> bytes:
    """A file with more at the end of the first box at a path, whose sizes grow with it."""
    start, end = 0, len(whole)
    sizes = []
    for name in path:
        at = start
        while whole[at + 4 : at + 8] != name:
            at += int.from_bytes(whole[at : at + 4], "big")
        start, end = at + 8, at + int.from_bytes(whole[at : at + 4], "big")
        sizes.append(at)
    for at in sizes:
        size = int.from_bytes(whole[at : at + 4], "big") + len(extra)
        whole = whole[:at] + size.to_bytes(4, "big") + whole[at + 4 :]
    return whole[:end] + extra + whole[end:]


def changed(whole: bytes, name: bytes, offset: int, content: bytes) -> bytes:
    """A file with other bytes so far behind the last place where a name is."""
    at = whole.rindex(name) + offset
    return whole[:at] + content + whole[at + len(content) :]


def with_small_headers(whole: bytes, codec: bytes) -> bytes:
    """A file whose track header and description of samples say that the video has 16 by 16 pixels."""
    whole = changed(whole, b"tkhd", 80, (16 << 16).to_bytes(4, "big") * 2)
    return changed(whole, codec, 28, struct.pack(">HH", 16, 16))
