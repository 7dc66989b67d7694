"""The painter's tools: layers, gradients, noise, soft light, smooth edges, grain."""

from __future__ import annotations

import hashlib
import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

from PIL import Image, ImageChops, ImageDraw, ImageFilter

from penstock.atelier.renderers.palette import Colour, ramp

Point = tuple[float, float]
Size = tuple[int, int]
SMOOTH = 2  # silhouettes are drawn this many times larger and reduced, which gives them smooth edges


@dataclass(frozen=True, slots=True)
class Motion:
    """How a layer moves in a clip; lengths are shares of the picture's height, times are seconds."""

    depth: float = 0.0  # 0 stands still when the camera travels, 1 passes by at full speed
    drift: Point = (0.0, 0.0)  # a second
    sway: Point = (0.0, 0.0)
    period: float = 4.0
    phase: float = 0.0  # of the period
    twinkle: float = 0.0  # share of its light that comes and goes
    wraps: bool = False  # leaves on one side, returns on the other
    spin: float = 0.0  # turns a second, for small layers


STILL = Motion()


@dataclass(frozen=True, slots=True)
class Layer:
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


def dice(*parts: object) -> random.Random:
    """The same dice for the same words and seed, on every machine and in every process."""
    digest = hashlib.sha256("\0".join(str(part) for part in parts).encode("utf-8", "surrogatepass")).digest()
    return random.Random(int.from_bytes(digest[:16], "big"))  # noqa: S311 - for beauty, not for secrets


def flatten(scene: Scene) -> Image.Image:
    canvas = Image.new("RGB", (scene.width, scene.height))
    for layer in scene.layers:
        # The ground is opaque, so pasting through the mask does, at half the price of compositing.
        canvas.paste(layer.image.convert("RGB"), (layer.left, layer.top), layer.image.getchannel("A"))
    return canvas


def place(canvas: Image.Image, image: Image.Image, left: int, top: int) -> None:
    """Composite, wherever the image lies, also when parts of it are outside."""
    cut = (max(0, -left), max(0, -top), min(image.width, canvas.width - left), min(image.height, canvas.height - top))
    if cut[0] < cut[2] and cut[1] < cut[3]:
        canvas.alpha_composite(image, (max(0, left), max(0, top)), cut)


def column(stops: tuple[Colour, ...], size: Size) -> Image.Image:
    """A gradient from the top to the bottom."""
    width, height = max(1, size[0]), max(1, size[1])
    steps = min(height, 128)
    strip = Image.frombytes("RGB", (1, steps), bytes(channel for step in ramp(stops, steps) for channel in step))
    return strip.resize((1, height), Image.Resampling.BILINEAR).resize((width, height), Image.Resampling.NEAREST)


def fade(size: Size, start: int, end: int, power: float = 1.0) -> Image.Image:
    """Greys from one value at the top to another at the bottom."""
    height = max(1, size[1])
    values = (start + (end - start) * (row / max(1, height - 1)) ** power for row in range(height))
    strip = Image.frombytes("L", (1, height), bytes(round(value) for value in values))
    return strip.resize((max(1, size[0]), height), Image.Resampling.NEAREST)


def noise(chance: random.Random, size: Size, cell: Point, octaves: int = 3, *, tiled: bool = False) -> Image.Image:
    """Cloudy greys; `cell` is the size of the largest structure; tiled noise meets itself left and right."""
    # Nothing is smaller than the last octave's cells, so it is made small and enlarged at the end.
    shrink = max(1, min(8, int(min(cell) / 2 ** (octaves - 1) / 3)))
    width, height = (max(1, math.ceil(side / shrink)) for side in size)
    total = Image.new("L", (width, height), 128)
    for octave in range(octaves):
        across, down = (
            max(2, math.ceil(side / max(1.0, step / 2**octave)) + 1) for side, step in zip(size, cell, strict=True)
        )
        grid = Image.frombytes("L", (across, down), chance.randbytes(across * down))
        if tiled:
            grid.paste(grid.crop((0, 0, 1, down)), (across - 1, 0))
        layer = grid.resize((width, height), Image.Resampling.BICUBIC, box=(0.5, 0.5, across - 0.5, down - 0.5))
        total = Image.blend(total, layer, 0.5 ** (octave + 0.6) if octave else 1.0)
    return total if shrink == 1 else total.resize((max(1, size[0]), max(1, size[1])), Image.Resampling.BICUBIC)


def curve(low: float, high: float, most: int = 255, power: float = 1.0) -> list[int]:
    """A table for `Image.point`: nothing below `low`, `most` above `high`, a smooth way between."""
    table = []
    for value in range(256):
        share = min(1.0, max(0.0, (value - low) / (high - low)))
        table.append(round(most * (share * share * (3 - 2 * share)) ** power))
    return table


def tint(mask: Image.Image, colour: Colour | Image.Image) -> Image.Image:
    """A mask filled with a colour, or with a picture of the same size."""
    filled = colour if isinstance(colour, Image.Image) else Image.new("RGB", mask.size, colour)
    image = filled.convert("RGBA")
    image.putalpha(mask)
    return image


def cut(mask: Image.Image, colours: Colour | Image.Image, motion: Motion = STILL) -> Layer:
    """A layer of the part that shows only, so that everything after costs less."""
    box = mask.getbbox() or (0, 0, 1, 1)
    part = colours.crop(box) if isinstance(colours, Image.Image) else colours
    return Layer(tint(mask.crop(box), part), box[0], box[1], motion)


