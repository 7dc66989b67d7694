"""Film a clip: a scene from the words of a prompt that moves, or slow travels over reference pictures."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path

import av
import msgspec
from av.video.frame import VideoFrame
from PIL import Image

from penstock.atelier.renderers import canvas, scene, sky
from penstock.atelier.renderers.canvas import Scene, Size
from penstock.atelier.renderers.enlarge import scale
from penstock.atelier.renderers.palette import choose
from penstock.atelier.renderers.planes import Camera, Planes, Stage, planes
from penstock.atelier.renderers.words import read
from penstock.imaging import convert

SHORTEST, LONGEST, MOST_PIXELS = 32, 2048, 1920 * 1920
LEAST_SECONDS, MOST_SECONDS = 1.0, 20.0
MARGIN = 0.05  # of the width, on both sides, for the camera to travel
ZOOM = 1.16
FADE_SECONDS = 0.8
FINER = 3
MOST_IMAGES = 4
Report = Callable[[float], None]


class Film(msgspec.Struct, frozen=True):
    path: str
    content_type: str
    width: int
    height: int
    seconds: float
    frames: int
    bytes: int


def film(
    path: str,
    prompt: str = "",
    image: bytes | None = None,
    images: list[bytes] | None = None,
    seconds: float = 4.0,
    width: int = 1280,
    height: int = 720,
    fps: int = 24,
    seed: int = 0,
    negative: str = "",
    progress: Report | None = None,
) -> Film:
    """An H.264 MP4 at `path`, its index in front so that it plays while it loads."""
    _check(seconds, width, height, fps)
    count = max(1, round(seconds * fps))
    size = (width, height)
    sources = [convert.decode(data).convert("RGB") for data in _given(image, images)]
    show = (
        _over_pictures(sources, prompt, size, seconds, seed)
        if sources
        else _scene(prompt, negative, size, seconds, seed)
    )
    _write(path, (show(number / fps) for number in range(count)), size, fps, count, progress)
    return _probed(path)


def _given(image: bytes | None, images: list[bytes] | None) -> list[bytes]:
    given = [*([image] if image else []), *(images or [])]
    if len(given) > MOST_IMAGES:
        raise convert.BadImage(f"A clip takes at most {MOST_IMAGES} reference images.")
    return given


def _check(seconds: float, width: int, height: int, fps: int) -> None:
    if not LEAST_SECONDS <= seconds <= MOST_SECONDS:
        raise convert.BadImage(f"A clip lasts from {LEAST_SECONDS:g} to {MOST_SECONDS:g} seconds.")
    if not (SHORTEST <= width <= LONGEST and SHORTEST <= height <= LONGEST) or width % 2 or height % 2:
        raise convert.BadImage(f"Width and height must be even and from {SHORTEST} to {LONGEST}.")
    if width * height > MOST_PIXELS:
        raise convert.BadImage("A clip may be as large as 1920x1920, in any shape.")
    if not 1 <= fps <= 60:
        raise convert.BadImage("Frames per second must be from 1 to 60.")


def _scene(prompt: str, negative: str, size: Size, seconds: float, seed: int) -> Callable[[float], Planes]:
    margin = math.ceil(size[0] * MARGIN)
    wide = (size[0] + 2 * margin, size[1])
    chance = canvas.dice(prompt, seed, "camera")
    composed = scene.compose(prompt, negative, wide, seed)
    first, *rest = composed.layers
    # Smooth skies would show steps; still grain hides them and costs the encoder nothing after the first frame.
    grained = canvas.finish(first.image.convert("RGB"), chance, grain=0.02, vignette=0.0).convert("RGBA")
    ready = Scene(*wide, (canvas.Layer(grained, first.left, first.top, first.motion), *rest))
    return Stage(ready, size, Camera(margin, seconds, chance.choice((-1, 1)))).frame


def _over_pictures(
    sources: list[Image.Image], prompt: str, size: Size, seconds: float, seed: int
) -> Callable[[float], Planes]:
    """Each picture for its share of the time, with a slow move, and soft cuts between; weather if the words ask."""
    chance = canvas.dice(prompt, seed, "travel")
    brief = read(prompt)
    share = seconds / len(sources)
    travels = [
        _Travel(source, size, share + FADE_SECONDS, number + chance.randrange(4))
        for number, source in enumerate(sources)
    ]
    palette = choose(brief.palette, (), chance)
    weather = Stage(Scene(*size, tuple(sky.paint_weather(brief, palette, size, chance))), size, Camera(0, seconds))

    def show(at: float) -> Planes:
        number = min(len(travels) - 1, int(at / share))
        shown = travels[number].frame(at - number * share)
        since = at - number * share
        if number > 0 and since < FADE_SECONDS:
            before = travels[number - 1].frame(share + since)
            part = since / FADE_SECONDS
            shown = Planes(*(Image.blend(old, new, part) for old, new in zip(before, shown, strict=True)))
        weather.play(shown, at)
        return shown

    return show


class _Travel:
    """A picture seen through a window that slowly moves and grows or shrinks."""

    def __init__(self, source: Image.Image, size: Size, seconds: float, kind: int) -> None:
        self._size = size
        self._seconds = seconds
        self._kind = kind % 4
        fit = max(size[0] * ZOOM / source.width, size[1] * ZOOM / source.height)
        wide, high = (max(2, math.ceil(side * fit / 2) * 2) for side in source.size)
        self._whole = (wide, high)
        # Enlarged once; a frame is then only picked from it, pixel by pixel, a dozen times as fast as resampling.
        self._planes = Planes(
            *(
                plane.resize((plane.width * FINER, plane.height * FINER), Image.Resampling.BICUBIC)
                for plane in planes(scale(source, (wide, high)))
            )
        )

    def frame(self, at: float) -> Planes:
        way = 0.5 - 0.5 * math.cos(math.pi * min(1.0, at / self._seconds))
        way = way if self._kind % 2 == 0 else 1 - way
        zoom = 1 + (ZOOM - 1) * (way if self._kind < 2 else 0.35)
        window = tuple(side * ZOOM / zoom for side in self._size)
        room = tuple(all_ - seen for all_, seen in zip(self._whole, window, strict=True))
        left, top = (
            room[0] * (0.5 if self._kind < 2 else 0.1 + 0.8 * way),
            room[1] * (0.5 if self._kind < 2 else 0.9 - 0.8 * way),
        )
        return Planes(*(self._seen(plane, (left, top, left + window[0], top + window[1])) for plane in self._planes))

    def _seen(self, plane: Image.Image, box: tuple[float, float, float, float]) -> Image.Image:
        finer = plane.width / self._whole[0]
        left, top, right, bottom = (min(side * finer, most) for side, most in zip(box, plane.size * 2, strict=True))
        size = (round(self._size[0] * finer / FINER), round(self._size[1] * finer / FINER))
        return plane.resize(size, Image.Resampling.NEAREST, box=(left, top, right, bottom))


def _write(path: str, frames: Iterator[Planes], size: Size, fps: int, count: int, progress: Report | None) -> None:
    with av.open(path, "w", format="mp4", options={"movflags": "+faststart"}) as container:
        stream = container.add_stream(
            "libx264", rate=fps, options={"preset": "superfast", "crf": "20", "g": str(fps * 2)}
        )
        stream.width, stream.height = size
        stream.pix_fmt = "yuv420p"
        stream.time_base = Fraction(1, fps)
        coder = stream.codec_context
        coder.thread_count = 1  # the pool has a child for each core; and the same film on machines with more of them
        coder.color_range, coder.colorspace = 1, 1  # limited range, BT.709
        coder.color_primaries, coder.color_trc = 1, 1
        for number, shown in enumerate(frames):
            container.mux(stream.encode(_video_frame(shown, number, fps)))
            if progress is not None:
                progress((number + 1) / count)
        container.mux(stream.encode(None))


def _video_frame(shown: Planes, number: int, fps: int) -> VideoFrame:
    frame = VideoFrame(shown.y.width, shown.y.height, "yuv420p")
    for plane, image in zip(frame.planes, shown, strict=True):
        # A plane's rows may be longer than the picture's.
        padded = image if plane.line_size == image.width else image.crop((0, 0, plane.line_size, image.height))
        plane.update(padded.tobytes())
    frame.pts = number
    frame.time_base = Fraction(1, fps)
    return frame


def _probed(path: str) -> Film:
    """What the file itself says."""
    with av.open(path) as container:
        stream = container.streams.video[0]
        seconds = float((stream.duration or 0) * (stream.time_base or Fraction(0)))
        size = Path(path).stat().st_size
        return Film(path, "video/mp4", stream.width, stream.height, round(seconds, 3), stream.frames, size)
