"""Draw what is below the horizon: mountains, hills, flowers and water, from far to near."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

from PIL import Image, ImageChops, ImageDraw

from penstock_atelier.renderers.canvas import (
    Layer,
    Motion,
    Point,
    Size,
    cut_layer,
    draw_mask,
    fade_mask,
    gradient,
    hill_line,
    noise,
    outline,
    ridge_line,
    silhouette,
    tint,
    tone_curve,
)
from penstock_atelier.renderers.palette import Colour, Palette, lighten, mix
from penstock_atelier.renderers.sky import Light

Painter = Callable[["Ground", random.Random], list[Layer]]


class Ground:
    """What every function that draws land needs: palette, size, horizon, light and snow."""

    def __init__(self, palette: Palette, size: Size, horizon: float, light: Light | None, snowy: bool) -> None:
        self.palette = palette
        self.size = size
        self.width, self.height = size
        self.horizon = horizon
        self.light = light
        self.snowy = snowy
        self.lit_from_left = light is None or light.centre[0] < size[0] / 2

    def tone(self, depth: float) -> Colour:
        """The colour of land at a depth: 0 at the horizon, 1 at the front."""
        return mix(self.palette.far, self.palette.near, depth)

    def surface_colour(self, depth: float) -> Colour:
        """The same colour, or white where there is snow."""
        white = mix((246, 249, 253), self.palette.sky[1], 0.12 + 0.3 * depth + 0.35 * self.palette.dark)
        return white if self.snowy else self.tone(depth)

    def layer(self, mask: Image.Image, colours: Image.Image | Colour, depth: float) -> Layer:
        return cut_layer(mask, colours, Motion(depth=depth))


def mountains(ground: Ground, rng: random.Random) -> list[Layer]:
    layers = []
    count = 3
    rock = noise(rng, ground.size, (ground.width * 0.05, ground.height * 0.14), 4).point(tone_curve(110, 200, 70))
    for number in range(count):
        depth = (number + 0.4) / (count + 1.2)
        rise = ground.height * (0.46 - 0.11 * number) * min(1.0, ground.horizon / ground.height * 1.6)
        base = ground.horizon + ground.height * 0.04 * number
        points = outline(_peaks(ground, rng, 4 + 2 * number), ground.size, base, rise)
        mask = silhouette(points, ground.size)
        crest = ground.tone(depth)
        top = max(0, round(base - rise))
        foot = mix(crest, ground.palette.sky[-1], 0.55 - 0.1 * number)
        colours = Image.new("RGB", ground.size, foot)
        colours.paste(gradient((crest, crest, foot), (ground.width, max(2, round(base - top + rise * 0.15)))), (0, top))
        shade = _shadows(points, base, ground, rng)
        fading = Image.new("L", ground.size)
        fading.paste(fade_mask((ground.width, max(2, round(base) - top)), 210, 0), (0, top))
        colours.paste(mix(crest, ground.palette.sky[0], 0.3), mask=ImageChops.multiply(rock, fading))
        colours.paste(mix(crest, ground.palette.sky[0], 0.42), mask=ImageChops.multiply(shade, fading))
        if number == 0 or (number == 1 and ground.snowy):
            white = mix((250, 250, 255), ground.palette.sky[-2], 0.2 + 0.45 * ground.palette.dark)
            caps = Image.new("RGB", ground.size, white)
            caps.paste(mix(white, ground.palette.sky[0], 0.2), mask=rock)
            caps.paste(mix(white, ground.palette.sky[0], 0.38), mask=shade)
            colours.paste(caps, mask=_snow_caps(points, base - rise * (0.15 if ground.snowy else 0.42), ground, rng))
        layers.append(ground.layer(mask, colours, 0.1 + depth * 0.4))
    return layers


def _peaks(ground: Ground, rng: random.Random, count: int) -> list[float]:
    """Heights from 0 to 1: straight slopes from a few summits, made rough."""
    steps = 257
    spread = ground.width / ground.height
    summits = [
        ((place + rng.uniform(0.15, 0.85)) / count, rng.uniform(0.55, 1.0), rng.uniform(1.3, 2.2))
        for place in range(count)
    ]
    rough = ridge_line(rng, steps, 0.6)
    line = []
    for step in range(steps):
        x = step / (steps - 1)
        slopes = (tall - abs(x - at) * spread * steep for at, tall, steep in summits)
        line.append(max(0.05, *slopes) + (rough[step] - 0.5) * 0.2)
    high = max(line)
    return [max(0.0, value / high) for value in line]


def _shadows(points: list[Point], base: float, ground: Ground, rng: random.Random) -> Image.Image:
    """A mask of the mountain sides that face away from the light."""
    sheet = Image.new("L", (ground.width * 2, ground.height * 2))
    draw = ImageDraw.Draw(sheet)
    direction = 1 if ground.lit_from_left else -1
    heights = [y for _, y in points]
    for peak in range(3, len(points) - 3):
        # Only the highest point of its surroundings is a summit; smaller points have no shadow.
        if heights[peak] > min(heights[max(0, peak - 18) : peak + 19]):
            continue
        slope = [points[peak]]
        index = peak + direction
        while 2 < index < len(points) - 3 and points[index][1] > slope[-1][1] - ground.height * 0.008:
            slope.append(points[index])
            index += direction
        x, y = points[peak]
        drop = base - y
        back: list[Point] = []
        for step in range(1, 13):
            share = step / 12
            wander = 0.5 * share * rng.uniform(0.1, 0.9) if step % 2 else 0.22 * share
            back.append((x + direction * drop * (wander - 0.12 * share), y + drop * share))
        shape = [*slope, (slope[-1][0], base), *reversed(back)]
        draw.polygon([(px * 2, py * 2) for px, py in shape], fill=255)
    return sheet.reduce(2)


def _snow_caps(points: list[Point], line: float, ground: Ground, rng: random.Random) -> Image.Image:
    """A mask of the snow from the summits down, with a ragged lower edge."""
    edge: list[Point] = []
    for number, (x, y) in enumerate(points[1:-1:5]):
        deep = max(0.0, line - y)
        reach = rng.uniform(0.5, 0.75) if number % 2 else rng.uniform(0.75, 1.0)
        edge.append((x, y + deep * reach))
    return silhouette([*points[1:-1], *reversed(edge)], ground.size)


def hills(ground: Ground, rng: random.Random) -> list[Layer]:
    layers = []
    count = 4
    for number in range(count):
        depth = (number + 1) / count
        base = ground.horizon + (ground.height - ground.horizon) * 0.75 * depth**1.25
        rise = ground.height * (0.1 + 0.05 * depth)
        points = outline(hill_line(rng, 120, rng.uniform(0.7, 1.5)), ground.size, base, rise)
        mask = silhouette(points, ground.size)
        tone = ground.surface_colour(0.15 + 0.75 * depth)
        colours = _hill_colours(ground, tone, base - rise, rng)
        if number >= 1 and not ground.snowy:
            _furrows(colours, ground, tone, base, rise, rng)
        layers.append(ground.layer(mask, colours, 0.15 + 0.6 * depth))
    return layers


def _hill_colours(ground: Ground, tone: Colour, top: float, rng: random.Random) -> Image.Image:
    """Lighter at the top, darker below, with patches."""
    start = max(0, min(ground.height - 2, round(top)))
    colours = Image.new("RGB", ground.size, tone)
    shading = gradient((lighten(tone, 0.07), tone, lighten(tone, -0.08)), (ground.width, ground.height - start))
    colours.paste(shading, (0, start))
    patches = noise(rng, (ground.width, ground.height - start), (ground.width * 0.35, ground.height * 0.05), 4)
    colours.paste(lighten(tone, 0.05), (0, start), patches.point(tone_curve(110, 220, 150)))
    return colours


def _furrows(colours: Image.Image, ground: Ground, tone: Colour, base: float, rise: float, rng: random.Random) -> None:
    """Draw the rows of a field, which meet in the distance."""
    if rng.random() < 0.45:
        return
    vanish = (ground.width * rng.uniform(0.2, 0.8), base - rise * 1.5)
    dark = lighten(tone, -0.045)
    light = lighten(tone, 0.03)
    sheet = Image.new("L", ground.size)
    draw = ImageDraw.Draw(sheet)
    for row in range(-26, 27):
        x = vanish[0] + row * ground.width * 0.09
        draw.polygon([vanish, (x, ground.height), (x + ground.width * 0.045, ground.height)], fill=120)
    colours.paste(light if ground.palette.dark else dark, mask=sheet)


def flowers(ground: Ground, rng: random.Random) -> list[Layer]:
    """Hills with dots of colour, small and dense far away, larger at the front."""
    layers = hills(ground, rng)
    colours = [*ground.palette.accents[:2], mix(ground.palette.accents[0], (255, 255, 255), 0.5), ground.palette.leaf]
    for number, colour in enumerate(colours):
        dots = []
        for _ in range(420):
            near = rng.random() ** 0.8
            y = ground.horizon + (ground.height - ground.horizon) * (0.3 + 0.7 * near)
            dots.append((rng.random() * ground.width, y, min(ground.size) * (0.001 + 0.0075 * near**2)))

        def bloom(draw: ImageDraw.ImageDraw, scale: float, dots: list[tuple[float, float, float]] = dots) -> None:
            for x, y, radius in dots:
                flat = radius * 0.75
                box = ((x - radius) * scale, (y - flat) * scale, (x + radius) * scale, (y + flat) * scale)
                draw.ellipse(box, fill=225)

        sway = Motion(depth=0.8, sway=(0.003, 0), period=3, phase=number / 4)
        layers.append(cut_layer(draw_mask(ground.size, bloom), colour, sway))
    return layers


def water(ground: Ground, rng: random.Random, *, reflected: Image.Image | None = None) -> list[Layer]:
    """A sea, or a lake when there is an image to reflect."""
    start = round(ground.horizon)
    size = (ground.width, max(2, ground.height - start))
    deep = mix(ground.palette.water, ground.palette.near, 0.45)
    surface = gradient((mix(ground.palette.water, ground.palette.sky[-1], 0.6), ground.palette.water, deep), size)
    if reflected is not None:
        surface = _mirror(reflected, surface, start, size)
    layers = [Layer(surface.convert("RGBA"), 0, start, Motion(depth=0.2))]
    bright = mix(ground.palette.sky[-1], ground.palette.light, 0.5)
    for number in range(3):
        colour = deep if number == 1 else bright
        mask = _ripples(size, rng, 170 - 50 * (reflected is not None), 150 if number != 1 else 110)
        sway = Motion(depth=0.3 + 0.2 * number, sway=(0.012 * (1 - 2 * (number % 2)), 0.002), period=3 + number)
        layers.append(Layer(tint(mask, colour), 0, start, sway))
    if ground.light is not None:
        layers += _glitter(ground.light, size, start, rng)
    return layers


def _mirror(reflected: Image.Image, surface: Image.Image, start: int, size: Size) -> Image.Image:
    """The image above the water, upside down, with its rows shifted like waves."""
    source = reflected.crop((0, max(0, start - round(size[1] * 1.35)), size[0], start))
    flipped = source.transpose(Image.Transpose.FLIP_TOP_BOTTOM).resize(size, Image.Resampling.BILINEAR).convert("RGB")
    shaken = Image.new("RGB", size)
    rows = max(1, size[1] // 150)
    for y in range(0, size[1], rows):
        share = y / size[1]
        shift = round(math.sin(y / size[1] * 90 * (1.2 - share)) * size[0] * 0.006 * (0.25 + share))
        strip = flipped.crop((0, y, size[0], min(size[1], y + rows)))
        shaken.paste(strip, (shift, y))
        if shift:
            shaken.paste(
                strip.crop((0, 0, 1, strip.height)).resize((abs(shift), strip.height)),
                (0 if shift > 0 else size[0] + shift, y),
            )
    return Image.composite(surface, shaken, fade_mask(size, 70, 190))


def _ripples(size: Size, rng: random.Random, count: int, strength: int) -> Image.Image:
    """A mask of flat strokes, thinner and denser towards the horizon."""
    strokes = []
    for _ in range(count):
        near = rng.random() ** 1.6
        length = size[0] * rng.uniform(0.015, 0.06) * (0.35 + 1.6 * near)
        strokes.append((rng.random() * size[0], near * size[1], length, size[1] * (0.0012 + 0.006 * near)))

    def stroke(draw: ImageDraw.ImageDraw, scale: float) -> None:
        for x, y, length, thick in strokes:
            reach = max(0.5, thick)
            box = ((x - length) * scale, (y - reach) * scale, (x + length) * scale, (y + reach) * scale)
            draw.ellipse(box, fill=round(strength * (0.35 + 0.65 * (1 - y / size[1]))))

    return draw_mask(size, stroke)


def _glitter(light: Light, size: Size, start: int, rng: random.Random) -> list[Layer]:
    """Reflections of light on the water below the sun or the moon."""
    layers = []
    for number in range(2):
        sparks = []
        for _ in range(130):
            near = rng.random() ** 1.25
            spread = light.radius * (0.5 + 2.6 * near)
            x = light.centre[0] + rng.gauss(0, 0.45) * spread
            sparks.append(
                (
                    x,
                    near * size[1],
                    light.radius * rng.uniform(0.15, 0.55) * (0.4 + near),
                    size[1] * 0.0035 * (0.4 + near),
                )
            )

        def spark(
            draw: ImageDraw.ImageDraw, scale: float, sparks: list[tuple[float, float, float, float]] = sparks
        ) -> None:
            for x, y, length, thick in sparks:
                box = ((x - length) * scale, (y - thick) * scale, (x + length) * scale, (y + thick) * scale)
                draw.ellipse(box, fill=round(225 - 120 * y / size[1]))

        motion = Motion(depth=0.1, twinkle=0.6, period=1.7 + number * 0.6, phase=number / 2, sway=(0.004, 0))
        layers.append(Layer(tint(draw_mask(size, spark), light.colour), 0, start, motion))
    return layers


def mound(ground: Ground, centre: float, base: float, wide: float, *, rock: bool) -> Layer:
    """A small hill or a rock for something to stand on."""
    line = [max(0.0, 1 - abs(step / 30 - 1) ** (1.3 if rock else 2.0)) for step in range(61)]
    left, tall = centre - wide, wide * (0.24 if rock else 0.2)
    points: list[Point] = [(left + wide * 2 * step / 60, base - value * tall) for step, value in enumerate(line)]
    if rock:
        points = [(x, y + math.sin(index * 2.4) * tall * 0.09) for index, (x, y) in enumerate(points)]
    bottom = base if rock else base + wide * 0.3
    under = [(x, base + (bottom - base) * math.sin(math.pi * step / 60)) for step, (x, _) in enumerate(points)]
    mask = silhouette([*points, *reversed(under)], ground.size)
    tone = mix(ground.palette.near, ground.palette.far, 0.25) if rock else ground.surface_colour(0.6)
    top = max(0, round(base - tall))
    colours = Image.new("RGB", ground.size, tone)
    colours.paste(
        gradient((lighten(tone, 0.08), lighten(tone, -0.05)), (ground.width, max(2, round(bottom) - top))),
        (0, top),
    )
    if not rock:  # its lower edge fades into the field
        melt = Image.new("L", ground.size, 255)
        melt.paste(fade_mask((ground.width, max(2, round(bottom - base) + 1)), 255, 0, 1.2), (0, round(base)))
        mask = ImageChops.multiply(mask, melt)
    return ground.layer(mask, colours, 0.45)
