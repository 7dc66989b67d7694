"""Turn a prompt into a scene: choose the kind of image, then put its layers together from back to front."""

from __future__ import annotations

import random
from dataclasses import replace

from PIL import Image, ImageDraw

from penstock_atelier.renderers import abstract, creatures, land, landmarks, places, sky, things, woods
from penstock_atelier.renderers.canvas import (
    Layer,
    Motion,
    Scene,
    Size,
    cut_layer,
    draw_mask,
    flatten,
    glow_layer,
    gradient,
    halo,
    noise,
    seeded_rng,
    tint,
    tone_curve,
)
from penstock_atelier.renderers.palette import Palette, choose_palette, lighten, mix
from penstock_atelier.renderers.words import Brief, Subject, read

GROUNDS: dict[str, land.Painter] = {
    "mountains": land.mountains,
    "city": places.city,
    "hills": land.hills,
    "flowers": land.flowers,
    "desert": places.desert,
    "forest": woods.forest,
}
_ORDER = tuple(GROUNDS)  # from the back to the front
_TALL_PLACED = frozenset({"castle", "lighthouse", "oak", "palm"})


def compose(prompt: str, size: Size, seed: int) -> Scene:
    """The scene of a prompt; the same words, seed and size give the same scene."""
    brief = read(prompt)
    rng = seeded_rng(prompt, seed)
    palette_name = brief.palette
    if palette_name is None and brief.creatures and brief.creatures[0].name in creatures.SWIMMERS:
        palette_name = "depths"
    palette = choose_palette(palette_name, brief.colours, rng)
    if brief.things and not set(_names(brief.scenery)) - {"flowers"} and not brief.placed and not brief.creatures:
        return _still_life(brief, palette, size, rng)
    if brief.creatures and not brief.scenery and not brief.placed:
        return _portrait(brief, palette, size, rng)
    if brief.scenery or brief.sky or brief.placed or brief.creatures:
        return _landscape(brief, palette, size, rng)
    if brief.palette and not brief.abstract and rng.random() < 0.7:
        return _landscape(brief, palette, size, rng)
    return abstract.compose(brief.abstract, palette, size, rng)


def _names(subjects: tuple[Subject, ...]) -> list[str]:
    return [subject.name for subject in subjects]


def _landscape(brief: Brief, palette: Palette, size: Size, rng: random.Random) -> Scene:
    names = _names(brief.scenery)
    if "underwater" in names or "space" in names:
        return _underwater_or_space(brief, palette, size, rng)
    grounds, has_water = _grounds(brief, rng)
    horizon = size[1] * (rng.uniform(0.54, 0.63) if has_water else rng.uniform(0.56, 0.66))
    light = sky.choose_light(brief, palette, size, horizon, rng)
    layers = sky.paint_sky(brief, palette, size, horizon, light, rng)
    ground = land.Ground(palette, size, horizon, light, brief.palette == "winter" or brief.has("snow"))
    for name in grounds:
        layers += _painter(name, brief, has_water)(ground, rng)
    if has_water:
        above = flatten(Scene(*size, tuple(layers))) if grounds or "lake" in names else None
        layers += land.water(ground, rng, reflected=above)
        if "forest" in grounds:
            layers += woods.shore(ground, rng)
    layers += _place_subjects(brief, ground, has_water, rng)
    layers += _place_creatures(brief, ground, rng)
    layers += sky.paint_weather(brief, palette, size, rng)
    return Scene(*size, tuple(layers))


def _painter(name: str, brief: Brief, has_water: bool) -> land.Painter:
    """The function that draws a ground; a forest looks different at the water and in autumn and spring."""
    if name == "forest" and has_water:
        return woods.far_shore
    if name == "forest" and brief.palette in ("autumn", "spring"):
        return woods.grove
    return GROUNDS[name]


def _grounds(brief: Brief, rng: random.Random) -> tuple[list[str], bool]:
    """The names of the grounds, from the back to the front, and whether there is water in front of them."""
    names = _names(brief.scenery)
    wanted = {name for name in names if name in GROUNDS}
    has_water = bool({"sea", "lake"} & set(names)) or brief.has("boat") or "city" in wanted
    if wanted == {"mountains"} and not has_water:
        extra = rng.choice(("hills", "forest", "lake"))
        if extra == "lake":
            has_water = True
        else:
            wanted.add(extra)
    if "lake" in names and not wanted:
        wanted = {rng.choice(("mountains", "forest"))}
    if not wanted and not has_water:
        wanted = set(rng.choice((("hills",), ("mountains", "hills"), ("mountains", "forest"))))
    return sorted(wanted, key=_ORDER.index), has_water


