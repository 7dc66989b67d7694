"""Make images of a video: one frame, or a sheet of frames from its beginning to its end."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Literal

import av
from av.container import InputContainer
from av.video.frame import VideoFrame
from av.video.stream import VideoStream
from PIL import Image

from penstock.imaging.convert import BadImage, ImageFile, encode
from penstock.imaging.formats import MAX_PIXELS
from penstock.imaging.sniff import sniff

# This runs in a child process (see workers.py): decoders read bytes that a provider chose.

Variant = Literal["thumbnail", "spritesheet"]

# The only demuxer that may read each type. One that may choose for itself reads playlists, which name other files.
_DEMUXERS = {"video/mp4": "mov", "video/quicktime": "mov", "video/webm": "matroska"}

THUMBNAIL_SIDE = 640
SHEET_COLUMNS = 5
SHEET_FRAMES = 25
SHEET_FRAME_SIDE = 256
LONG_SECONDS = 60.0  # of a longer video, only key frames are decoded


def preview(data: bytes, variant: Variant, width: int = THUMBNAIL_SIDE) -> ImageFile:
    """A frame near the beginning as WebP, at most so wide, or a sheet of up to 25 frames as JPEG. Raises BadImage."""
    found = sniff(data)
    demuxer = _DEMUXERS.get(found.content_type) if found else None
    if demuxer is None:
        raise BadImage("The file type is not that of a video.")
    options = {"format_whitelist": demuxer, "protocol_whitelist": ""}
    try:
        with av.open(io.BytesIO(data), "r", format=demuxer, options=options) as container:
            stream = next(iter(container.streams.video), None)
            if stream is None or stream.width * stream.height > MAX_PIXELS:
                raise BadImage("The file has no video of a usable size.")
            stream.thread_count = 1
            if variant == "thumbnail":
                frame = next(_frames(container, stream, 10), None)
                frames = [frame] if frame else []
            else:
                frames = list(_frames(container, stream, SHEET_FRAMES))
    except BadImage:
        raise
    except Exception as error:  # decoders raise errors of many classes on broken files
        raise BadImage("The video could not be read.") from error
    if not frames:
        raise BadImage("The video has no frames.")
    if variant == "thumbnail":
        return encode(_shrink(frames[0], width), "webp", 85)
    return encode(_sheet([_shrink(frame, SHEET_FRAME_SIDE) for frame in frames]), "jpeg", 85)


def _frames(container: InputContainer, stream: VideoStream, count: int) -> Iterator[Image.Image]:
    """Frames at `count` moments with equal distances; of a video without a known duration, the first frame."""
    duration = (container.duration or 0) / av.time_base
    moments = [duration * (2 * number + 1) / (2 * count) for number in range(count if duration else 1)]
    if duration > LONG_SECONDS:
        for moment in moments:
            container.seek(int(moment * av.time_base))
            yield from _images(container.decode(stream), [0.0])
    else:
        yield from _images(container.decode(stream), moments)


def _images(frames: Iterator[VideoFrame], moments: list[float]) -> Iterator[Image.Image]:
    """The first frame at or after each moment; the last frame for moments after it."""
    waiting = list(moments)
    last: VideoFrame | None = None
    for frame in frames:
        last = frame
        while waiting and (frame.time or 0.0) >= waiting[0]:
            waiting.pop(0)
            yield _image(frame)
        if not waiting:
            return
    if last is not None:
        for _ in waiting:
            yield _image(last)


def _image(frame: VideoFrame) -> Image.Image:
    image: Image.Image = frame.to_image()  # type: ignore[no-untyped-call]
    return image


def _shrink(image: Image.Image, side: int) -> Image.Image:
    image.thumbnail((side, side))
    return image


def _sheet(frames: list[Image.Image]) -> Image.Image:
    width, height = frames[0].size
    columns = min(SHEET_COLUMNS, len(frames))
    rows = -(-len(frames) // columns)
    sheet = Image.new("RGB", (columns * width, rows * height))
    for number, frame in enumerate(frames):
        sheet.paste(frame, (number % columns * width, number // columns * height))
    return sheet
