"""Build images from layers: gradients, noise, masks, glows, outlines and grain."""

from __future__ import annotations

import hashlib
import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

from PIL import Image, ImageChops, ImageDraw, ImageFilter

from penstock_atelier.renderers.palette import Colour, ramp

Point = tuple[float, float]
Size = tuple[int, int]
SMOOTH = 2  # silhouettes are drawn this many times larger and reduced, which gives them smooth edges


@dataclass(frozen=True, slots=True)
class Motion:
    """How a layer moves in a video; lengths are shares of the image's height, times are seconds."""

    depth: float = 0.0  # 0 does not move with the camera, 1 moves as much as the camera does
    drift: Point = (0.0, 0.0)  # a second
    sway: Point = (0.0, 0.0)
    period: float = 4.0
    phase: float = 0.0  # of the period
    twinkle: float = 0.0  # share of its opacity that comes and goes
    wraps: bool = False  # what leaves on one side comes back on the other
    spin: float = 0.0  # turns a second, for small layers


STILL = Motion()


@dataclass(frozen=True, slots=True)
class Layer:
    """An image at a place in a scene."""

    image: Image.Image  # RGBA
    left: int = 0
    top: int = 0
    motion: Motion = STILL


@dataclass(frozen=True, slots=True)
class Scene:
    """Layers from the back to the front; the first covers everything."""

    width: int
    height: int
    layers: tuple[Layer, ...]


def seeded_rng(*parts: object) -> random.Random:
    """A random generator that is the same for the same parts, on every machine and in every process."""
    digest = hashlib.sha256("\0".join(str(part) for part in parts).encode("utf-8", "surrogatepass")).digest()
    return random.Random(int.from_bytes(digest[:16], "big"))  # noqa: S311 - chooses shapes, not secrets


def flatten(scene: Scene) -> Image.Image:
    """All layers as one RGB image."""
    canvas = Image.new("RGB", (scene.width, scene.height))
    for layer in scene.layers:
        # The first layer is opaque, so pasting through the mask is enough, and twice as fast as compositing.
        canvas.paste(layer.image.convert("RGB"), (layer.left, layer.top), layer.image.getchannel("A"))
    return canvas


def place(canvas: Image.Image, image: Image.Image, left: int, top: int) -> None:
    """Composite an image onto another, also when parts of it are outside."""
    visible = (
        max(0, -left),
        max(0, -top),
        min(image.width, canvas.width - left),
        min(image.height, canvas.height - top),
    )
    if visible[0] < visible[2] and visible[1] < visible[3]:
        canvas.alpha_composite(image, (max(0, left), max(0, top)), visible)


def gradient(stops: tuple[Colour, ...], size: Size) -> Image.Image:
    """An RGB gradient from the top to the bottom."""
    width, height = max(1, size[0]), max(1, size[1])
    steps = min(height, 128)
    strip = Image.frombytes("RGB", (1, steps), bytes(channel for step in ramp(stops, steps) for channel in step))
    return strip.resize((1, height), Image.Resampling.BILINEAR).resize((width, height), Image.Resampling.NEAREST)


def fade_mask(size: Size, start: int, end: int, power: float = 1.0) -> Image.Image:
    """A mask from one value at the top to another at the bottom."""
    height = max(1, size[1])
    values = (start + (end - start) * (row / max(1, height - 1)) ** power for row in range(height))
    strip = Image.frombytes("L", (1, height), bytes(round(value) for value in values))
    return strip.resize((max(1, size[0]), height), Image.Resampling.NEAREST)


def noise(rng: random.Random, size: Size, cell: Point, octaves: int = 3, *, tiled: bool = False) -> Image.Image:
    """Cloudy grey noise; `cell` is the size of the largest structure; tiled noise continues from right to left."""
    # Nothing is smaller than the last octave's cells, so it is made small and enlarged at the end.
    shrink = max(1, min(8, int(min(cell) / 2 ** (octaves - 1) / 3)))
    width, height = (max(1, math.ceil(side / shrink)) for side in size)
    total = Image.new("L", (width, height), 128)
    for octave in range(octaves):
        across, down = (
            max(2, math.ceil(side / max(1.0, step / 2**octave)) + 1) for side, step in zip(size, cell, strict=True)
        )
        grid = Image.frombytes("L", (across, down), rng.randbytes(across * down))
        if tiled:
            grid.paste(grid.crop((0, 0, 1, down)), (across - 1, 0))
        layer = grid.resize((width, height), Image.Resampling.BICUBIC, box=(0.5, 0.5, across - 0.5, down - 0.5))
        total = Image.blend(total, layer, 0.5 ** (octave + 0.6) if octave else 1.0)
    return total if shrink == 1 else total.resize((max(1, size[0]), max(1, size[1])), Image.Resampling.BICUBIC)


