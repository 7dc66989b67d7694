"""Turn a brief into a scene: choose the kind of picture, then put its layers together from back to front."""

from __future__ import annotations

import random
from dataclasses import replace

from PIL import Image, ImageDraw

from penstock.atelier.renderers import abstract, creatures, land, landmarks, places, sky, things, woods
from penstock.atelier.renderers.canvas import (
    Layer,
    Motion,
    Scene,
    Size,
    column,
    curve,
    cut,
    dice,
    drawn,
    flatten,
    glow,
    halo,
    noise,
    tint,
)
from penstock.atelier.renderers.palette import Palette, choose, lighter, mix
from penstock.atelier.renderers.words import Brief, Subject, read

GROUNDS: dict[str, land.Painter] = {
    "mountains": land.mountains,
    "city": places.city,
    "hills": land.hills,
    "flowers": land.flowers,
    "desert": places.desert,
    "forest": woods.forest,
}
_ORDER = tuple(GROUNDS)  # what stands behind what
_TALL_PLACED = frozenset({"castle", "lighthouse", "oak", "palm"})


def compose(prompt: str, negative: str, size: Size, seed: int) -> Scene:
    """Everything is decided by the words, the seed and the size."""
    brief = read(prompt, negative)
    chance = dice(prompt, seed)
    mood = brief.palette
    if mood is None and brief.creatures and brief.creatures[0].name in creatures.SWIMMERS:
        mood = "depths"
    palette = choose(mood, brief.colours, chance)
    if brief.things and not set(_names(brief.scenery)) - {"flowers"} and not brief.placed and not brief.creatures:
        return _still_life(brief, palette, size, chance)
    if brief.creatures and not brief.scenery and not brief.placed:
        return _portrait(brief, palette, size, chance)
    if brief.scenery or brief.sky or brief.placed or brief.creatures:
        return _landscape(brief, palette, size, chance)
    if brief.palette and not brief.abstract and chance.random() < 0.7:
        return _landscape(brief, palette, size, chance)
    return abstract.compose(brief.abstract, palette, size, chance)


def _names(subjects: tuple[Subject, ...]) -> list[str]:
    return [subject.name for subject in subjects]


def _landscape(brief: Brief, palette: Palette, size: Size, chance: random.Random) -> Scene:
    names = _names(brief.scenery)
    if "underwater" in names or "space" in names:
        return _elsewhere(brief, palette, size, chance)
    grounds, wet = _grounds(brief, chance)
    horizon = size[1] * (chance.uniform(0.54, 0.63) if wet else chance.uniform(0.56, 0.66))
    light = sky.choose_light(brief, palette, size, horizon, chance)
    layers = sky.paint_sky(brief, palette, size, horizon, light, chance)
    ground = land.Ground(palette, size, horizon, light, brief.palette == "winter" or brief.has("snow"))
    for name in grounds:
        layers += _painter(name, brief, wet)(ground, chance)
    if wet:
        above = flatten(Scene(*size, tuple(layers))) if grounds or "lake" in names else None
        layers += land.water(ground, chance, reflected=above)
        if "forest" in grounds:
            layers += woods.shore(ground, chance)
    layers += _placed(brief, ground, wet, chance)
    layers += _inhabitants(brief, ground, chance)
    layers += sky.paint_weather(brief, palette, size, chance)
    return Scene(*size, tuple(layers))


def _painter(name: str, brief: Brief, wet: bool) -> land.Painter:
    if name == "forest" and wet:
        return woods.far_shore
    if name == "forest" and brief.palette in ("autumn", "spring"):
        return woods.grove
    return GROUNDS[name]


def _grounds(brief: Brief, chance: random.Random) -> tuple[list[str], bool]:
    """Which grounds, from the back to the front, and whether water lies before them."""
    names = _names(brief.scenery)
    wanted = {name for name in names if name in GROUNDS}
    wet = bool({"sea", "lake"} & set(names)) or brief.has("boat") or "city" in wanted
    if wanted == {"mountains"} and not wet:
        extra = chance.choice(("hills", "forest", "lake"))
        wanted, wet = (wanted, True) if extra == "lake" else (wanted | {extra}, False)
    if "lake" in names and not wanted:
        wanted = {chance.choice(("mountains", "forest"))}
    if not wanted and not wet:
        wanted = set(chance.choice((("hills",), ("mountains", "hills"), ("mountains", "forest"))))
    return sorted(wanted, key=_ORDER.index), wet


