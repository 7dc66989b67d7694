"""Animate the layers of a scene as brightness and colour planes, which are prepared once."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from PIL import Image, ImageChops

from penstock_atelier.renderers.canvas import STILL, Layer, Scene, Size, place

# Video is brightness at full size and colour at half. Working on such planes costs a tenth of working on RGBA, and
# the frames need no conversion. The matrix is BT.709 in its usual limited range.
_MATRIX = (0.1826, 0.6142, 0.0620, 16.0, -0.1006, -0.3386, 0.4392, 128.0, 0.4392, -0.3989, -0.0403, 128.0)
# Layers move by parts of a pixel, or slow movements would not look smooth. Large layers have fewer such steps, because
# each step is kept in memory.
_PHASES = 4
_PHASES_LARGE = 2
_LARGE_PIXELS = 400_000


class Planes(NamedTuple):
    """An image as brightness at full size and two colour planes at half size."""

    y: Image.Image
    u: Image.Image
    v: Image.Image

    def copy(self) -> Planes:
        return Planes(self.y.copy(), self.u.copy(), self.v.copy())


def to_planes(image: Image.Image) -> Planes:
    """Convert an RGB or RGBA image."""
    y, u, v = image.convert("RGB").convert("RGB", _MATRIX).split()
    return Planes(y, _halve(u), _halve(v))


def _halve(plane: Image.Image) -> Image.Image:
    return plane.reduce(2) if min(plane.size) > 1 else plane


@dataclass(frozen=True, slots=True)
class Camera:
    """Moves once across the margin, slower at both ends."""

    margin: int
    seconds: float
    direction: int = 1

    def shift(self, at: float) -> float:
        """How far it has moved from the middle, in pixels, at a time in seconds."""
        return -math.cos(math.pi * min(1.0, at / self.seconds)) * self.margin * self.direction


class Animation:
    """A scene from which the frame at any time can be drawn."""

    def __init__(self, scene: Scene, size: Size, camera: Camera) -> None:
        self._size = size
        self._camera = camera
        merged = list(_merge_layers(scene.layers))
        ground = Image.new("RGBA", (scene.width, scene.height))
        while merged and merged[0].motion == STILL:
            layer = merged.pop(0)
            place(ground, layer.image, layer.left, layer.top)
        left = (scene.width - size[0]) // 2
        self._ground = to_planes(ground.crop((left, 0, left + size[0], size[1])))
        self._moving = [_MovingLayer(layer, scene, left) for layer in merged]

    def frame(self, at: float) -> Planes:
        shown = self._ground.copy()
        self.draw_moving(shown, at)
        return shown

    def draw_moving(self, shown: Planes, at: float) -> None:
        """Draw the moving layers onto a frame."""
        travelled = self._camera.shift(at)
        for layer in self._moving:
            layer.draw(shown, at, travelled)


def _merge_layers(layers: tuple[Layer, ...]) -> Iterator[Layer]:
    """Join neighbouring layers that move in the same way."""
    pending: Layer | None = None
    for layer in layers:
        if pending is None:
            pending = layer
        elif pending.motion == layer.motion and not layer.motion.wraps and not layer.motion.spin:
            pending = _join_layers(pending, layer)
        else:
            yield pending
            pending = layer
    if pending is not None:
        yield pending


def _join_layers(below: Layer, above: Layer) -> Layer:
    left, top = min(below.left, above.left), min(below.top, above.top)
    right = max(below.left + below.image.width, above.left + above.image.width)
    bottom = max(below.top + below.image.height, above.top + above.image.height)
    whole = Image.new("RGBA", (right - left, bottom - top))
    for layer in (below, above):
        place(whole, layer.image, layer.left - left, layer.top - top)
    return Layer(whole, left, top, below.motion)


class _MovingLayer:
    """A layer that moves; its planes are kept for each part of a pixel that was needed."""

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
        colours = to_planes(_extend_colours(image))
        alpha = image.getchannel("A")
        half = _halve(alpha)
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
        motion = self._motion
        unit = self._unit
        wave = math.sin(math.tau * (at / motion.period + motion.phase))
        x = self._at[0] + travelled * motion.depth + (motion.drift[0] * at + motion.sway[0] * wave) * unit
        return x, self._at[1] + (motion.drift[1] * at + motion.sway[1] * wave) * unit

    def _light(self, at: float) -> float:
        wave = 0.5 - 0.5 * math.cos(math.tau * (at / self._motion.period + self._motion.phase))
        return 1 - self._motion.twinkle * wave

    def _copies(self, position: float, axis: int, shown: int) -> list[float]:
        """The positions of the layer along one axis: one, or several when it wraps around."""
        if not self._motion.wraps or not self._motion.drift[axis]:
            return [position]
        period = self._periods[axis]
        first = position % period - period
        return [first + period * step for step in range(3) if first + period * step < shown]

    def _draw_plane(self, number: int, plane: Image.Image, x: float, y: float, light: float, at: float) -> None:
        if self._motion.spin:
            values, mask = self._rotated_plane(number, at)
        else:
            x, y = (math.floor(value * self._phases + 0.5) / self._phases for value in (x, y))
            values, mask = self._plane_at(number, x % 1, y % 1)
        if light < 0.99:
            mask = mask.point(_dimming_table(round(light * 64)))
        plane.paste(values, (math.floor(x), math.floor(y)), mask)

    def _plane_at(self, number: int, right: float, down: float) -> tuple[Image.Image, Image.Image]:
        key = (number, right, down)
        if key not in self._shifted:
            values, mask = self._planes[number]
            if right or down:
                width, height = values.size[0] + 1, values.size[1] + 1
                # The added edge of the colours repeats their last pixels; the added edge of the mask is empty.
                grown = Image.new("L", (width, height))
                grown.paste(values.resize((width, height), Image.Resampling.NEAREST), (0, 0))
                grown.paste(values, (0, 0))
                values = _shift_by_fraction(grown, right, down)
                rim = Image.new("L", (width, height))
                rim.paste(mask, (0, 0))
                mask = _shift_by_fraction(rim, right, down)
            self._shifted[key] = values, mask
        return self._shifted[key]

    def _rotated_plane(self, number: int, at: float) -> tuple[Image.Image, Image.Image]:
        values, mask = self._planes[number]
        angle = -360 * self._motion.spin * at
        return values.rotate(angle, Image.Resampling.BILINEAR), mask.rotate(angle, Image.Resampling.BILINEAR)


@cache
def _dimming_table(sixty_fourths: int) -> list[int]:
    return [value * sixty_fourths // 64 for value in range(256)]


def _shift_by_fraction(plane: Image.Image, right: float, down: float) -> Image.Image:
    """The plane moved by parts of a pixel: blended with itself one whole pixel further."""
    if right:
        plane = Image.blend(plane, ImageChops.offset(plane, 1, 0), right)
    if down:
        plane = Image.blend(plane, ImageChops.offset(plane, 0, 1), down)
    return plane


def _extend_colours(image: Image.Image) -> Image.Image:
    """The RGB image with its colours continued beyond its visible edge; else the edge would be dark."""
    alpha = image.getchannel("A")
    if alpha.getextrema() == (255, 255) or min(image.size) < 8:
        return image.convert("RGB")
    small = image.resize((max(1, image.width // 8), max(1, image.height // 8)), Image.Resampling.BOX)
    around = small.convert("RGB").resize(image.size, Image.Resampling.BILINEAR)
    return Image.composite(image.convert("RGB"), around, alpha.point(lambda value: 255 if value > 8 else 0))
