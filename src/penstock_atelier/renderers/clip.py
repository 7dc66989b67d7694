"""Render a video: a scene from the words of a prompt with moving parts, or a slow camera move over an image."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Iterator
from fractions import Fraction

import av
import msgspec
from av.video.frame import VideoFrame
from PIL import Image

from penstock.imaging import convert
from penstock_atelier.renderers import canvas, scene, sky
from penstock_atelier.renderers.canvas import Scene, Size
from penstock_atelier.renderers.enlarge import scale
from penstock_atelier.renderers.palette import choose_palette
from penstock_atelier.renderers.planes import Animation, Camera, Planes, to_planes
from penstock_atelier.renderers.words import read

MIN_SIDE = 32
MAX_SIDE = 2048
MAX_PIXELS = 1920 * 1920
MIN_SECONDS = 1.0
MAX_SECONDS = 20.0
FRAMES_PER_SECOND = 24
MARGIN = 0.05  # of the width, on both sides, for the camera to travel
ZOOM = 1.16  # how much larger than the frame an image is shown, so that the camera can move over it
EXTRA_SECONDS = 0.8  # the move over an image is planned this much longer, so that it does not stop before the end
INDEX_BYTES = 4096  # space for the index at the start of the file; what is not needed stays empty
INDEX_BYTES_PER_FRAME = 32
FINER = 3  # an image is enlarged by this factor once, so that frames can be picked from its pixels
Report = Callable[[float], None]
Show = Callable[[float], Planes]  # the frame at a time in seconds


class RenderedVideo(msgspec.Struct, frozen=True):
    """An encoded video, and what it contains."""

    data: bytes
    content_type: str
    width: int
    height: int
    seconds: float
    frames: int


def render_video(
    prompt: str,
    image: bytes | None,
    seconds: float,
    width: int,
    height: int,
    seed: int,
    progress: Report,
) -> RenderedVideo:
    """Return an H.264 MP4, its index first so that it plays while it loads. No file is written.

    Raises BadImage for an image that cannot be read, and for a length or a size outside the limits.
    """
    _check(seconds, width, height)
    size = (width, height)
    if image is None:
        show = _show_scene(prompt, size, seconds, seed)
    else:
        show = _show_image(convert.decode(image).convert("RGB"), prompt, size, seconds, seed)
    count = max(1, round(seconds * FRAMES_PER_SECOND))
    buffer = io.BytesIO()
    _write(buffer, (show(number / FRAMES_PER_SECOND) for number in range(count)), size, count, progress)
    return _measure(buffer)


def _check(seconds: float, width: int, height: int) -> None:
    if not MIN_SECONDS <= seconds <= MAX_SECONDS:
        raise convert.BadImage(f"A video lasts from {MIN_SECONDS:g} to {MAX_SECONDS:g} seconds.")
    if not (MIN_SIDE <= width <= MAX_SIDE and MIN_SIDE <= height <= MAX_SIDE) or width % 2 or height % 2:
        raise convert.BadImage(f"Width and height must be even and from {MIN_SIDE} to {MAX_SIDE}.")
    if width * height > MAX_PIXELS:
        raise convert.BadImage("A video may be as large as 1920x1920, in any shape.")


def _show_scene(prompt: str, size: Size, seconds: float, seed: int) -> Show:
    """The frames of a scene that is drawn from the prompt."""
    margin = math.ceil(size[0] * MARGIN)
    wide = (size[0] + 2 * margin, size[1])
    rng = canvas.seeded_rng(prompt, seed, "camera")
    composed = scene.compose(prompt, wide, seed)
    first, *rest = composed.layers
    # Smooth skies would show steps; still grain hides them and costs the encoder nothing after the first frame.
    grained = canvas.finish(first.image.convert("RGB"), rng, grain=0.02, vignette=0.0).convert("RGBA")
    ready = Scene(*wide, (canvas.Layer(grained, first.left, first.top, first.motion), *rest))
    return Animation(ready, size, Camera(margin, seconds, rng.choice((-1, 1)))).frame


def _show_image(source: Image.Image, prompt: str, size: Size, seconds: float, seed: int) -> Show:
    """The frames of a slow move over an image, with the weather that the prompt asks for in front."""
    rng = canvas.seeded_rng(prompt, seed, "travel")
    brief = read(prompt)
    move = _CameraMove(source, size, seconds + EXTRA_SECONDS, rng.randrange(4))
    palette = choose_palette(brief.palette, (), rng)
    weather = Animation(Scene(*size, tuple(sky.paint_weather(brief, palette, size, rng))), size, Camera(0, seconds))

    def show(at: float) -> Planes:
        frame = move.frame(at)
        weather.draw_moving(frame, at)
        return frame

    return show


class _CameraMove:
    """An image seen through a window that slowly shrinks (kind 0), grows (1), moves up to the right (2) or back (3)."""

    def __init__(self, source: Image.Image, size: Size, seconds: float, kind: int) -> None:
        self._size = size
        self._seconds = seconds
        self._kind = kind
        fit = max(size[0] * ZOOM / source.width, size[1] * ZOOM / source.height)
        wide, high = (max(2, math.ceil(side * fit / 2) * 2) for side in source.size)
        self._whole = (wide, high)
        # Enlarged once; a frame is then only picked from it, pixel by pixel, a dozen times as fast as resampling.
        self._planes = Planes(
            *(
                plane.resize((plane.width * FINER, plane.height * FINER), Image.Resampling.BICUBIC)
                for plane in to_planes(scale(source, (wide, high)))
            )
        )

    def frame(self, at: float) -> Planes:
        """The frame at a time in seconds."""
        share = 0.5 - 0.5 * math.cos(math.pi * min(1.0, at / self._seconds))
        share = share if self._kind % 2 == 0 else 1 - share
        zoom = 1 + (ZOOM - 1) * (share if self._kind < 2 else 0.35)
        window = tuple(side * ZOOM / zoom for side in self._size)
        room = tuple(whole - seen for whole, seen in zip(self._whole, window, strict=True))
        left = room[0] * (0.5 if self._kind < 2 else 0.1 + 0.8 * share)
        top = room[1] * (0.5 if self._kind < 2 else 0.9 - 0.8 * share)
        box = (left, top, left + window[0], top + window[1])
        return Planes(*(self._crop_plane(plane, box) for plane in self._planes))

    def _crop_plane(self, plane: Image.Image, box: tuple[float, float, float, float]) -> Image.Image:
        finer = plane.width / self._whole[0]
        left, top, right, bottom = (min(side * finer, most) for side, most in zip(box, plane.size * 2, strict=True))
        size = (round(self._size[0] * finer / FINER), round(self._size[1] * finer / FINER))
        return plane.resize(size, Image.Resampling.NEAREST, box=(left, top, right, bottom))


def _write(buffer: io.BytesIO, frames: Iterator[Planes], size: Size, count: int, progress: Report) -> None:
    """Encode the frames; report after each one how much is done."""
    keyframe_interval = str(FRAMES_PER_SECOND * 2)
    index_bytes = str(INDEX_BYTES + INDEX_BYTES_PER_FRAME * count)
    with av.open(buffer, "w", format="mp4", options={"moov_size": index_bytes}) as container:
        stream = container.add_stream(
            "libx264", rate=FRAMES_PER_SECOND, options={"preset": "superfast", "crf": "20", "g": keyframe_interval}
        )
        stream.width, stream.height = size
        stream.pix_fmt = "yuv420p"
        stream.time_base = Fraction(1, FRAMES_PER_SECOND)
        encoder = stream.codec_context
        encoder.thread_count = 1  # the pool has a child for each core; and the result is the same on every machine
        encoder.color_range, encoder.colorspace = 1, 1  # limited range, BT.709
        encoder.color_primaries, encoder.color_trc = 1, 1
        for number, frame in enumerate(frames):
            container.mux(stream.encode(_video_frame(frame, number)))
            progress((number + 1) / count)
        container.mux(stream.encode(None))


def _video_frame(shown: Planes, number: int) -> VideoFrame:
    frame = VideoFrame(shown.y.width, shown.y.height, "yuv420p")
    for plane, image in zip(frame.planes, shown, strict=True):
        # A plane's rows may be longer than the image's.
        padded = image if plane.line_size == image.width else image.crop((0, 0, plane.line_size, image.height))
        plane.update(padded.tobytes())
    frame.pts = number
    frame.time_base = Fraction(1, FRAMES_PER_SECOND)
    return frame


def _measure(buffer: io.BytesIO) -> RenderedVideo:
    """Read the video that was written, and return it with what it contains."""
    buffer.seek(0)
    with av.open(buffer, "r") as container:
        stream = container.streams.video[0]
        seconds = float((stream.duration or 0) * (stream.time_base or Fraction(0)))
        figures = (stream.width, stream.height, round(seconds, 3), stream.frames)
    return RenderedVideo(buffer.getvalue(), "video/mp4", *figures)