def _elsewhere(brief: Brief, palette: Palette, size: Size, chance: random.Random) -> Scene:
    ground = land.Ground(palette, size, size[1] * 0.98, None, snowy=False)
    if brief.has("underwater"):
        layers = places.underwater(ground, chance)
    else:
        layers = [*sky.paint_sky(brief, palette, size, size[1], None, chance), *places.space(ground, chance)]
    layers += _placed(brief, ground, False, chance)
    return Scene(*size, (*layers, *_inhabitants(brief, ground, chance)))


def _placed(brief: Brief, ground: land.Ground, wet: bool, chance: random.Random) -> list[Layer]:
    """Boats on the water, houses on the land, balloons in the air."""
    layers: list[Layer] = []
    wild = [replace(thing, name="saguaro" if thing.name == "cactus" else thing.name) for thing in brief.things]
    for number, subject in enumerate((*brief.placed, *wild)):
        for copy in range(subject.count):
            x = ground.width * _spread(number + copy, chance)
            layers += _standing(subject, copy, x, ground, wet, chance)
    return layers


def _standing(
    subject: Subject, copy: int, x: float, ground: land.Ground, wet: bool, chance: random.Random
) -> list[Layer]:
    floating = subject.name in landmarks.AIRBORNE
    side = min(ground.size) * chance.uniform(0.2, 0.28) / (1 + 0.12 * (subject.count - 1))
    side = round(side * (1.5 if subject.name in _TALL_PLACED else 1))
    picture = _aired(things.sprite(subject.name, side, subject.colour, chance), ground, 0.1 if floating else 0.2)
    left = round(x - side / 2)
    if floating:
        moving = Motion(depth=0.3, sway=(0.006, 0.012), period=5 + copy, phase=copy / 3, drift=(0.008, -0.004))
        return [Layer(picture, left, round(ground.horizon * chance.uniform(0.22, 0.62) - side / 2), moving)]
    if subject.name == "boat":
        y = ground.horizon + (ground.height - ground.horizon) * chance.uniform(0.08, 0.3)
        rocking = Motion(depth=0.4, sway=(0.004, 0.005), period=3.5, phase=copy / 3)
        return [Layer(picture, left, round(y - side * 0.96), rocking)]
    below = 0.12 if wet else chance.uniform(0.3, 0.5)
    base = ground.horizon + (ground.height - ground.horizon) * below
    foot = land.mound(ground, x, base, side * (0.8 if wet else 1.5), rock=wet)
    sunk = side * (0.14 if wet else 0.24)
    return [Layer(picture, left, round(base - side - sunk * 0.72), Motion(depth=0.45)), foot]


def _spread(number: int, chance: random.Random) -> float:
    """Places that keep away from each other: left, right, middle, and between."""
    return (0.3, 0.7, 0.5, 0.15, 0.85, 0.4, 0.6, 0.22, 0.78)[number % 9] + chance.uniform(-0.06, 0.06)


def _aired(picture: Image.Image, ground: land.Ground, share: float) -> Image.Image:
    """Seen through the air of the scene, and darker when the scene is dark."""
    colour = mix(ground.palette.sky[-1], ground.palette.near, 0.6 if ground.palette.dark else 0.15)
    veil = Image.new("RGBA", picture.size, colour)
    veil.putalpha(picture.getchannel("A"))
    return Image.blend(picture, veil, share + 0.2 * ground.palette.dark)


