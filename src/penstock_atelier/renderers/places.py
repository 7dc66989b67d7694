"""Draw deserts, cities, the sea floor and space."""

from __future__ import annotations

import math
import random

from PIL import Image, ImageChops, ImageDraw

from penstock_atelier.renderers.canvas import (
    Layer,
    Motion,
    Point,
    Size,
    cut_layer,
    draw_mask,
    draw_soft_mask,
    fade_mask,
    gradient,
    halo,
    hill_line,
    noise,
    outline,
    silhouette,
    tint,
    tone_curve,
)
from penstock_atelier.renderers.land import Ground
from penstock_atelier.renderers.palette import Colour, lighten, mix


def desert(ground: Ground, rng: random.Random) -> list[Layer]:
    """Dunes: each has a light side, a dark side and a sharp line between."""
    layers = []
    for number in range(4):
        depth = (number + 0.7) / 4
        base = ground.horizon + (ground.height - ground.horizon) * 0.8 * depth**1.3
        rise = ground.height * (0.07 + 0.13 * depth)
        line = hill_line(rng, 160, rng.uniform(0.5, 1.1))
        points = outline(line, ground.size, base, rise)
        mask = silhouette(points, ground.size)
        tone = mix(mix(ground.palette.far, ground.palette.near, depth * 0.6), ground.palette.light, 0.3 * (1 - depth))
        colours = Image.new("RGB", ground.size, tone)
        top = max(0, round(base - rise))
        colours.paste(gradient((lighten(tone, 0.06), tone), (ground.width, max(2, ground.height - top))), (0, top))
        colours.paste(lighten(tone, -0.15), mask=_dune_shadow(points, rise, ground, rng))
        layers.append(ground.layer(mask, colours, 0.15 + 0.6 * depth))
    return layers


def _dune_shadow(points: list[Point], rise: float, ground: Ground, rng: random.Random) -> Image.Image:
    """A mask of the dark sides: everything behind a curved edge that runs down from each crest."""
    crest = [point for point in points if 0 <= point[0] <= ground.width]
    tops = [i for i in range(6, len(crest) - 6) if crest[i][1] == min(y for _, y in crest[i - 6 : i + 7])]
    direction = 1 if ground.lit_from_left else -1
    sheet = Image.new("L", (ground.width * 2, ground.height * 2))
    draw = ImageDraw.Draw(sheet)
    for top in tops:
        x, y = crest[top]
        lean = rng.uniform(0.5, 1.4)
        edge = [
            (x + direction * rise * lean * (math.sin(share * 2.6) * 0.7 - share * 1.1), y + share**1.1 * rise * 2.6)
            for share in (step / 14 for step in range(15))
        ]
        slope = [crest[index] for index in (range(top, len(crest)) if direction > 0 else range(top, -1, -1))]
        shape = [*edge[::-1], *slope, (slope[-1][0], ground.height + 2)]
        draw.polygon([(px * 2, py * 2) for px, py in shape], fill=255)
    fading = Image.new("L", ground.size)
    start = max(0, round(min(y for _, y in crest)))
    fading.paste(fade_mask((ground.width, max(2, round(rise * 3))), 235, 0, 0.8), (0, start))
    return ImageChops.multiply(sheet.reduce(2), fading)


def city(ground: Ground, rng: random.Random) -> list[Layer]:
    """Three rows of houses down to the water's edge."""
    layers = []
    for number in range(3):
        depth = (number + 0.5) / 3
        layers += _row_of_houses(ground, rng, depth, ground.horizon + ground.height * 0.012 * (number - 1))
    return layers