def _underwater_or_space(brief: Brief, palette: Palette, size: Size, rng: random.Random) -> Scene:
    ground = land.Ground(palette, size, size[1] * 0.98, None, snowy=False)
    if brief.has("underwater"):
        layers = places.underwater(ground, rng)
    else:
        layers = [*sky.paint_sky(brief, palette, size, size[1], None, rng), *places.space(ground, rng)]
    layers += _place_subjects(brief, ground, False, rng)
    return Scene(*size, (*layers, *_place_creatures(brief, ground, rng)))


def _place_subjects(brief: Brief, ground: land.Ground, has_water: bool, rng: random.Random) -> list[Layer]:
    """Objects: boats on the water, houses on the land, balloons in the air."""
    layers: list[Layer] = []
    wild = [replace(thing, name="saguaro" if thing.name == "cactus" else thing.name) for thing in brief.things]
    for number, subject in enumerate((*brief.placed, *wild)):
        for copy in range(subject.count):
            x = ground.width * _spread(number + copy, rng)
            layers += _place_subject(subject, copy, x, ground, has_water, rng)
    return layers


def _place_subject(
    subject: Subject, copy: int, x: float, ground: land.Ground, has_water: bool, rng: random.Random
) -> list[Layer]:
    floating = subject.name in landmarks.AIRBORNE
    side = min(ground.size) * rng.uniform(0.2, 0.28) / (1 + 0.12 * (subject.count - 1))
    side = round(side * (1.5 if subject.name in _TALL_PLACED else 1))
    sprite = _add_haze(things.draw_thing(subject.name, side, subject.colour, rng), ground, 0.1 if floating else 0.2)
    left = round(x - side / 2)
    if floating:
        moving = Motion(depth=0.3, sway=(0.006, 0.012), period=5 + copy, phase=copy / 3, drift=(0.008, -0.004))
        return [Layer(sprite, left, round(ground.horizon * rng.uniform(0.22, 0.62) - side / 2), moving)]
    if subject.name == "boat":
        y = ground.horizon + (ground.height - ground.horizon) * rng.uniform(0.08, 0.3)
        rocking = Motion(depth=0.4, sway=(0.004, 0.005), period=3.5, phase=copy / 3)
        return [Layer(sprite, left, round(y - side * 0.96), rocking)]
    below = 0.12 if has_water else rng.uniform(0.3, 0.5)
    base = ground.horizon + (ground.height - ground.horizon) * below
    foot = land.mound(ground, x, base, side * (0.8 if has_water else 1.5), rock=has_water)
    sunk = side * (0.14 if has_water else 0.24)
    return [Layer(sprite, left, round(base - side - sunk * 0.72), Motion(depth=0.45)), foot]


def _spread(number: int, rng: random.Random) -> float:
    """A horizontal position from 0 to 1 that keeps several objects apart."""
    return (0.3, 0.7, 0.5, 0.15, 0.85, 0.4, 0.6, 0.22, 0.78)[number % 9] + rng.uniform(-0.06, 0.06)


def _add_haze(sprite: Image.Image, ground: land.Ground, share: float) -> Image.Image:
    """Blend an object with the colour of the air; more in a dark scene."""
    colour = mix(ground.palette.sky[-1], ground.palette.near, 0.6 if ground.palette.dark else 0.15)
    veil = Image.new("RGBA", sprite.size, colour)
    veil.putalpha(sprite.getchannel("A"))
    return Image.blend(sprite, veil, share + 0.2 * ground.palette.dark)


def _place_creatures(brief: Brief, ground: land.Ground, rng: random.Random) -> list[Layer]:
    """Creatures at the front of the scene; those that swim or fly, inside it."""
    layers = []
    all_creatures = [subject for subject in brief.creatures for _ in range(subject.count)]
    for number, subject in enumerate(all_creatures[:6]):
        crowd = 1 / (1 + 0.22 * (len(all_creatures[:6]) - 1))
        if subject.name in creatures.SWIMMERS or subject.name == "butterfly":
            side = round(min(ground.size) * 0.34 * crowd * rng.uniform(0.85, 1.1))
            y = ground.height * rng.uniform(0.38, 0.6)
            motion = Motion(depth=0.5, drift=(0.02, 0), sway=(0, 0.012), period=3 + number, phase=number / 4)
        else:
            side = round(min(ground.size) * 0.62 * crowd)
            y = ground.height - side / 2 + 1
            motion = Motion(depth=0.7, sway=(0, 0.003), period=3.4, phase=number / 5)
        sprite = _add_haze(creatures.draw_creature(subject.name, side, subject.colour, rng), ground, 0.06)
        x = ground.width * (_spread(number, rng) if len(all_creatures) > 1 else rng.uniform(0.36, 0.64))
        layers.append(Layer(sprite, round(x - side / 2), round(y - side / 2), motion))
    return layers