def tone_curve(low: float, high: float, maximum: int = 255) -> list[int]:
    """A table for `Image.point`: 0 below `low`, `maximum` above `high`, smooth between."""
    table = []
    for value in range(256):
        share = min(1.0, max(0.0, (value - low) / (high - low)))
        table.append(round(maximum * (share * share * (3 - 2 * share))))
    return table


def tint(mask: Image.Image, colour: Colour | Image.Image) -> Image.Image:
    """A colour, or an image of the same size, with this mask as its alpha channel."""
    filled = colour if isinstance(colour, Image.Image) else Image.new("RGB", mask.size, colour)
    image = filled.convert("RGBA")
    image.putalpha(mask)
    return image


def cut_layer(mask: Image.Image, colours: Colour | Image.Image, motion: Motion = STILL) -> Layer:
    """A layer that is cropped to the visible part of the mask, which saves time later."""
    box = mask.getbbox() or (0, 0, 1, 1)
    part = colours.crop(box) if isinstance(colours, Image.Image) else colours
    return Layer(tint(mask.crop(box), part), box[0], box[1], motion)


def silhouette(points: Sequence[Point], size: Size) -> Image.Image:
    """A mask of a polygon with smooth edges."""
    large = Image.new("L", (size[0] * SMOOTH, size[1] * SMOOTH))
    ImageDraw.Draw(large).polygon([(x * SMOOTH, y * SMOOTH) for x, y in points], fill=255)
    return large.reduce(SMOOTH)


def draw_mask(size: Size, draw: Callable[[ImageDraw.ImageDraw, float], None], smooth: int = SMOOTH) -> Image.Image:
    """A mask that a function draws `smooth` times larger and that is then reduced."""
    large = Image.new("L", (max(1, size[0]) * smooth, max(1, size[1]) * smooth))
    draw(ImageDraw.Draw(large), smooth)
    return large.reduce(smooth)