def _row_of_houses(ground: Ground, rng: random.Random, depth: float, base: float) -> list[Layer]:
    tone = mix(ground.palette.far, mix(ground.palette.near, ground.palette.sky[0], 0.25), depth)
    blocks: list[tuple[float, float, float, int]] = []
    x = -ground.width * 0.02
    while x < ground.width:
        wide = ground.width * rng.uniform(0.035, 0.085) * (0.7 + 0.6 * depth)
        middle = 1 - abs((x + wide / 2) / ground.width - 0.5) * 1.3
        tall = ground.height * rng.uniform(0.12, 0.5) * (0.35 + 0.65 * middle) * (1.05 - 0.35 * depth)
        blocks.append((x, wide, tall, rng.randrange(5)))
        x += wide * rng.uniform(0.82, 1.08)

    def build(draw: ImageDraw.ImageDraw, scale: float) -> None:
        for left, wide, tall, kind in blocks:
            top = base - tall
            draw.rectangle((left * scale, top * scale, (left + wide) * scale, ground.height * scale), fill=255)
            centre = (left + wide / 2) * scale
            if kind == 0:
                draw.polygon(
                    [
                        (left * scale, top * scale),
                        (centre, (top - wide * 0.5) * scale),
                        ((left + wide) * scale, top * scale),
                    ],
                    fill=255,
                )
            elif kind == 1:
                draw.rectangle(
                    (
                        centre - wide * 0.03 * scale,
                        (top - wide * 0.9) * scale,
                        centre + wide * 0.03 * scale,
                        top * scale,
                    ),
                    fill=255,
                )
            elif kind == 2:
                draw.rectangle(
                    ((left + wide * 0.2) * scale, (top - wide * 0.3) * scale, (left + wide * 0.8) * scale, top * scale),
                    fill=255,
                )

    mask = draw_mask(ground.size, build)
    top = max(0, round(base - ground.height * 0.5))
    haze = mix(tone, ground.palette.sky[-1], 0.5 * (1 - depth))
    colours = Image.new("RGB", ground.size, haze)
    colours.paste(gradient((lighten(tone, 0.03), tone, haze), (ground.width, max(2, round(base) - top))), (0, top))
    _windows(colours, ground, blocks, base, depth, rng)
    return [ground.layer(mask, colours, 0.1 + 0.6 * depth)]


def _windows(
    colours: Image.Image,
    ground: Ground,
    blocks: list[tuple[float, float, float, int]],
    base: float,
    depth: float,
    rng: random.Random,
) -> None:
    if depth < 0.3:
        return
    draw = ImageDraw.Draw(colours)
    glass = mix(ground.palette.near, ground.palette.sky[1], 0.55)
    lit_share = 0.45 if ground.palette.dark or ground.palette.near[0] < 40 else 0.12
    warm: tuple[Colour, ...] = (
        mix(ground.palette.light, (255, 190, 90), 0.5),
        ground.palette.light,
        ground.palette.accents[0],
    )
    pane = max(2.0, ground.width * 0.006 * (0.8 + depth * 0.5))
    for left, wide, tall, _ in blocks:
        columns = max(1, int(wide / (pane * 2)))
        gap = wide / columns
        for row in range(int(tall / (pane * 2.6))):
            for place in range(columns):
                draw_value = rng.random()
                if draw_value > 0.82:
                    continue
                x, y = left + gap * (place + 0.5) - pane / 2, base - tall + pane * 1.6 + row * pane * 2.6
                colour = (
                    warm[0 if draw_value < lit_share * 0.7 else 1 if draw_value < lit_share * 0.95 else 2]
                    if draw_value < lit_share
                    else glass
                )
                draw.rectangle((x, y, x + pane, y + pane * 1.4), fill=colour)


def underwater(ground: Ground, rng: random.Random) -> list[Layer]:
    """Rays from above, the floor with corals and weeds, and bubbles."""
    width, height = ground.size
    layers = [Layer(gradient(tuple(reversed(ground.palette.sky)), ground.size).convert("RGBA"))]
    for number in range(3):
        beams = [(width * rng.uniform(-0.1, 1.1), width * rng.uniform(0.02, 0.07)) for _ in range(4)]

        def shine(draw: ImageDraw.ImageDraw, scale: float, beams: list[tuple[float, float]] = beams) -> None:
            for x, wide in beams:
                shape = [(x, -5), (x + wide, -5), (x + wide * 3.2 - width * 0.18, height), (x - width * 0.18, height)]
                draw.polygon([(px * scale, py * scale) for px, py in shape], fill=95)

        mask = ImageChops.multiply(draw_soft_mask(ground.size, shine, width / 120), fade_mask(ground.size, 220, 0, 0.8))
        motion = Motion(sway=(0.03, 0), period=6 + number * 2, twinkle=0.4, phase=number / 3)
        layers.append(Layer(tint(mask, ground.palette.light), motion=motion))
    for number in range(3):
        depth = (number + 1) / 3
        base = height * (0.82 + 0.12 * depth)
        tone = mix(ground.palette.far, ground.palette.near, depth * 0.9)
        mask = silhouette(outline(hill_line(rng, 80, 1.3), ground.size, base, height * 0.1), ground.size)
        layers += _weeds(ground, base, depth, rng)
        layers.append(ground.layer(mask, gradient((lighten(tone, 0.05), tone), ground.size), 0.2 + 0.6 * depth))
    return [*layers, *_bubbles(ground.size, ground.palette.light, rng)]


