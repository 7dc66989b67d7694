"""Draw trees: conifers, woods across the water, round trees in the colours of the season, leaves at the front."""

from __future__ import annotations

import math
import random

from PIL import Image, ImageChops, ImageDraw

from penstock_atelier.renderers.canvas import (
    Layer,
    Motion,
    Point,
    Size,
    draw_mask,
    gradient,
    hill_line,
    outline,
)
from penstock_atelier.renderers.land import Ground
from penstock_atelier.renderers.palette import Colour, lighten, mix


def forest(ground: Ground, rng: random.Random) -> list[Layer]:
    """Rows of conifers, each nearer, darker and larger than the last, with mist between."""
    layers = []
    rows = 5
    for number in range(rows):
        depth = (number + 0.6) / rows
        base = ground.horizon + (ground.height - ground.horizon) * (depth**1.3 * 0.95 + 0.05)
        tall = ground.height * (0.1 + 0.26 * depth**1.2)
        trees = []
        x = -tall * 0.3
        while x < ground.width + tall * 0.3:
            trees.append((x, base + tall * rng.uniform(-0.05, 0.1), tall * rng.uniform(0.62, 1.1)))
            x += tall * rng.uniform(0.16, 0.42) * (1.3 if number == rows - 1 else 1)
        line = hill_line(rng, 60, 1.2)
        floor = outline(line, ground.size, base + tall * 0.06, tall * 0.1)
        shapes = [pine(*tree, rng) for tree in trees]

        def grow(
            draw: ImageDraw.ImageDraw, scale: float, floor: list[Point] = floor, shapes: list[list[Point]] = shapes
        ) -> None:
            for shape in (floor, *shapes):
                draw.polygon([(px * scale, py * scale) for px, py in shape], fill=255)

        mask = draw_mask(ground.size, grow)
        tone = mix(
            mix(ground.palette.far, ground.palette.near, 0.12 + 0.88 * depth),
            ground.palette.leaf,
            0.3 * (1 - ground.palette.dark),
        )
        tone = lighten(tone, -0.03 * number)
        mist = mix(tone, ground.palette.sky[-1], 0.62 - 0.35 * depth)
        colours = Image.new("RGB", ground.size, mist)
        top = max(0, round(base - tall))
        colours.paste(gradient((tone, tone, mist), (ground.width, max(2, round(base + tall * 0.12) - top))), (0, top))
        if ground.snowy:
            frost = ImageChops.subtract(mask, ImageChops.offset(mask, 0, max(1, round(tall * 0.02))))
            colours.paste((240, 245, 252), mask=frost)
        layers.append(ground.layer(mask, colours, 0.1 + 0.8 * depth))
    return layers


def shore(ground: Ground, rng: random.Random) -> list[Layer]:
    """A few large trees at the left and right, in front of water."""
    shapes = []
    for edge in (0.0, 1.0):
        for number in range(5):
            tall = ground.height * rng.uniform(0.35, 0.62) * (1 - 0.12 * number)
            x = ground.width * (edge + (1 - 2 * edge) * (0.015 + 0.055 * number + rng.uniform(-0.01, 0.01)))
            shapes.append(pine(x, ground.height * 1.03, tall, rng))
    tone = mix(ground.palette.near, ground.palette.leaf, 0.2)
    return [ground.layer(_polygon_mask(shapes, ground.size), lighten(tone, -0.04), 0.95)]


def far_shore(ground: Ground, rng: random.Random) -> list[Layer]:
    """Woods across the water."""
    layers = []
    for number in range(2):
        tall = ground.height * (0.09 + 0.05 * number)
        base = ground.horizon + ground.height * 0.004
        shapes = [outline(hill_line(rng, 60, 1.1), ground.size, base, tall * 0.5)]
        x = -tall
        while x < ground.width + tall:
            shapes.append(pine(x, base - tall * 0.12, tall * rng.uniform(0.5, 1.0), rng))
            x += tall * rng.uniform(0.12, 0.3)
        tone = mix(ground.tone(0.35 + 0.25 * number), ground.palette.leaf, 0.4)
        mask = _polygon_mask(shapes, ground.size)
        mask.paste(0, (0, round(base), *ground.size))
        layers.append(ground.layer(mask, mix(tone, ground.palette.sky[-1], 0.3 - 0.2 * number), 0.15 + 0.1 * number))
    return layers


def _polygon_mask(shapes: list[list[Point]], size: Size) -> Image.Image:
    """A mask of filled polygons."""

    def fill(draw: ImageDraw.ImageDraw, scale: float) -> None:
        for shape in shapes:
            draw.polygon([(px * scale, py * scale) for px, py in shape], fill=255)

    return draw_mask(size, fill)


