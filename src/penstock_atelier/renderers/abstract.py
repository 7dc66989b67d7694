"""Draw abstract images: flow lines, mosaics, geometric tiles, circles, paper layers and petals."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import replace

from PIL import Image, ImageDraw

from penstock_atelier.renderers.canvas import (
    Layer,
    Motion,
    Point,
    Scene,
    Size,
    cut_layer,
    draw_mask,
    gradient,
    hill_line,
    noise,
    outline,
    silhouette,
    tint,
    tone_curve,
)
from penstock_atelier.renderers.palette import Colour, Palette, lighten, mix

Composer = Callable[[Palette, Size, random.Random], list[Layer]]


def compose(kind: str | None, palette: Palette, size: Size, rng: random.Random) -> Scene:
    """A scene of this kind; without one, a kind by chance."""
    name = kind or rng.choice(sorted(COMPOSERS))
    return Scene(*size, tuple(COMPOSERS[name](palette, size, rng)))


def _strong_colours(palette: Palette) -> tuple[Colour, ...]:
    """The palette's strong colours, without those that are nearly white."""
    return (*palette.accents[:2], palette.water, palette.sky[1], palette.sky[2], palette.accents[3], palette.leaf)


def flow(palette: Palette, size: Size, rng: random.Random) -> list[Layer]:
    """Strokes that follow the directions of a noise field."""
    width, height = size
    ground = palette.sky[0] if palette.dark or rng.random() < 0.5 else palette.accents[2]
    layers = [Layer(gradient((ground, mix(ground, palette.sky[2], 0.25)), size).convert("RGBA"))]
    across = 48
    field = noise(rng, (across, across), (across * 0.7, across * 0.7), 3).tobytes()
    turns = rng.uniform(1.2, 2.2)
    unit = min(size)
    for number, colour in enumerate(_strong_colours(palette)):
        strokes = []
        for _ in range(70):
            x, y = rng.uniform(-0.1, 1.1) * width, rng.uniform(-0.1, 1.1) * height
            line: list[Point] = []
            for _ in range(rng.randint(14, 34)):
                column_index = min(across - 1, max(0, int(x / width * across)))
                row = min(across - 1, max(0, int(y / height * across)))
                angle = field[row * across + column_index] / 255 * math.tau * turns
                x, y = x + math.cos(angle) * unit * 0.016, y + math.sin(angle) * unit * 0.016
                line.append((x, y))
            strokes.append((line, unit * rng.choice((0.002, 0.004, 0.004, 0.008, 0.014))))

        def sweep(draw: ImageDraw.ImageDraw, scale: float, strokes: list[tuple[list[Point], float]] = strokes) -> None:
            for line, thick in strokes:
                wide = max(1, round(thick * scale))
                draw.line([(px * scale, py * scale) for px, py in line], fill=235, width=wide, joint="curve")
                for px, py in (line[0], line[-1]):
                    reach = wide / 2
                    draw.ellipse(
                        (px * scale - reach, py * scale - reach, px * scale + reach, py * scale + reach), fill=235
                    )

        tone = lighten(colour, rng.uniform(-0.04, 0.06))
        motion = Motion(depth=0.1 * number, sway=(0.008, 0.005), period=6 + number, phase=number / 7)
        layers.append(cut_layer(draw_mask(size, sweep), tone, motion))
    return layers


def mosaic(palette: Palette, size: Size, rng: random.Random) -> list[Layer]:
    """A net of triangles in slightly different tones."""
    width, height = size
    cell = min(size) / rng.randint(7, 11)
    columns, rows = math.ceil(width / cell) + 2, math.ceil(height / cell) + 2
    net = [
        [
            ((x - 0.5 + rng.uniform(-0.38, 0.38)) * cell, (y - 0.5 + rng.uniform(-0.38, 0.38)) * cell)
            for x in range(columns)
        ]
        for y in range(rows)
    ]
    stops = tuple(reversed((*palette.sky, palette.accents[1], palette.accents[0])))
    sheet = Image.new("RGB", (width * 2, height * 2), palette.sky[1])
    draw = ImageDraw.Draw(sheet)
    tilt = rng.uniform(-0.5, 0.5)
    for y in range(rows - 1):
        for x in range(columns - 1):
            corners = net[y][x], net[y][x + 1], net[y + 1][x + 1], net[y + 1][x]
            halves = ((0, 1, 2), (0, 2, 3)) if rng.random() < 0.5 else ((0, 1, 3), (1, 2, 3))
            for half in halves:
                shape = [corners[index] for index in half]
                middle = sum(py for _, py in shape) / 3 / height + tilt * (sum(px for px, _ in shape) / 3 / width - 0.5)
                position = min(0.999, max(0.0, middle + rng.uniform(-0.09, 0.09))) * (len(stops) - 1)
                colour = mix(stops[int(position)], stops[int(position) + 1], position % 1)
                colour = lighten(colour, rng.uniform(-0.05, 0.05))
                draw.polygon([(px * 2, py * 2) for px, py in shape], fill=colour)
    return [Layer(sheet.reduce(2).convert("RGBA")), *_gleam(palette, size, rng)]


