"""Draw the sky: sun, moon, stars, clouds, aurora, rainbow, birds, fireworks, rain, snow, fog and lightning."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass

from PIL import Image, ImageChops, ImageDraw, ImageFilter

from penstock_atelier.renderers.canvas import (
    Layer,
    Motion,
    Point,
    Size,
    add_shading,
    draw_mask,
    fade_mask,
    glow_layer,
    gradient,
    halo,
    noise,
    tint,
    tone_curve,
)
from penstock_atelier.renderers.palette import Colour, Palette, lighten, mix
from penstock_atelier.renderers.words import Brief


@dataclass(frozen=True, slots=True)
class Light:
    """The sun or the moon; its place decides glows and reflections."""

    centre: Point
    radius: float
    colour: Colour
    is_moon: bool


def choose_light(brief: Brief, palette: Palette, size: Size, horizon: float, rng: random.Random) -> Light | None:
    """The sun or the moon, or None in rain, fog and storm."""
    if brief.has("moon") or (palette.dark and not brief.has("sun")):
        moon = True
    elif brief.has("sun") or not {"storm", "rain", "fog"} & {brief.palette, *(subject.name for subject in brief.sky)}:
        moon = False
    else:
        return None
    width, height = size
    low = {"sunset", "dawn", "golden", "dusk"} & {brief.palette} and not moon
    across = rng.choice((rng.uniform(0.22, 0.38), rng.uniform(0.6, 0.78)))
    up = horizon * (rng.uniform(0.72, 0.9) if low else rng.uniform(0.26, 0.5))
    radius = min(width, height) * rng.uniform(0.045, 0.075) * (1.25 if low else 1.0)
    return Light((width * across, up), radius, palette.light, moon)


def paint_sky(
    brief: Brief, palette: Palette, size: Size, horizon: float, light: Light | None, rng: random.Random
) -> list[Layer]:
    """The layers from the air to the clouds; rain, snow and fog come from `paint_weather`."""
    names = {subject.name for subject in brief.sky}
    height = max(2, round(horizon * 1.02))
    air = Image.new("RGBA", size, palette.sky[-1])
    air.paste(gradient(palette.sky, (size[0], height)), (0, 0))
    far = {"stars", "aurora"} & (names | ({"stars"} if palette.dark else set()))
    layers = [Layer(air), *paint_sky_objects(far, palette, (size[0], height), rng)]
    if light is not None:
        layers += paint_light(brief, light, size, palette)
    layers += paint_sky_objects(names & {"rainbow"}, palette, (size[0], height), rng)
    layers += paint_clouds(brief, palette, (size[0], height), rng)
    return [*layers, *paint_sky_objects(names & {"fireworks", "birds"}, palette, (size[0], height), rng)]


def paint_sky_objects(names: set[str], palette: Palette, size: Size, rng: random.Random) -> list[Layer]:
    """Stars, aurora, rainbow, fireworks and birds, as far as they are named."""
    layers: list[Layer] = []
    if "stars" in names:
        layers += _stars(palette, size, rng)
    if "aurora" in names:
        layers += _aurora(size, rng)
    if "rainbow" in names:
        layers.append(_rainbow(size, size[1], rng))
    if "fireworks" in names:
        layers += _fireworks(palette, size, rng)
    if "birds" in names:
        layers.append(_flock(palette, size, rng))
    return layers


def _stars(palette: Palette, size: Size, rng: random.Random) -> list[Layer]:
    width, height = size
    unit = min(size) / 1000
    layers = [Layer(tint(_milky_way(size, rng), lighten(palette.sky[-1], 0.12)))]
    for group in range(3):
        stars = [
            (rng.random() * width, rng.random() ** 1.3 * height, rng.paretovariate(2.4) * 0.75 * unit)
            for _ in range(90)
        ]

        def sprinkle(draw: ImageDraw.ImageDraw, scale: float, stars: list[tuple[float, float, float]] = stars) -> None:
            for x, y, radius in stars:
                reach = max(0.6, min(radius, 4 * unit)) * scale
                shine = round(110 + 145 * min(1.0, radius / (2 * unit)) * (1 - 0.6 * y / height))
                draw.ellipse((x * scale - reach, y * scale - reach, x * scale + reach, y * scale + reach), fill=shine)

        mask = draw_mask(size, sprinkle)
        layers.append(Layer(tint(mask, mix(palette.light, (200, 220, 255), group / 3)), motion=_twinkle(group)))
        brightest = max(stars, key=lambda star: star[2])
        layers.append(glow_layer(brightest[:2], 16 * unit, palette.light, 0.8, _twinkle(group)))
    return layers


def _twinkle(group: int) -> Motion:
    return Motion(twinkle=0.55, period=2.3 + group * 0.9, phase=group / 3)


def _milky_way(size: Size, rng: random.Random) -> Image.Image:
    width, height = size
    dust = noise(rng, size, (width / 5, height / 5), 5).point(tone_curve(70, 230, 120))
    sheet = Image.new("L", (160, 100))
    turned = halo(256, 1.2).resize((256, 70)).rotate(rng.uniform(-32, 32), Image.Resampling.BILINEAR, expand=True)
    sheet.paste(turned, (80 - turned.width // 2, 40 - turned.height // 2))
    return ImageChops.multiply(dust, sheet.resize(size, Image.Resampling.BICUBIC))


def paint_light(brief: Brief, light: Light, size: Size, palette: Palette) -> list[Layer]:
    reach = min(size)
    x, y = light.centre
    softness = 0.5 if light.is_moon else 0.75
    layers = [
        glow_layer(light.centre, reach * 0.55, light.colour, softness * 0.55),
        glow_layer(light.centre, light.radius * 3.4, light.colour, softness),
    ]
    side = math.ceil(light.radius * 2) + 2
    middle = side / 2
    crescent = "crescent" in brief.words

    def disc(draw: ImageDraw.ImageDraw, scale: float) -> None:
        box = [(middle - light.radius) * scale, (middle - light.radius) * scale]
        draw.ellipse((*box, *((middle + light.radius) * scale,) * 2), fill=255)
        if crescent:
            shift = light.radius * 0.55
            low, high = (middle - light.radius) * scale, (middle + light.radius) * scale
            draw.ellipse(
                (low + shift * scale, low - shift * 0.4 * scale, high + shift * scale, high - shift * 0.4 * scale),
                fill=0,
            )

    face = Image.new("RGB", (side, side), lighten(light.colour, 0.02))
    if light.is_moon:
        seas = noise(random.Random(7), (side, side), (side / 3, side / 3), 3).point(tone_curve(110, 190, 70))  # noqa: S311 - always the same moon
        face.paste(mix(light.colour, palette.sky[1], 0.45), mask=seas)
    mask = draw_mask((side, side), disc, 4)
    layers.append(Layer(tint(mask, face), round(x - middle), round(y - middle)))
    return layers


def paint_clouds(brief: Brief, palette: Palette, size: Size, rng: random.Random) -> list[Layer]:
    names = {subject.name for subject in brief.sky}
    stormy = brief.palette == "storm" or "rain" in names or "lightning" in names
    if "clouds" not in names and not stormy and (rng.random() < 0.2 or palette.dark or brief.palette == "space"):
        return []
    if not stormy and not palette.dark and ("clouds" in names or brief.palette == "day") and rng.random() < 0.7:
        return _cumulus(palette, size, rng)
    return _veils(palette, size, rng, stormy, 105 if "clouds" in names else 140)


def _veils(palette: Palette, size: Size, rng: random.Random, stormy: bool, cover: int) -> list[Layer]:
    """Long clouds; dark ones in a storm."""
    lit = palette.sky[-1] if stormy else mix(palette.light, (255, 255, 255), 0.4)
    shade = palette.sky[0] if stormy else mix(palette.sky[1], palette.sky[-1], 0.5)
    cover = 80 if stormy else cover
    layers = []
    for number, (share, cell) in enumerate(((0.55, 0.3), (0.9, 0.5))):
        height = max(2, round(size[1] * share))
        sheet = (size[0], height)
        body = noise(rng, sheet, (size[0] * cell, height * 0.22), 5, tiled=True)
        window = ImageChops.multiply(fade_mask(sheet, 0, 255, 0.4), fade_mask(sheet, 255, 0, 2.5))
        mask = ImageChops.multiply(body.point(tone_curve(cover, cover + 85, 215)), window)
        # The difference to the same cloud a little higher shows which parts are in shade.
        above = ImageChops.offset(body, 0, -max(1, height // 26))
        shadow = ImageChops.subtract(body, above, 1.0, 128).point(tone_curve(96, 150))
        colours = Image.composite(Image.new("RGB", sheet, lit), Image.new("RGB", sheet, shade), shadow)
        drift = Motion(depth=0.05, drift=(0.012 + 0.012 * number, 0), wraps=True)
        layers.append(Layer(tint(mask, colours), 0, round(size[1] * (0.02 + 0.08 * number)), drift))
    return layers


def _cumulus(palette: Palette, size: Size, rng: random.Random) -> list[Layer]:
    """Clouds with round tops and flat bottoms."""
    layers = []
    for number in range(rng.randint(3, 5)):
        near = number / 5
        wide = round(size[0] * (0.2 + 0.26 * near) * rng.uniform(0.8, 1.2))
        tall = round(wide * 0.5)
        puffs = []
        for _ in range(22):
            x = rng.gauss(0.5, 0.17)
            reach = (0.1 + 0.16 * max(0.0, 1 - abs(x - 0.5) * 3.2)) * rng.uniform(0.75, 1.1)
            puffs.append((min(0.88, max(0.12, x)), 0.8 - reach * rng.uniform(0.25, 1.1), reach))

        def heap(
            draw: ImageDraw.ImageDraw,
            scale: float,
            wide: int = wide,
            tall: int = tall,
            puffs: list[tuple[float, float, float]] = puffs,
        ) -> None:
            for x, y, reach in puffs:
                radius = reach * wide * scale * 0.6
                cx, cy = x * wide * scale, y * tall * scale
                draw.ellipse((cx - radius, cy - radius, cx + radius, cy + radius), fill=255)
            draw.rectangle((0, tall * 0.8 * scale, wide * scale, tall * scale), fill=0)

        mask = draw_mask((wide, tall), heap)
        # The bottom fades; the top stays sharp.
        mask = ImageChops.multiply(mask, fade_mask((wide, tall), 255, 120, 3))
        white = mix(palette.light, (255, 255, 255), 0.65)
        body = tint(mask, gradient((white, white, mix(white, palette.sky[1], 0.45)), (wide, tall)))
        motion = Motion(depth=0.05 + 0.1 * near, drift=(0.006 + 0.01 * near, 0), wraps=True)
        left = round(size[0] * rng.uniform(-0.08, 0.85))
        layers.append(
            Layer(
                add_shading(body, 0.3), left, round(size[1] * (0.42 - 0.34 * near + rng.uniform(-0.06, 0.06))), motion
            )
        )
    return layers


def _aurora(size: Size, rng: random.Random) -> list[Layer]:
    """Curtains of light: soft vertical rays of different lengths."""
    width, height = size
    hues: tuple[Colour, ...] = ((96, 240, 160), (110, 220, 220), (170, 110, 240))
    layers = []
    for number, hue in enumerate(hues):
        streaks = noise(rng, size, (width / 14, height * 3), 3).point(tone_curve(60, 220))
        folds = noise(rng, (80, 1), (26, 1), 2).tobytes()
        fall = fade_mask((1, 100), 0, 255, 1.6)
        curtain = Image.new("L", (80, 100))
        for x in range(80):
            ray = fall.resize((1, max(2, round(50 + 10 * number - folds[x] / 255 * 35))))
            curtain.paste(ray, (x, 0))
        soft = curtain.filter(ImageFilter.BoxBlur(1)).resize(size, Image.Resampling.BICUBIC)
        mask = ImageChops.multiply(soft, streaks).point([round(value * 0.7) for value in range(256)])
        motion = Motion(sway=(0.02, 0), period=7 + number * 2, phase=number / 3, twinkle=0.2)
        layers.append(Layer(tint(mask, hue), motion=motion))
    return layers


def _rainbow(size: Size, horizon: float, rng: random.Random) -> Layer:
    radius = min(size[0] * 0.55, horizon * 0.95)
    centre = size[0] * rng.uniform(0.4, 0.6)
    colours = ((214, 69, 65), (240, 140, 60), (246, 214, 90), (94, 176, 100), (66, 130, 200), (120, 80, 170))
    shrink = 2  # a rainbow has no sharp edges, so half the size will do
    bow = Image.new("RGBA", (size[0] // shrink + 1, size[1] // shrink + 1), (*colours[0], 0))
    draw = ImageDraw.Draw(bow)
    thick = radius * 0.022
    for number, colour in enumerate(colours):
        reach = radius - number * thick
        sides = (centre - reach, horizon - reach, centre + reach, horizon + reach)
        left, top, right, bottom = (side / shrink for side in sides)
        draw.arc((left, top, right, bottom), 180, 360, fill=(*colour, 105), width=max(1, round(thick * 1.3 / shrink)))
    return Layer(bow.filter(ImageFilter.BoxBlur(max(1, thick / 4))).resize(size, Image.Resampling.BICUBIC))


def _fireworks(palette: Palette, size: Size, rng: random.Random) -> list[Layer]:
    layers = []
    for number in range(5):
        radius = min(size) * rng.uniform(0.09, 0.17)
        x, y = size[0] * rng.uniform(0.12, 0.88), size[1] * rng.uniform(0.12, 0.42)
        colour = palette.accents[number % len(palette.accents)]
        side = math.ceil(radius * 2)
        rays = rng.randint(18, 30)
        lengths = [rng.uniform(0.7, 1) for _ in range(rays)]

        def burst(
            draw: ImageDraw.ImageDraw, scale: float, radius: float = radius, lengths: list[float] = lengths
        ) -> None:
            for ray, length in enumerate(lengths):
                angle = math.tau * ray / len(lengths)
                for dot in range(12):
                    far = radius * length * (0.25 + 0.75 * dot / 11)
                    at = (
                        radius + math.cos(angle) * far,
                        radius + math.sin(angle) * far + (dot / 11) ** 2 * radius * 0.08,
                    )
                    reach = radius * (0.006 + 0.014 * dot / 11)
                    box = [(value + direction * reach) * scale for direction in (-1, 1) for value in at]
                    draw.ellipse((box[0], box[1], box[2], box[3]), fill=90 + 15 * dot)

        motion = Motion(twinkle=0.9, period=2.2 + 0.4 * number, phase=number / 5)
        layers.append(glow_layer((x, y), radius * 1.2, colour, 0.5, motion))
        layers.append(
            Layer(
                tint(draw_mask((side, side), burst), lighten(colour, 0.12)),
                round(x - radius),
                round(y - radius),
                motion,
            )
        )
    return layers


def _flock(palette: Palette, size: Size, rng: random.Random) -> Layer:
    width, height = size
    unit = min(size) / 100
    birds = [
        (width * rng.uniform(0.2, 0.8), height * rng.uniform(0.2, 0.6), unit * rng.uniform(0.8, 2)) for _ in range(9)
    ]

    def fly(draw: ImageDraw.ImageDraw, scale: float) -> None:
        for x, y, span in birds:
            wing = [
                (side * part * span * scale + x * scale, (y - math.sin(part * 2.6) * span * 0.42) * scale)
                for side in (-1, 1)
                for part in ((1, 0.75, 0.5, 0.25, 0) if side < 0 else (0, 0.25, 0.5, 0.75, 1))
            ]
            draw.line(wing, fill=230, width=max(1, round(span * 0.14 * scale)), joint="curve")

    colour = palette.near if not palette.dark else palette.accents[2]
    return Layer(tint(draw_mask(size, fly), colour), motion=Motion(drift=(0.02, -0.003), sway=(0, 0.006), period=2))


def paint_weather(brief: Brief, palette: Palette, size: Size, rng: random.Random) -> list[Layer]:
    """Fog, lightning, rain and snow in front of the scene, as far as they are named."""
    names = {subject.name for subject in brief.sky}
    layers: list[Layer] = []
    if "fog" in names:
        for number in range(2):
            sheet = (size[0], round(size[1] * 0.5))
            mist = noise(rng, sheet, (size[0] * 0.6, size[1] * 0.12), 4, tiled=True).point(tone_curve(70, 235, 170))
            mask = ImageChops.multiply(
                mist, ImageChops.multiply(fade_mask(sheet, 0, 255, 0.5), fade_mask(sheet, 255, 0, 3))
            )
            moving = Motion(depth=0.4, drift=(0.02 * (1 - 2 * number), 0), wraps=True)
            layers.append(Layer(tint(mask, palette.sky[-1]), 0, round(size[1] * (0.36 + 0.12 * number)), moving))
    if "lightning" in names:
        layers.append(_bolt(palette, size, rng))
    if "rain" in names or "lightning" in names:
        layers += [_rain(size, rng, number) for number in range(2)]
    if "snow" in names:
        layers += [_snow(size, rng, number) for number in range(3)]
    return layers


def _rain(size: Size, rng: random.Random, number: int) -> Layer:
    length = size[1] * (0.03 + 0.02 * number)
    drops = [(rng.random() * size[0], rng.random() * size[1]) for _ in range(240)]

    def fall(draw: ImageDraw.ImageDraw, scale: float) -> None:
        for x, y in drops:
            line = (x * scale, y * scale, (x - length * 0.18) * scale, (y + length) * scale)
            draw.line(line, fill=70 + 40 * number, width=max(1, round(min(size) / 700 * scale)))

    return Layer(
        tint(draw_mask(size, fall), (222, 232, 240)), motion=Motion(drift=(-0.2, 1.1 + 0.3 * number), wraps=True)
    )


def _snow(size: Size, rng: random.Random, number: int) -> Layer:
    reach = min(size) * (0.0016 + 0.0016 * number)
    flakes = [(rng.random() * size[0], rng.random() * size[1], reach * rng.uniform(0.6, 1.3)) for _ in range(150)]

    def fall(draw: ImageDraw.ImageDraw, scale: float) -> None:
        for x, y, radius in flakes:
            box = ((x - radius) * scale, (y - radius) * scale, (x + radius) * scale, (y + radius) * scale)
            draw.ellipse(box, fill=235 - 40 * number)

    mask = draw_mask(size, fall)
    soft = mask.filter(ImageFilter.GaussianBlur(reach * 0.7)) if number == 2 else mask
    motion = Motion(drift=(0.01 * number, 0.06 + 0.05 * number), wraps=True)
    return Layer(tint(soft, (255, 255, 255)), motion=motion)


def _bolt(palette: Palette, size: Size, rng: random.Random) -> Layer:
    x, y = size[0] * rng.uniform(0.3, 0.7), 0.0
    points = [(x, y)]
    while y < size[1] * 0.6:
        x, y = x + size[0] * rng.uniform(-0.045, 0.045), y + size[1] * rng.uniform(0.02, 0.06)
        points.append((x, y))

    def strike(draw: ImageDraw.ImageDraw, scale: float) -> None:
        draw.line(
            [(px * scale, py * scale) for px, py in points],
            fill=255,
            width=round(min(size) / 250 * scale),
            joint="curve",
        )

    mask = draw_mask(size, strike)
    light = ImageChops.screen(mask, mask.filter(ImageFilter.GaussianBlur(min(size) / 60)).point(tone_curve(0, 90, 200)))
    return Layer(tint(light, mix(palette.light, (190, 200, 255), 0.5)), motion=Motion(twinkle=1.0, period=1.7))