def grove(ground: Ground, rng: random.Random) -> list[Layer]:
    """Rows of round trees in the colours of the palette."""
    layers = []
    rows = 4
    leaves = (
        ground.palette.leaf,
        ground.palette.accents[0],
        ground.palette.accents[1],
        lighten(ground.palette.leaf, -0.08),
    )
    for number in range(rows):
        depth = (number + 0.7) / rows
        base = ground.horizon + (ground.height - ground.horizon) * (depth**1.3 * 0.92 + 0.05)
        tall = ground.height * (0.12 + 0.24 * depth**1.2)
        top = max(0, round(base - tall * 1.25))
        floor = outline(hill_line(rng, 60, 1.2), ground.size, base + tall * 0.08, tall * 0.12)
        sheet = Image.new("RGBA", (ground.width * 2, (ground.height - top) * 2))
        draw = ImageDraw.Draw(sheet)
        earth = mix(ground.tone(0.25 + 0.7 * depth), ground.palette.sky[-1], 0.3 * (1 - depth))
        draw.polygon([(px * 2, (py - top) * 2) for px, py in floor], fill=earth)
        x = -tall * 0.2
        while x < ground.width + tall * 0.3:
            leaf = mix(rng.choice(leaves), ground.palette.sky[-1], 0.55 * (1 - depth))
            _tree(
                draw,
                (x * 2, (base - top + tall * rng.uniform(0.0, 0.08)) * 2),
                tall * rng.uniform(0.75, 1.1) * 2,
                leaf,
                mix(ground.palette.near, earth, 0.4),
                rng,
            )
            x += tall * rng.uniform(0.3, 0.6)
        layers.append(Layer(sheet.reduce(2), 0, top, Motion(depth=0.1 + 0.8 * depth)))
    return layers


def _tree(draw: ImageDraw.ImageDraw, root: Point, tall: float, leaf: Colour, bark: Colour, rng: random.Random) -> None:
    x, y = root
    draw.polygon(
        [
            (x - tall * 0.03, y),
            (x + tall * 0.03, y),
            (x + tall * 0.012, y - tall * 0.6),
            (x - tall * 0.012, y - tall * 0.6),
        ],
        fill=bark,
    )
    for ring in range(4):
        tone = lighten(leaf, -0.09 + 0.055 * ring)
        for _ in range(9 - ring):
            angle = rng.random() * math.tau
            far = rng.random() ** 0.6 * (0.2 - 0.025 * ring) * tall
            cx, cy = (
                x + math.cos(angle) * far - ring * tall * 0.022,
                y - tall * 0.68 + math.sin(angle) * far * 1.1 - ring * tall * 0.03,
            )
            reach = tall * rng.uniform(0.07, 0.12) * (1 - 0.14 * ring)
            draw.ellipse((cx - reach, cy - reach, cx + reach, cy + reach), fill=tone)


def frond(draw: ImageDraw.ImageDraw, root: Point, tall: float, lean: float) -> None:
    """A stem with leaves on both sides."""
    spine = []
    for step in range(13):
        share = step / 12
        spine.append((root[0] + lean * tall * share**1.7, root[1] - tall * share))
    draw.line(spine, fill=255, width=max(1, round(tall * 0.018)))
    for step in range(2, 13):
        x, y = spine[step]
        length = tall * 0.2 * math.sin(math.pi * (0.18 + 0.8 * step / 13))
        for direction in (-1, 1):
            tip = (x + direction * length + lean * length * 0.6, y - length * 0.55)
            bulge = length * 0.2
            middle = ((x + tip[0]) / 2, (y + tip[1]) / 2)
            draw.polygon(
                [
                    (x, y),
                    (middle[0] - bulge * 0.5, middle[1] - bulge),
                    tip,
                    (middle[0] + bulge * 0.5, middle[1] + bulge),
                ],
                fill=255,
            )


def pine(x: float, base: float, tall: float, rng: random.Random) -> list[Point]:
    """One conifer as a polygon."""
    left: list[Point] = []
    right: list[Point] = []
    steps = 9
    for step in range(steps):
        share = (step + 1) / steps
        y = base - tall + tall * 0.95 * share
        out = tall * 0.2 * share**0.9
        for side, line in ((-1, left), (1, right)):
            wide = out * rng.uniform(0.85, 1.15)
            line += [(x + side * wide, y + tall * 0.02), (x + side * wide * 0.5, y - tall * 0.012)]
    trunk = tall * 0.018
    return [
        (x, base - tall * 1.04),
        *right,
        (x + trunk, base - tall * 0.04),
        (x + trunk, base + tall * 0.06),
        (x - trunk, base + tall * 0.06),
        (x - trunk, base - tall * 0.04),
        *reversed(left),
    ]