def _gleam(palette: Palette, size: Size, rng: random.Random) -> list[Layer]:
    """Soft light that moves slowly over the image."""
    layers = []
    for number in range(2):
        light = noise(rng, size, (size[0] * 0.7, size[1] * 0.7), 2, tiled=True).point(tone_curve(120, 230, 70))
        motion = Motion(drift=(0.03 * (1 - 2 * number), 0), wraps=True)
        layers.append(Layer(tint(light, palette.light), motion=motion))
    return layers


def bauhaus(palette: Palette, size: Size, rng: random.Random) -> list[Layer]:
    """Quarter circles, half circles, dots and stripes on a grid."""
    width, height = size
    paper = palette.accents[2] if not palette.dark else palette.sky[0]
    cell = min(size) / rng.choice((4, 5, 6))
    colours = [*_strong_colours(palette), palette.sky[0], palette.accents[0]]
    sheet = Image.new("RGB", (width * 2, height * 2), paper)
    draw = ImageDraw.Draw(sheet)
    left, top = (width % cell) / 2 - cell, (height % cell) / 2 - cell
    for row in range(math.ceil(height / cell) + 2):
        for place in range(math.ceil(width / cell) + 2):
            box = ((left + place * cell) * 2, (top + row * cell) * 2, cell * 2)
            ground, figure = rng.sample(colours, 2)
            _tile(draw, box, (mix(ground, paper, rng.choice((0, 0, 0.55, 1))), figure), rng)
    return [Layer(sheet.reduce(2).convert("RGBA")), *_turning_figures(palette, size, cell, rng)]