def silhouette(points: Sequence[Point], size: Size) -> Image.Image:
    """A mask of a polygon with smooth edges."""
    large = Image.new("L", (size[0] * SMOOTH, size[1] * SMOOTH))
    ImageDraw.Draw(large).polygon([(x * SMOOTH, y * SMOOTH) for x, y in points], fill=255)
    return large.reduce(SMOOTH)


def drawn(size: Size, draw: Callable[[ImageDraw.ImageDraw, float], None], smooth: int = SMOOTH) -> Image.Image:
    """A mask that a function draws, larger and then reduced."""
    large = Image.new("L", (max(1, size[0]) * smooth, max(1, size[1]) * smooth))
    draw(ImageDraw.Draw(large), smooth)
    return large.reduce(smooth)


def blurred(size: Size, draw: Callable[[ImageDraw.ImageDraw, float], None], softness: float) -> Image.Image:
    """A mask that a function draws, smaller and then enlarged, which blurs it for nothing."""
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
    """Light that fades evenly from the middle to the rim."""
    side = max(1, diameter)
    mask = _halo(power).resize((side, side), Image.Resampling.BICUBIC)
    return mask if strength >= 1 else mask.point([round(value * strength) for value in range(256)])


def glow(centre: Point, radius: float, colour: Colour, strength: float, motion: Motion = STILL) -> Layer:
    mask = halo(round(radius * 2), 2.2, strength)
    return Layer(tint(mask, colour), round(centre[0] - radius), round(centre[1] - radius), motion)


def ridge(chance: random.Random, steps: int, roughness: float) -> list[float]:
    """Heights between 0 and 1 along a line, by midpoint displacement."""
    heights = [chance.random(), chance.random()]
    swing = 0.5
    while len(heights) < steps:
        between = [(one + other) / 2 + (chance.random() - 0.5) * swing * 2 for one, other in pairwise(heights)]
        heights = [height for pair in zip(heights, between, strict=False) for height in pair] + [heights[-1]]
        swing *= roughness
    low, high = min(heights), max(heights)
    return [(height - low) / max(0.001, high - low) for height in heights]


def swell(chance: random.Random, steps: int, waves: float) -> list[float]:
    """Heights between 0 and 1 along a line, rolling like hills."""
    parts = [
        (waves * factor, chance.random() * math.tau, weight) for factor, weight in ((1, 1.0), (2.1, 0.4), (3.7, 0.15))
    ]
    line = [
        sum(weight * math.sin(math.tau * rate * step / steps + start) for rate, start, weight in parts)
        for step in range(steps + 1)
    ]
    low, high = min(line), max(line)
    return [(height - low) / max(0.001, high - low) for height in line]


def outline(line: Sequence[float], size: Size, base: float, height: float) -> list[Point]:
    """A line of heights as the polygon of the land below it."""
    step = size[0] / (len(line) - 1)
    points: list[Point] = [(index * step, base - value * height) for index, value in enumerate(line)]
    return [(-2, size[1] + 2), (-2, points[0][1]), *points, (size[0] + 2, points[-1][1]), (size[0] + 2, size[1] + 2)]


def finish(image: Image.Image, chance: random.Random, grain: float = 0.045, vignette: float = 0.16) -> Image.Image:
    """Darker corners and the fine grain of paper, which also hides the steps of gradients."""
    corners = Image.radial_gradient("L").resize(image.size, Image.Resampling.BICUBIC)
    shade = corners.point([255 - round(255 * vignette * (value / 255) ** 2.4) for value in range(256)])
    image = ImageChops.multiply(image, Image.merge("RGB", (shade, shade, shade)))
    speckle = Image.frombytes("L", image.size, chance.randbytes(image.width * image.height))
    paper = noise(chance, image.size, (image.width / 90, image.height / 90), 2)
    texture = Image.blend(speckle, paper, 0.35)
    return ImageChops.overlay(image, _greyed(texture, grain))


def _greyed(texture: Image.Image, strength: float) -> Image.Image:
    calm = texture.point([round(128 + (value - 128) * strength * 2) for value in range(256)])
    return Image.merge("RGB", (calm, calm, calm))


def volume(image: Image.Image, strength: float = 0.35, towards: Point = (-0.5, -0.7)) -> Image.Image:
    """Shade a flat RGBA drawing as if light came from one side, by its own outline."""
    alpha = image.getchannel("A")
    reach = max(2, round(min(image.size) * 0.12))
    soft = alpha.filter(ImageFilter.BoxBlur(reach)).filter(ImageFilter.BoxBlur(reach))
    # Where the outline, moved towards the light, no longer covers the form, it turns away; and the other way round.
    dark = ImageChops.subtract(alpha, _moved(soft, towards[0] * reach, towards[1] * reach))
    light = ImageChops.subtract(alpha, _moved(soft, -towards[0] * reach, -towards[1] * reach))
    shaded = image.copy()
    shaded.paste((20, 16, 48), mask=dark.point([round(value * strength) for value in range(256)]))
    shaded.paste((255, 246, 225), mask=light.point([round(value * strength * 0.45) for value in range(256)]))
    shaded.putalpha(alpha)
    return shaded


def _moved(mask: Image.Image, right: float, down: float) -> Image.Image:
    """Moved without coming back on the other side; what comes in is as the edge was."""
    x, y = round(right), round(down)
    moved = ImageChops.offset(mask, x, y)
    width, height = mask.size
    if y < 0:
        moved.paste(moved.crop((0, height + y - 1, width, height + y)).resize((width, -y)), (0, height + y))
    elif y > 0:
        moved.paste(0, (0, 0, width, y))
    moved.paste(0, (width + x, 0, width, height) if x < 0 else (0, 0, x, height))
    return moved