def draw_soft_mask(size: Size, draw: Callable[[ImageDraw.ImageDraw, float], None], softness: float) -> Image.Image:
    """A mask that a function draws smaller and that is then enlarged, which blurs it."""
    shrink = max(1, min(min(size) // 4, round(softness)))
    small = Image.new("L", (max(1, math.ceil(size[0] / shrink)), max(1, math.ceil(size[1] / shrink))))
    draw(ImageDraw.Draw(small), 1 / shrink)
    return small.filter(ImageFilter.BoxBlur(1)).resize(size, Image.Resampling.BICUBIC)


@cache
def _halo(power: float) -> Image.Image:
    # Pillow's radial gradient is black in the middle and white in the corners; 180 is the inscribed circle.
    table = [round(255 * max(0.0, 1 - value / 180) ** power) for value in range(256)]
    return Image.radial_gradient("L").point(table)


def halo(diameter: int, power: float = 2.0, strength: float = 1.0) -> Image.Image:
    """A round mask that fades from the middle to the edge."""
    side = max(1, diameter)
    mask = _halo(power).resize((side, side), Image.Resampling.BICUBIC)
    return mask if strength >= 1 else mask.point([round(value * strength) for value in range(256)])


def glow_layer(centre: Point, radius: float, colour: Colour, strength: float, motion: Motion = STILL) -> Layer:
    """Light around a point."""
    mask = halo(round(radius * 2), 2.2, strength)
    return Layer(tint(mask, colour), round(centre[0] - radius), round(centre[1] - radius), motion)


def ridge_line(rng: random.Random, steps: int, roughness: float) -> list[float]:
    """Heights from 0 to 1 of a rough mountain line, by midpoint displacement."""
    heights = [rng.random(), rng.random()]
    swing = 0.5
    while len(heights) < steps:
        between = [(one + other) / 2 + (rng.random() - 0.5) * swing * 2 for one, other in pairwise(heights)]
        heights = [height for pair in zip(heights, between, strict=False) for height in pair] + [heights[-1]]
        swing *= roughness
    low, high = min(heights), max(heights)
    return [(height - low) / max(0.001, high - low) for height in heights]


def hill_line(rng: random.Random, steps: int, waves: float) -> list[float]:
    """Heights from 0 to 1 of a smooth line of hills, as a sum of sines."""
    parts = [
        (waves * factor, rng.random() * math.tau, weight) for factor, weight in ((1, 1.0), (2.1, 0.4), (3.7, 0.15))
    ]
    line = [
        sum(weight * math.sin(math.tau * rate * step / steps + start) for rate, start, weight in parts)
        for step in range(steps + 1)
    ]
    low, high = min(line), max(line)
    return [(height - low) / max(0.001, high - low) for height in line]


def outline(line: Sequence[float], size: Size, base: float, height: float) -> list[Point]:
    """A line of heights as the polygon of what is below it."""
    step = size[0] / (len(line) - 1)
    points: list[Point] = [(index * step, base - value * height) for index, value in enumerate(line)]
    return [(-2, size[1] + 2), (-2, points[0][1]), *points, (size[0] + 2, points[-1][1]), (size[0] + 2, size[1] + 2)]


def finish(image: Image.Image, rng: random.Random, grain: float = 0.045, vignette: float = 0.16) -> Image.Image:
    """Add darker corners and fine grain, which also hides the steps of gradients."""
    corners = Image.radial_gradient("L").resize(image.size, Image.Resampling.BICUBIC)
    shade = corners.point([255 - round(255 * vignette * (value / 255) ** 2.4) for value in range(256)])
    image = ImageChops.multiply(image, Image.merge("RGB", (shade, shade, shade)))
    speckle = Image.frombytes("L", image.size, rng.randbytes(image.width * image.height))
    paper = noise(rng, image.size, (image.width / 90, image.height / 90), 2)
    texture = Image.blend(speckle, paper, 0.35)
    return ImageChops.overlay(image, _grey_texture(texture, grain))


def _grey_texture(texture: Image.Image, strength: float) -> Image.Image:
    weakened = texture.point([round(128 + (value - 128) * strength * 2) for value in range(256)])
    return Image.merge("RGB", (weakened, weakened, weakened))


def add_shading(image: Image.Image, strength: float) -> Image.Image:
    """Shade a flat RGBA drawing as if light came from the upper left, by its own outline."""
    alpha = image.getchannel("A")
    reach = max(2, round(min(image.size) * 0.12))
    soft = alpha.filter(ImageFilter.BoxBlur(reach)).filter(ImageFilter.BoxBlur(reach))
    # What the outline no longer covers when it is moved towards the light is in shade; and the opposite is lit.
    towards = (-0.5, -0.7)
    dark = ImageChops.subtract(alpha, _move_mask(soft, towards[0] * reach, towards[1] * reach))
    light = ImageChops.subtract(alpha, _move_mask(soft, -towards[0] * reach, -towards[1] * reach))
    shaded = image.copy()
    shaded.paste((20, 16, 48), mask=dark.point([round(value * strength) for value in range(256)]))
    shaded.paste((255, 246, 225), mask=light.point([round(value * strength * 0.45) for value in range(256)]))
    shaded.putalpha(alpha)
    return shaded


def _move_mask(mask: Image.Image, right: float, down: float) -> Image.Image:
    """The mask moved by some pixels; nothing comes back on the other side."""
    x, y = round(right), round(down)
    moved = ImageChops.offset(mask, x, y)
    width, height = mask.size
    if y < 0:
        moved.paste(moved.crop((0, height + y - 1, width, height + y)).resize((width, -y)), (0, height + y))
    elif y > 0:
        moved.paste(0, (0, 0, width, y))
    moved.paste(0, (width + x, 0, width, height) if x < 0 else (0, 0, x, height))
    return moved