def _inhabitants(brief: Brief, ground: land.Ground, chance: random.Random) -> list[Layer]:
    """Creatures in front of the scene, or swimming and flying in it."""
    layers = []
    everybody = [subject for subject in brief.creatures for _ in range(subject.count)]
    for number, subject in enumerate(everybody[:6]):
        crowd = 1 / (1 + 0.22 * (len(everybody[:6]) - 1))
        if subject.name in creatures.SWIMMERS or subject.name == "butterfly":
            side = round(min(ground.size) * 0.34 * crowd * chance.uniform(0.85, 1.1))
            y = ground.height * chance.uniform(0.38, 0.6)
            motion = Motion(depth=0.5, drift=(0.02, 0), sway=(0, 0.012), period=3 + number, phase=number / 4)
        else:
            side = round(min(ground.size) * 0.62 * crowd)
            y = ground.height - side / 2 + 1
            motion = Motion(depth=0.7, sway=(0, 0.003), period=3.4, phase=number / 5)
        picture = _aired(creatures.portrait(subject.name, side, subject.colour, chance), ground, 0.06)
        x = ground.width * (_spread(number, chance) if len(everybody) > 1 else chance.uniform(0.36, 0.64))
        layers.append(Layer(picture, round(x - side / 2), round(y - side / 2), motion))
    return layers


def _portrait(brief: Brief, palette: Palette, size: Size, chance: random.Random) -> Scene:
    """One or a few, large, before a calm ground with a disc of light and leaves."""
    width, height = size
    ground = land.Ground(palette, size, height * 0.7, None, snowy=False)
    swims = brief.creatures[0].name in creatures.SWIMMERS
    if swims:
        layers = places.underwater(ground, chance)
    else:
        layers = [*_backdrop(brief, palette, size, chance), *_foliage(ground, chance, behind=True)]
    everybody = [subject for subject in brief.creatures for _ in range(subject.count)][:5]
    for number, subject in enumerate(everybody):
        floats = subject.name in creatures.SWIMMERS or subject.name == "butterfly"
        crowd = len(everybody) ** 0.5
        side = round(min(size) * (0.92 if crowd == 1 else (0.7 if floats else 0.98) / crowd))
        x = width * (number + 0.5) / len(everybody)
        y = height * (0.5 - 0.14 * (crowd > 1) * (-1) ** number) if floats else height - side / 2 + 1
        sway = (0.004 * floats, 0.005 + 0.01 * floats)
        picture = creatures.portrait(subject.name, side, subject.colour, chance)
        motion = Motion(depth=0.5, sway=sway, period=3.2 + number * 0.4, phase=number / 4)
        layers.append(Layer(picture, round(x - side / 2), round(y - side / 2), motion))
    if not swims:
        layers += _foliage(ground, chance, behind=False)
    for number, thing in enumerate(brief.things[:3]):
        side = round(min(size) * 0.3)
        left = round(width * (0.14, 0.86, 0.5)[number] - side / 2)
        layers.append(
            Layer(things.sprite(thing.name, side, thing.colour, chance), left, height - side, Motion(depth=0.8))
        )
    return Scene(width, height, (*layers, *sky.paint_weather(brief, palette, size, chance)))


def _backdrop(brief: Brief, palette: Palette, size: Size, chance: random.Random) -> list[Layer]:
    back = mix(palette.sky[1], palette.sky[-1], chance.uniform(0.3, 0.8))
    if palette.dark or {"stars", "moon", "aurora"} & set(_names(brief.sky)):
        layers = sky.paint_sky(brief, palette, size, size[1], None, chance)
    else:
        layers = [Layer(column((lighter(back, -0.05), back, lighter(back, 0.05)), size).convert("RGBA"))]
    return [*layers, *_disc(palette, size, chance)]


def _disc(palette: Palette, size: Size, chance: random.Random) -> list[Layer]:
    radius = min(size) * chance.uniform(0.33, 0.4)
    side = round(radius * 2)
    centre = (size[0] / 2, size[1] * 0.46)

    def circle(draw: ImageDraw.ImageDraw, scale: float) -> None:
        draw.ellipse((0, 0, side * scale - 1, side * scale - 1), fill=225)

    tone = mix(palette.light, palette.accents[1], 0.35)
    disc = tint(
        drawn((side, side), circle), column((lighter(tone, 0.04), mix(tone, palette.accents[0], 0.3)), (side, side))
    )
    layer = Layer(disc, round(centre[0] - radius), round(centre[1] - radius), Motion(depth=0.15))
    return [glow(centre, radius * 1.5, palette.light, 0.4), layer]