def _portrait(brief: Brief, palette: Palette, size: Size, rng: random.Random) -> Scene:
    """One or a few creatures, large, in front of a plain ground with a disc and leaves."""
    width, height = size
    ground = land.Ground(palette, size, height * 0.7, None, snowy=False)
    swims = brief.creatures[0].name in creatures.SWIMMERS
    if swims:
        layers = places.underwater(ground, rng)
    else:
        layers = [*_backdrop(brief, palette, size, rng), *_foliage(ground, rng, behind=True)]
    all_creatures = [subject for subject in brief.creatures for _ in range(subject.count)][:5]
    for number, subject in enumerate(all_creatures):
        floats = subject.name in creatures.SWIMMERS or subject.name == "butterfly"
        crowd = len(all_creatures) ** 0.5
        side = round(min(size) * (0.92 if crowd == 1 else (0.7 if floats else 0.98) / crowd))
        x = width * (number + 0.5) / len(all_creatures)
        y = height * (0.5 - 0.14 * (crowd > 1) * (-1) ** number) if floats else height - side / 2 + 1
        sway = (0.004 * floats, 0.005 + 0.01 * floats)
        sprite = creatures.draw_creature(subject.name, side, subject.colour, rng)
        motion = Motion(depth=0.5, sway=sway, period=3.2 + number * 0.4, phase=number / 4)
        layers.append(Layer(sprite, round(x - side / 2), round(y - side / 2), motion))
    if not swims:
        layers += _foliage(ground, rng, behind=False)
    for number, thing in enumerate(brief.things[:3]):
        side = round(min(size) * 0.3)
        left = round(width * (0.14, 0.86, 0.5)[number] - side / 2)
        layers.append(
            Layer(things.draw_thing(thing.name, side, thing.colour, rng), left, height - side, Motion(depth=0.8))
        )
    return Scene(width, height, (*layers, *sky.paint_weather(brief, palette, size, rng)))


def _backdrop(brief: Brief, palette: Palette, size: Size, rng: random.Random) -> list[Layer]:
    back = mix(palette.sky[1], palette.sky[-1], rng.uniform(0.3, 0.8))
    if palette.dark or {"stars", "moon", "aurora"} & set(_names(brief.sky)):
        layers = sky.paint_sky(brief, palette, size, size[1], None, rng)
    else:
        layers = [Layer(gradient((lighten(back, -0.05), back, lighten(back, 0.05)), size).convert("RGBA"))]
    return [*layers, *_disc(palette, size, rng)]


def _disc(palette: Palette, size: Size, rng: random.Random) -> list[Layer]:
    radius = min(size) * rng.uniform(0.33, 0.4)
    side = round(radius * 2)
    centre = (size[0] / 2, size[1] * 0.46)

    def circle(draw: ImageDraw.ImageDraw, scale: float) -> None:
        draw.ellipse((0, 0, side * scale - 1, side * scale - 1), fill=225)

    tone = mix(palette.light, palette.accents[1], 0.35)
    disc = tint(
        draw_mask((side, side), circle),
        gradient((lighten(tone, 0.04), mix(tone, palette.accents[0], 0.3)), (side, side)),
    )
    layer = Layer(disc, round(centre[0] - radius), round(centre[1] - radius), Motion(depth=0.15))
    return [glow_layer(centre, radius * 1.5, palette.light, 0.4), layer]