def _weeds(ground: Ground, base: float, depth: float, rng: random.Random) -> list[Layer]:
    layers = []
    for number in range(3):
        colour = mix(
            ground.palette.accents[number % len(ground.palette.accents)], ground.palette.far, 0.75 - 0.55 * depth
        )
        plants = [
            (
                rng.random() * ground.width,
                ground.height * rng.uniform(0.08, 0.24) * (0.5 + depth),
                rng.uniform(-0.3, 0.3),
                rng.randrange(2),
            )
            for _ in range(4)
        ]

        def grow(
            draw: ImageDraw.ImageDraw, scale: float, plants: list[tuple[float, float, float, int]] = plants
        ) -> None:
            for x, tall, lean, kind in plants:
                if kind:
                    _coral(
                        draw,
                        (x * scale, base * scale),
                        tall * scale * 0.34,
                        -math.pi / 2 + lean,
                        tall * 0.09 * scale,
                        5,
                    )
                else:
                    line = [
                        ((x + math.sin(s / 3 + lean * 9) * tall * 0.06) * scale, (base - tall * s / 12) * scale)
                        for s in range(13)
                    ]
                    draw.line(line, fill=255, width=max(1, round(tall * 0.05 * scale)), joint="curve")

        motion = Motion(depth=0.2 + 0.6 * depth, sway=(0.006, 0), period=4 + number, phase=number / 3)
        layers.append(cut_layer(draw_mask(ground.size, grow), colour, motion))
    return layers


def _coral(draw: ImageDraw.ImageDraw, at: Point, length: float, angle: float, thick: float, depth: int) -> None:
    end = at[0] + math.cos(angle) * length, at[1] + math.sin(angle) * length
    draw.line((*at, *end), fill=255, width=max(1, round(thick)))
    draw.ellipse((end[0] - thick / 2, end[1] - thick / 2, end[0] + thick / 2, end[1] + thick / 2), fill=255)
    if depth > 1:
        for turn in (-0.5, 0.45):
            _coral(draw, end, length * 0.74, angle + turn, thick * 0.72, depth - 1)


def _bubbles(size: Size, colour: Colour, rng: random.Random) -> list[Layer]:
    layers = []
    for number in range(2):
        rings = [
            (rng.random() * size[0], rng.random() * size[1], min(size) * rng.uniform(0.003, 0.013)) for _ in range(26)
        ]

        def rise(draw: ImageDraw.ImageDraw, scale: float, rings: list[tuple[float, float, float]] = rings) -> None:
            for x, y, radius in rings:
                box = ((x - radius) * scale, (y - radius) * scale, (x + radius) * scale, (y + radius) * scale)
                draw.ellipse(box, fill=45, outline=170, width=max(1, round(radius * 0.18 * scale)))

        motion = Motion(drift=(0, -0.05 - 0.04 * number), sway=(0.004, 0), period=2.5, wraps=True)
        layers.append(Layer(tint(draw_mask(size, rise), colour), motion=motion))
    return layers


