"""Move the layers of a scene quickly: everything as brightness and colour planes, prepared once."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from PIL import Image, ImageChops

from penstock.atelier.renderers.canvas import STILL, Layer, Scene, Size, place

# Video is brightness at full size and colour at half. Working on such planes costs a tenth of working on RGBA, and
# the frames need no conversion. The matrix is BT.709 in its usual limited range.
_MATRIX = (0.1826, 0.6142, 0.0620, 16.0, -0.1006, -0.3386, 0.4392, 128.0, 0.4392, -0.3989, -0.0403, 128.0)
# Parts of a pixel: in whole pixels slow movements would stutter. Large layers have fewer, for each is kept in memory.
_PHASES, _PHASES_LARGE, _LARGE_PIXELS = 4, 2, 400_000


class Planes(NamedTuple):
    """One picture, or one frame, as brightness and two colours."""

    y: Image.Image
    u: Image.Image
    v: Image.Image

    def copy(self) -> Planes:
        return Planes(self.y.copy(), self.u.copy(), self.v.copy())


def planes(image: Image.Image) -> Planes:
    y, u, v = image.convert("RGB").convert("RGB", _MATRIX).split()
    return Planes(y, _halved(u), _halved(v))


def _halved(plane: Image.Image) -> Image.Image:
    return plane.reduce(2) if min(plane.size) > 1 else plane


@dataclass(frozen=True, slots=True)
class Camera:
    """Travels once across the margin, gently at both ends."""

    margin: int
    seconds: float
    way: int = 1

    def shift(self, at: float) -> float:
        return -math.cos(math.pi * min(1.0, at / self.seconds)) * self.margin * self.way


class Stage:
    """A scene ready to be shown at any moment."""

    def __init__(self, scene: Scene, size: Size, camera: Camera) -> None:
        self._size = size
        self._camera = camera
        merged = list(_merged(scene.layers))
        ground = Image.new("RGBA", (scene.width, scene.height))
        while merged and merged[0].motion == STILL:
            layer = merged.pop(0)
            place(ground, layer.image, layer.left, layer.top)
        left = (scene.width - size[0]) // 2
        self._ground = planes(ground.crop((left, 0, left + size[0], size[1])))
        self._actors = [_Actor(layer, scene, left) for layer in merged]

    def frame(self, at: float) -> Planes:
        shown = self._ground.copy()
        self.play(shown, at)
        return shown

    def play(self, shown: Planes, at: float) -> None:
        """Draw what moves onto a frame."""
        travelled = self._camera.shift(at)
        for actor in self._actors:
            actor.draw(shown, at, travelled)


def _merged(layers: tuple[Layer, ...]) -> Iterator[Layer]:
    """Neighbours that move alike are one layer."""
    pending: Layer | None = None
    for layer in layers:
        if pending is None:
            pending = layer
        elif pending.motion == layer.motion and not layer.motion.wraps and not layer.motion.spin:
            pending = _joined(pending, layer)
        else:
            yield pending
            pending = layer
    if pending is not None:
        yield pending


def _joined(below: Layer, above: Layer) -> Layer:
    left, top = min(below.left, above.left), min(below.top, above.top)
    right = max(below.left + below.image.width, above.left + above.image.width)
    bottom = max(below.top + below.image.height, above.top + above.image.height)
    whole = Image.new("RGBA", (right - left, bottom - top))
    for layer in (below, above):
        place(whole, layer.image, layer.left - left, layer.top - top)
    return Layer(whole, left, top, below.motion)


class _Actor:
    """A layer that moves, its planes ready at every part of a pixel."""

    def __init__(self, layer: Layer, scene: Scene, left: int) -> None:
        box = layer.image.getchannel("A").getbbox() if not layer.motion.wraps else None
        image = layer.image if box is None else layer.image.crop(box)
        offset = (0, 0) if box is None else (box[0], box[1])
        self._motion = layer.motion
        self._at = (layer.left + offset[0] - left, layer.top + offset[1])
        self._unit = scene.height
        self._periods = tuple(
            side if side >= whole else whole + side
            for side, whole in zip(image.size, (scene.width, scene.height), strict=True)
        )
        colours = planes(_bled(image))
        alpha = image.getchannel("A")
        half = _halved(alpha)
        self._planes = ((colours.y, alpha), (colours.u, half), (colours.v, half))
        self._phases = _PHASES if image.width * image.height < _LARGE_PIXELS else _PHASES_LARGE
        self._shifted: dict[tuple[int, float, float], tuple[Image.Image, Image.Image]] = {}

    def draw(self, shown: Planes, at: float, travelled: float) -> None:
        x, y = self._position(at, travelled)
        light = self._light(at)
        for place_x in self._copies(x, 0, shown.y.width):
            for place_y in self._copies(y, 1, shown.y.height):
                for number, plane in enumerate(shown):
                    scale = 1.0 if number == 0 else 0.5
                    self._draw_plane(number, plane, place_x * scale, place_y * scale, light, at)

    def _position(self, at: float, travelled: float) -> tuple[float, float]:
        motion, unit = self._motion, self._unit
        wave = math.sin(math.tau * (at / motion.period + motion.phase))
        x = self._at[0] + travelled * motion.depth + (motion.drift[0] * at + motion.sway[0] * wave) * unit
        return x, self._at[1] + (motion.drift[1] * at + motion.sway[1] * wave) * unit

    def _light(self, at: float) -> float:
        wave = 0.5 - 0.5 * math.cos(math.tau * (at / self._motion.period + self._motion.phase))
        return 1 - self._motion.twinkle * wave

    def _copies(self, position: float, axis: int, shown: int) -> list[float]:
        """Where the layer appears along one axis: once, or again and again when it wraps around."""
        if not self._motion.wraps or not self._motion.drift[axis]:
            return [position]
        period = self._periods[axis]
        first = position % period - period
        return [first + period * step for step in range(3) if first + period * step < shown]

    def _draw_plane(self, number: int, plane: Image.Image, x: float, y: float, light: float, at: float) -> None:
        if self._motion.spin:
            values, mask = self._turned(number, at)
        else:
            x, y = (math.floor(value * self._phases + 0.5) / self._phases for value in (x, y))
            values, mask = self._part(number, x % 1, y % 1)
        if light < 0.99:
            mask = mask.point(_dimming(round(light * 64)))
        plane.paste(values, (math.floor(x), math.floor(y)), mask)

    def _part(self, number: int, right: float, down: float) -> tuple[Image.Image, Image.Image]:
        key = (number, right, down)
        if key not in self._shifted:
            values, mask = self._planes[number]
            if right or down:
                width, height = values.size[0] + 1, values.size[1] + 1
                # Colours are defined a little beyond the mask, so the added edge repeats; the mask's edge is empty.
                grown = Image.new("L", (width, height))
                grown.paste(values.resize((width, height), Image.Resampling.NEAREST), (0, 0))
                grown.paste(values, (0, 0))
                values = _nudged(grown, right, down)
                rim = Image.new("L", (width, height))
                rim.paste(mask, (0, 0))
                mask = _nudged(rim, right, down)
            self._shifted[key] = values, mask
        return self._shifted[key]

    def _turned(self, number: int, at: float) -> tuple[Image.Image, Image.Image]:
        values, mask = self._planes[number]
        angle = -360 * self._motion.spin * at
        return values.rotate(angle, Image.Resampling.BILINEAR), mask.rotate(angle, Image.Resampling.BILINEAR)


@cache
def _dimming(sixty_fourths: int) -> list[int]:
    return [value * sixty_fourths // 64 for value in range(256)]


def _nudged(plane: Image.Image, right: float, down: float) -> Image.Image:
    """Moved by parts of a pixel: a mixture with the same plane one whole pixel further."""
    if right:
        plane = Image.blend(plane, ImageChops.offset(plane, 1, 0), right)
    if down:
        plane = Image.blend(plane, ImageChops.offset(plane, 0, 1), down)
    return plane


def _bled(image: Image.Image) -> Image.Image:
    """Colours carried over the edge of what can be seen, or black would shine through at parts of a pixel."""
    alpha = image.getchannel("A")
    if alpha.getextrema() == (255, 255) or min(image.size) < 8:
        return image.convert("RGB")
    small = image.resize((max(1, image.width // 8), max(1, image.height // 8)), Image.Resampling.BOX)
    around = small.convert("RGB").resize(image.size, Image.Resampling.BILINEAR)
    return Image.composite(image.convert("RGB"), around, alpha.point(lambda value: 255 if value > 8 else 0))