def _foliage(ground: land.Ground, rng: random.Random, *, behind: bool) -> list[Layer]:
    """Leaves at the left and right edge; the middle stays free."""
    layers = []
    width, height = ground.size
    unit = min(ground.size)
    leaf = mix(ground.palette.leaf, ground.palette.near, 0.15 if behind else 0.45)
    for number in range(3):
        tone = lighten(leaf, 0.05 * number - 0.04)
        fronds = []
        for _ in range(9 if behind else 5):
            edge = rng.choice((-1, 1))
            x = width / 2 + edge * width * rng.uniform(0.3 if behind else 0.42, 0.56)
            lean = -edge * rng.uniform(0.0, 0.45) + (edge * 0.5 if rng.random() < 0.4 else 0)
            fronds.append((x, height * 1.02, unit * rng.uniform(0.25, 0.6 if behind else 0.32), lean))

        def grow(
            draw: ImageDraw.ImageDraw, scale: float, fronds: list[tuple[float, float, float, float]] = fronds
        ) -> None:
            for x, y, tall, lean in fronds:
                woods.frond(draw, (x * scale, y * scale), tall * scale, lean)

        motion = Motion(depth=0.25 if behind else 0.8, sway=(0.004, 0), period=4 + number, phase=number / 3)
        layers.append(cut_layer(draw_mask(ground.size, grow), tone, motion))
    return layers


def _still_life(brief: Brief, palette: Palette, size: Size, rng: random.Random) -> Scene:
    """Things on a table, with light from the upper left."""
    width, height = size
    unit = min(size)
    wall = mix(palette.sky[1], palette.sky[-1], 0.5) if not palette.dark else palette.sky[1]
    edge = round(height * 0.66)
    room = gradient((lighten(wall, -0.1), wall), size).convert("RGBA")
    texture = noise(rng, size, (width / 6, height / 6), 5).point(tone_curve(90, 220, 60))
    room.alpha_composite(tint(texture, lighten(wall, 0.08)))
    board = mix(mix((146, 98, 62), palette.near, 0.25), palette.accents[0], 0.12)
    top = gradient((lighten(board, 0.1), lighten(board, -0.06)), (width, height - edge))
    grain = noise(rng, (width, height - edge), (width * 0.8, max(2.0, height / 110)), 3).point(tone_curve(110, 210, 80))
    top.paste(lighten(board, -0.1), mask=grain)
    room.paste(top, (0, edge))
    layers = [
        Layer(room),
        glow_layer((width * 0.2, height * 0.12), unit * 0.9, palette.light, 0.55, Motion(twinkle=0.15, period=5)),
    ]
    subjects = [subject for subject in brief.things for _ in range(subject.count)][:7]
    if len(subjects) == 1 and subjects[0].count == 1:
        company = [name for name in ("apple", "lemon", "pear", "orange", "book") if name != subjects[0].name]
        subjects.append(Subject(rng.choice(company)))
    layers += _arrange(subjects, size, edge, rng)
    return Scene(width, height, tuple(layers))


_SIDES = {  # how large each thing is drawn, as a share of the image: an apple is smaller than a lamp
    "vase": 0.62,
    "bottle": 0.62,
    "lamp": 0.6,
    "pot": 0.55,
    "cake": 0.55,
    "bowl": 0.5,
    "cactus": 0.5,
    "book": 0.46,
    "teapot": 0.42,
    "candle": 0.42,
    "cup": 0.36,
    "pear": 0.3,
    "cherry": 0.3,
    "apple": 0.24,
    "orange": 0.24,
    "lemon": 0.24,
}


def _arrange(subjects: list[Subject], size: Size, edge: int, rng: random.Random) -> list[Layer]:
    """Large things at the back near the middle, small ones in front of them."""
    width, height = size
    layers = []
    crowd = 1.25 if len(subjects) <= 2 else 1.0 if len(subjects) <= 4 else 0.85
    across = (0.43, 0.7) if len(subjects) == 2 else (0.5, 0.28, 0.72, 0.4, 0.62, 0.16, 0.84)
    for rank, subject in enumerate(sorted(subjects, key=lambda subject: -_SIDES[subject.name])):
        side = max(4, round(min(size) * _SIDES[subject.name] * crowd))
        x = width * (across[rank] + rng.uniform(-0.02, 0.02))
        y = edge + (height - edge) * (0.22 + 0.11 * rank + rng.uniform(0, 0.04))
        shadow = tint(halo(256, 0.8, 0.5).resize((round(side * 1.05), max(1, round(side * 0.2)))), (30, 18, 24))
        layers.append(Layer(shadow, round(x - side * 0.42), round(y - side * 0.13), Motion(depth=0.3)))
        sprite = things.draw_thing(subject.name, side, subject.colour, rng)
        layers.append(Layer(sprite, round(x - side / 2), round(y - sprite.height), Motion(depth=0.3)))
    return layers