def space(ground: Ground, rng: random.Random) -> list[Layer]:
    """Clouds of gas and two planets."""
    size = ground.size
    layers = []
    for number, colour in enumerate((*ground.palette.accents[:2], ground.palette.accents[3])):
        gas = noise(rng, size, (size[0] * 0.6, size[1] * 0.6), 6).point(tone_curve(105, 235, 165))
        region = halo(256, 1.1).resize((round(size[0] * 1.1), round(size[1] * 0.9)), Image.Resampling.BICUBIC)
        sheet = Image.new("L", size)
        sheet.paste(region, (round(size[0] * rng.uniform(-0.4, 0.3)), round(size[1] * rng.uniform(-0.2, 0.3))))
        mask = ImageChops.multiply(gas, sheet)
        motion = Motion(depth=0.1 + 0.1 * number, sway=(0.01, 0.004), period=11 + 3 * number)
        layers.append(Layer(tint(mask, mix(colour, ground.palette.sky[2], 0.25)), motion=motion))
    big = min(size) * rng.uniform(0.16, 0.24)
    layers.append(_planet(ground, (size[0] * rng.uniform(0.55, 0.75), size[1] * rng.uniform(0.4, 0.66)), big, 0, rng))
    layers.append(
        _planet(ground, (size[0] * rng.uniform(0.12, 0.3), size[1] * rng.uniform(0.15, 0.35)), big * 0.3, 1, rng)
    )
    return layers


def _planet(ground: Ground, centre: Point, radius: float, number: int, rng: random.Random) -> Layer:
    side = math.ceil(radius * 2)
    base = ground.palette.accents[number]
    bands = tuple(
        mix(base, mix(ground.palette.accents[(number + step) % 4], ground.palette.sky[3], 0.4), 0.45 * (step % 2))
        for step in range(9)
    )
    face = gradient(bands, (side, side)).rotate(-18, Image.Resampling.BICUBIC, fillcolor=bands[0])
    swirl = noise(rng, (side, side), (side * 0.9, side * 0.09), 4).point(tone_curve(100, 210, 110)).rotate(-18)
    face.paste(lighten(base, 0.12), mask=swirl)
    shade = Image.new("L", (side, side), 225)
    reach = round(side * 1.5)
    shade.paste(0, (round(-side * 0.42), round(-side * 0.5)), halo(reach, 0.9))
    face.paste(ground.palette.sky[0], mask=shade)

    def disc(draw: ImageDraw.ImageDraw, scale: float) -> None:
        draw.ellipse((0, 0, side * scale - 1, side * scale - 1), fill=255)

    planet = tint(draw_mask((side, side), disc, 3), face)
    if number == 0:
        planet = _add_ring(planet, ground, side)
    left, top = round(centre[0] - planet.width / 2), round(centre[1] - planet.height / 2)
    return Layer(planet, left, top, Motion(depth=0.3 + 0.2 * (1 - number), sway=(0.004, 0.004), period=9))


def _add_ring(planet: Image.Image, ground: Ground, side: int) -> Image.Image:
    wide, tall = round(side * 2.1), round(side * 1.1)

    def ring(draw: ImageDraw.ImageDraw, scale: float) -> None:
        for step, grey in enumerate((150, 90, 190, 60, 120)):
            inset = side * (0.05 + 0.045 * step)
            box = (
                inset * scale,
                (tall * 0.36 + inset * 0.22) * scale,
                (wide - inset) * scale,
                (tall * 0.64 - inset * 0.22) * scale,
            )
            draw.ellipse(box, outline=grey, width=max(1, round(side * 0.028 * scale)))

    mask = draw_mask((wide, tall), ring).rotate(-14, Image.Resampling.BICUBIC)
    hoop = tint(mask, mix(ground.palette.light, ground.palette.accents[0], 0.35))
    whole = Image.new("RGBA", (wide, tall))
    whole.alpha_composite(planet, ((wide - side) // 2, (tall - side) // 2))
    front = hoop.copy()
    front_half = Image.new("L", (wide, tall))
    ImageDraw.Draw(front_half).polygon([(0, tall * 0.36), (wide, tall * 0.62), (wide, tall), (0, tall)], fill=255)
    front.putalpha(ImageChops.multiply(hoop.getchannel("A"), front_half))
    behind = hoop.copy()
    behind.putalpha(
        ImageChops.subtract(
            ImageChops.multiply(hoop.getchannel("A"), ImageChops.invert(front_half)), whole.getchannel("A")
        )
    )
    whole.alpha_composite(behind)
    whole.alpha_composite(front)
    return whole