def _foliage(ground: land.Ground, chance: random.Random, *, behind: bool) -> list[Layer]:
    """Leaves at the edges, so that the middle stays free."""
    layers = []
    width, height = ground.size
    unit = min(ground.size)
    leaf = mix(ground.palette.leaf, ground.palette.near, 0.15 if behind else 0.45)
    for number in range(3):
        tone = lighter(leaf, 0.05 * number - 0.04)
        fronds = []
        for _ in range(9 if behind else 5):
            edge = chance.choice((-1, 1))
            x = width / 2 + edge * width * chance.uniform(0.3 if behind else 0.42, 0.56)
            lean = -edge * chance.uniform(0.0, 0.45) + (edge * 0.5 if chance.random() < 0.4 else 0)
            fronds.append((x, height * 1.02, unit * chance.uniform(0.25, 0.6 if behind else 0.32), lean))

        def grow(
            draw: ImageDraw.ImageDraw, scale: float, fronds: list[tuple[float, float, float, float]] = fronds
        ) -> None:
            for x, y, tall, lean in fronds:
                woods.frond(draw, (x * scale, y * scale), tall * scale, lean)

        motion = Motion(depth=0.25 if behind else 0.8, sway=(0.004, 0), period=4 + number, phase=number / 3)
        layers.append(cut(drawn(ground.size, grow), tone, motion))
    return layers


def _still_life(brief: Brief, palette: Palette, size: Size, chance: random.Random) -> Scene:
    """Things on a table, light from a window that we do not see."""
    width, height = size
    unit = min(size)
    wall = mix(palette.sky[1], palette.sky[-1], 0.5) if not palette.dark else palette.sky[1]
    edge = round(height * 0.66)
    room = column((lighter(wall, -0.1), wall), size).convert("RGBA")
    texture = noise(chance, size, (width / 6, height / 6), 5).point(curve(90, 220, 60))
    room.alpha_composite(tint(texture, lighter(wall, 0.08)))
    board = mix(mix((146, 98, 62), palette.near, 0.25), palette.accents[0], 0.12)
    top = column((lighter(board, 0.1), lighter(board, -0.06)), (width, height - edge))
    grain = noise(chance, (width, height - edge), (width * 0.8, max(2.0, height / 110)), 3).point(curve(110, 210, 80))
    top.paste(lighter(board, -0.1), mask=grain)
    room.paste(top, (0, edge))
    layers = [
        Layer(room),
        glow((width * 0.2, height * 0.12), unit * 0.9, palette.light, 0.55, Motion(twinkle=0.15, period=5)),
    ]
    subjects = [subject for subject in brief.things for _ in range(subject.count)][:7]
    if len(subjects) == 1 and subjects[0].count == 1:
        company = [name for name in ("apple", "lemon", "pear", "orange", "book") if name != subjects[0].name]
        subjects.append(Subject(chance.choice(company)))
    layers += _arranged(subjects, size, edge, chance)
    return Scene(width, height, tuple(layers))


_SIDES = {  # of the squares that things are drawn in, so that an apple stays smaller than a lamp
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


def _arranged(subjects: list[Subject], size: Size, edge: int, chance: random.Random) -> list[Layer]:
    """Tall things at the back near the middle, small ones before them."""
    width, height = size
    layers = []
    crowd = 1.25 if len(subjects) <= 2 else 1.0 if len(subjects) <= 4 else 0.85
    across = (0.43, 0.7) if len(subjects) == 2 else (0.5, 0.28, 0.72, 0.4, 0.62, 0.16, 0.84)
    for rank, subject in enumerate(sorted(subjects, key=lambda one: -_SIDES[one.name])):
        side = max(4, round(min(size) * _SIDES[subject.name] * crowd))
        x = width * (across[rank] + chance.uniform(-0.02, 0.02))
        y = edge + (height - edge) * (0.22 + 0.11 * rank + chance.uniform(0, 0.04))
        shadow = tint(halo(256, 0.8, 0.5).resize((round(side * 1.05), max(1, round(side * 0.2)))), (30, 18, 24))
        layers.append(Layer(shadow, round(x - side * 0.42), round(y - side * 0.13), Motion(depth=0.3)))
        picture = things.sprite(subject.name, side, subject.colour, chance)
        layers.append(Layer(picture, round(x - side / 2), round(y - picture.height), Motion(depth=0.3)))
    return layers