def _tile(
    draw: ImageDraw.ImageDraw,
    box: tuple[float, float, float],
    colours: tuple[Colour, Colour],
    rng: random.Random,
) -> None:
    x, y, side = box
    ground, figure = colours
    draw.rectangle((x, y, x + side, y + side), fill=ground)
    kind = rng.randrange(6)
    if kind == 0:
        corner_x, corner_y = x - side * rng.randrange(2), y - side * rng.randrange(2)
        start = {(True, True): 0, (False, True): 90, (False, False): 180, (True, False): 270}[
            corner_x < x, corner_y < y
        ]
        draw.pieslice((corner_x, corner_y, corner_x + 2 * side, corner_y + 2 * side), start, start + 90, fill=figure)
    elif kind == 1:
        turn = rng.choice((0, 90, 180, 270))
        draw.pieslice(
            (x + side * 0.08, y + side * 0.08, x + side * 0.92, y + side * 0.92), turn, turn + 180, fill=figure
        )
    elif kind == 2:
        for inset, tone in ((0.1, figure), (0.26, ground), (0.38, figure)):
            draw.ellipse(
                (x + side * inset, y + side * inset, x + side * (1 - inset), y + side * (1 - inset)), fill=tone
            )
    elif kind == 3:
        for stripe in range(5):
            draw.rectangle((x, y + side * stripe / 5, x + side, y + side * (stripe + 0.5) / 5), fill=figure)
    elif kind == 4:
        draw.polygon([(x, y + side), (x + side, y + side), (x + side * rng.randrange(2), y)], fill=figure)
    else:
        for spot in range(9):
            cx, cy = x + side * (spot % 3 + 0.5) / 3, y + side * (spot // 3 + 0.5) / 3
            draw.ellipse((cx - side * 0.08, cy - side * 0.08, cx + side * 0.08, cy + side * 0.08), fill=figure)


def _turning_figures(palette: Palette, size: Size, cell: float, rng: random.Random) -> list[Layer]:
    """Two large figures above the grid; in a video they turn."""
    layers = []
    for number in range(2):
        side = max(2, round(cell * rng.uniform(1.1, 1.7)))
        arms = rng.choice((3, 4, 6))

        def star(draw: ImageDraw.ImageDraw, scale: float, side: int = side, arms: int = arms) -> None:
            whole = side * scale
            for arm in range(arms):
                start = 360 * arm / arms
                draw.pieslice((0, 0, whole - 1, whole - 1), start, start + 180 / arms, fill=255)
            draw.ellipse((whole * 0.38, whole * 0.38, whole * 0.62, whole * 0.62), fill=255)

        x, y = rng.uniform(0.1, 0.8) * size[0], rng.uniform(0.1, 0.8) * size[1]
        motion = Motion(depth=0.5, spin=0.06 * (1 - 2 * number))
        layers.append(
            Layer(tint(draw_mask((side, side), star, 3), palette.accents[number]), round(x), round(y), motion)
        )
    return layers


def circles(palette: Palette, size: Size, rng: random.Random) -> list[Layer]:
    """Discs of many sizes that do not touch each other."""
    width, height = size
    ground = palette.accents[2] if not palette.dark else palette.sky[0]
    layers = [Layer(gradient((ground, mix(ground, palette.sky[-2], 0.35)), size).convert("RGBA"))]
    unit = min(size)
    discs: list[tuple[float, float, float]] = []
    for attempt in range(900):
        x, y = rng.random() * width, rng.random() * height
        room = min((math.hypot(x - cx, y - cy) - r for cx, cy, r in discs), default=unit * 0.2) - unit * 0.006
        if room > unit * 0.008:
            discs.append((x, y, min(room, unit * (0.16 if attempt < 12 else 0.09))))
    colours = _strong_colours(palette)
    for number, colour in enumerate(colours):
        own_discs = discs[number :: len(colours)]

        def fill(
            draw: ImageDraw.ImageDraw, scale: float, own_discs: list[tuple[float, float, float]] = own_discs
        ) -> None:
            for index, (x, y, radius) in enumerate(own_discs):
                for inset, value in ((1.0, 255), (0.66, 0), (0.42, 255)) if index % 3 == 0 else ((1.0, 255),):
                    reach = radius * inset * scale
                    draw.ellipse(
                        (x * scale - reach, y * scale - reach, x * scale + reach, y * scale + reach), fill=value
                    )

        motion = Motion(depth=0.08 * number, sway=(0.006, 0.01), period=5 + number * 0.7, phase=number / 7)
        layers.append(cut_layer(draw_mask(size, fill), colour, motion))
    return layers


def strata(palette: Palette, size: Size, rng: random.Random) -> list[Layer]:
    """Layers of paper with curved edges, each with a shadow on the one below."""
    width, height = size
    stops = (*palette.sky[::-1], palette.accents[0], palette.accents[1], palette.near)
    count = 9
    layers = [Layer(gradient(palette.sky[-2:], size).convert("RGBA"))]
    for number in range(count):
        share = (number + 1) / count
        line = hill_line(rng, 90, rng.uniform(0.6, 1.7))
        points = outline(line, size, height * (0.12 + 0.86 * share), height * rng.uniform(0.1, 0.2))
        position = share * (len(stops) - 1) * 0.999
        tone = mix(stops[int(position)], stops[int(position) + 1], position % 1)
        mask = silhouette(points, size)
        motion = Motion(depth=share, sway=(0.012 * (1 - 2 * (number % 2)), 0), period=7 + number, phase=number / count)
        lift = max(1, round(height * 0.008))
        shadow = mask.resize((max(1, width // 8), max(1, height // 8))).resize(size, Image.Resampling.BICUBIC)
        shadow = shadow.point([round(value * 0.32) for value in range(256)])
        below = cut_layer(shadow, lighten(palette.near, -0.12), motion)
        sheet = cut_layer(mask, gradient((lighten(tone, 0.05), lighten(tone, -0.03)), size), motion)
        layers += [replace(below, top=below.top - lift * 2), sheet]
    return layers


def petals(palette: Palette, size: Size, rng: random.Random) -> list[Layer]:
    """Rings of petals around the middle."""
    width, height = size
    ground = palette.sky[0] if rng.random() < 0.6 or palette.dark else palette.accents[2]
    layers = [Layer(gradient((ground, mix(ground, palette.sky[1], 0.4)), size).convert("RGBA"))]
    colours = _strong_colours(palette)
    count = rng.choice((8, 10, 12, 16))
    reach = min(size) * 0.49
    rings = 6
    for ring in range(rings):
        far = reach * (1 - ring / rings)
        colour = lighten(colours[ring % len(colours)], 0.04 if ring % 2 else -0.02)
        plump = rng.uniform(0.6, 1.15)

        def bloom(
            draw: ImageDraw.ImageDraw, scale: float, far: float = far, plump: float = plump, ring: int = ring
        ) -> None:
            middle = reach * scale
            for petal in range(count):
                angle = math.tau * (petal + 0.5 * (ring % 2)) / count
                shape = []
                for step in range(25):
                    turn = math.pi * step / 24
                    along = far * (0.5 - 0.5 * math.cos(turn)) * scale
                    across = math.sin(turn) ** 1.3 * far * math.pi / count * plump * scale
                    shape.append((along, across))
                both = [*shape, *((along, -across) for along, across in reversed(shape))]
                cos, sin = math.cos(angle), math.sin(angle)
                draw.polygon([(middle + a * cos - b * sin, middle + a * sin + b * cos) for a, b in both], fill=232)

        side = math.ceil(reach * 2)
        mask = draw_mask((side, side), bloom)
        shading = gradient((lighten(colour, 0.06), lighten(colour, -0.06)), (side, side))
        motion = Motion(
            spin=0.02 * (1 - 2 * (ring % 2)) if ring >= rings - 2 else 0.0, sway=(0.002, 0.002), period=6 + ring
        )
        layers.append(Layer(tint(mask, shading), round(width / 2 - reach), round(height / 2 - reach), motion))
    return layers


COMPOSERS: dict[str, Composer] = {
    "flow": flow,
    "mosaic": mosaic,
    "bauhaus": bauhaus,
    "circles": circles,
    "strata": strata,
    "petals": petals,
}
