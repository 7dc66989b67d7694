"""Draw things that stand on a table: cups, fruit, flowers, books and others."""

from __future__ import annotations

import math
import random

from PIL import Image

from penstock_atelier.renderers import landmarks
from penstock_atelier.renderers.landmarks import WOOD, Artist
from penstock_atelier.renderers.palette import Colour, lighten, mix, rgb
from penstock_atelier.renderers.pen import INK, WHITE, Pen

GREEN = rgb("5f8f52")
CLAY = rgb("bf6a45")


def draw_thing(name: str, side: int, colour: Colour | None, rng: random.Random) -> Image.Image:
    """A square RGBA image of a thing or landmark, standing on its lower edge."""
    pen = Pen(side)
    (TABLE | landmarks.OUTDOORS | {"saguaro": _saguaro})[name](pen, colour, rng)
    return pen.render()


def _cup(pen: Pen, colour: Colour | None, rng: random.Random) -> None:
    china = colour or rng.choice((rgb("f3ece0"), rgb("8fb0b5"), rgb("d9825b"), rgb("4f6d7a")))
    pen.oval((0.47, 0.93), 0.36, 0.05, lighten(china, -0.08))
    pen.oval((0.47, 0.92), 0.3, 0.035, china)
    pen.stroke("70,58 84,56 87,68 80,77 68,78", 0.045, lighten(china, -0.05))
    pen.blob("20,48 22,70 30,86 47,91 64,86 72,70 74,48", china)
    pen.oval((0.47, 0.48), 0.27, 0.062, lighten(china, -0.06))
    pen.oval((0.47, 0.487), 0.24, 0.048, rgb("4a2c1c"))
    pen.blob("34,49 42,46.5 52,47 58,49 50,51 41,51", rgb("c99a68"))
    for x in (0.4, 0.54):
        for step in range(6):
            y = 0.38 - step * 0.05
            sway = math.sin(step * 1.1 + x * 20) * 0.022
            pen.oval((x + sway, y), 0.014 + step * 0.002, 0.034, mix(WHITE, china, 0.2))


def _teapot(pen: Pen, colour: Colour | None, rng: random.Random) -> None:
    china = colour or rng.choice((rgb("5f8a8b"), rgb("c95f3f"), rgb("d9a441"), rgb("3f4f6b")))
    pen.stroke("24,70 8,66 8,52 18,46 28,50", 0.045, lighten(china, -0.07))
    pen.blob("68,76 84,66 90,48 97,45 94,52 88,72 70,88", lighten(china, -0.04))
    pen.blob("20,68 26,50 48,42 70,50 76,68 68,88 48,93 28,88", china)
    pen.oval((0.48, 0.465), 0.15, 0.035, lighten(china, 0.06))
    pen.oval((0.48, 0.41), 0.035, 0.035, lighten(china, -0.08))
    pen.blob("30,60 36,54 40,56 34,66 32,74", lighten(china, 0.16))


def _vase(pen: Pen, colour: Colour | None, rng: random.Random) -> None:
    clay = rng.choice((rgb("4f7a8a"), rgb("e9dfcf"), rgb("b5573c"), rgb("37506b")))
    petals = [colour] if colour else [rgb("e8616a"), rgb("f2b04a"), rgb("f6f0e6"), rgb("d98ac0"), rgb("8a6fc0")]
    blooms = []
    for number in range(9):
        angle = -math.pi / 2 + (number - 4) * 0.27 + rng.uniform(-0.06, 0.06)
        reach = rng.uniform(0.34, 0.5) * (1 - abs(number - 4) * 0.03)
        blooms.append((0.5 + math.cos(angle) * reach * 0.95, 0.6 + math.sin(angle) * reach, number))
    for x, y, _ in blooms:
        pen.stroke([(0.5, 0.68), ((0.5 + x) / 2 + (x - 0.5) * 0.12, (0.62 + y) / 2), (x, y)], 0.011, rgb("4f7d48"))
    for number in range(8):
        angle = -math.pi / 2 + (number - 3.5) * 0.36
        pen.oval(
            (0.5 + math.cos(angle) * 0.24, 0.6 + math.sin(angle) * 0.2),
            0.08,
            0.026,
            lighten(GREEN, 0.03 * (number % 3)),
            angle,
        )
    for x, y, number in blooms:
        _bloom(pen, (x, y), rng.uniform(0.058, 0.085), petals[number % len(petals)], rng)
    pen.symmetric_blob("50,62 41,63 40,69 32,80 35,93 42,98 50,98.5", clay)
    pen.oval((0.5, 0.625), 0.092, 0.018, lighten(clay, -0.1))


def _bloom(pen: Pen, at: tuple[float, float], reach: float, colour: Colour, rng: random.Random) -> None:
    turn = rng.random()
    for ring, share in ((0.0, 1.0), (0.3, 0.62)):
        for petal in range(7):
            angle = turn + ring + math.tau * petal / 7
            centre = (at[0] + math.cos(angle) * reach * 0.55 * share, at[1] + math.sin(angle) * reach * 0.55 * share)
            tone = lighten(colour, -0.05 + 0.03 * (petal % 2) + 0.07 * ring)
            pen.oval(centre, reach * 0.52 * share, reach * 0.34 * share, tone, angle)
    pen.oval(at, reach * 0.24, reach * 0.24, rgb("f0c24b"))


def _bottle(pen: Pen, colour: Colour | None, rng: random.Random) -> None:
    glass = colour or rng.choice((rgb("3f6b4a"), rgb("5a2f3a"), rgb("4b7f8c")))
    pen.symmetric_blob("50,8 45.5,8.5 45.5,32 36,45 35,70 35.5,96 50,98", glass)
    pen.box(0.445, 0.06, 0.555, 0.14, rgb("b08a4f"), 0.01)
    pen.box(0.352, 0.58, 0.648, 0.8, rgb("f1e6cd"), 0.005)
    pen.box(0.39, 0.63, 0.61, 0.645, mix(glass, INK, 0.3))
    pen.box(0.42, 0.69, 0.58, 0.7, mix(glass, INK, 0.1))
    pen.blob("39,48 41,46 40.5,56 38.5,56", mix(glass, WHITE, 0.5))


def _round_fruit(skin: Colour, leaf: bool, squash: float) -> Artist:
    def draw(pen: Pen, colour: Colour | None, rng: random.Random) -> None:
        tone = colour or lighten(skin, rng.uniform(-0.02, 0.03))
        wide = 0.3
        low = 0.97
        top = low - 0.6 * squash
        pen.symmetric_blob(
            [
                (0.5, top + 0.035),
                (0.36, top),
                (0.5 - wide, top + 0.22 * squash),
                (0.23, low - 0.16),
                (0.39, low),
                (0.5, low - 0.012),
            ],
            tone,
        )
        pen.oval((0.5, top + 0.045), 0.07, 0.02, lighten(tone, -0.1))
        pen.stroke([(0.5, top + 0.05), (0.51, top - 0.03), (0.54, top - 0.09)], 0.02, WOOD)
        if leaf:
            pen.blob([(0.53, top - 0.03), (0.6, top - 0.12), (0.73, top - 0.12), (0.66, top - 0.02)], GREEN)
        pen.oval((0.37, top + 0.2), 0.035, 0.07, mix(tone, WHITE, 0.45), 0.5)

    return draw


def _pear(pen: Pen, colour: Colour | None, rng: random.Random) -> None:
    skin = colour or rgb("c3b347")
    pen.symmetric_blob("50,28 42,31 40,46 29,62 26,80 36,96 50,97.5", skin)
    pen.stroke("50,30 51,22 56,15", 0.02, WOOD)
    pen.blob("53,21 60,13 72,14 64,22", GREEN)
    pen.oval((0.37, 0.68), 0.035, 0.09, mix(skin, WHITE, 0.4), 0.3)


def _lemon(pen: Pen, colour: Colour | None, rng: random.Random) -> None:
    skin = colour or rgb("f0cf45")
    pen.blob("12,74 22,62 44,55 68,58 82,68 90,72 82,84 64,95 38,95 20,84", skin)
    pen.oval((0.42, 0.66), 0.1, 0.022, mix(skin, WHITE, 0.55), -0.15)


def _cherry(pen: Pen, colour: Colour | None, rng: random.Random) -> None:
    skin = colour or rgb("a8203a")
    pen.stroke("34,72 42,48 60,26", 0.016, GREEN)
    pen.stroke("67,78 64,52 60,26", 0.016, GREEN)
    pen.blob("60,26 70,16 86,20 74,30", GREEN)
    for x, y in ((0.34, 0.81), (0.67, 0.85)):
        pen.oval((x, y), 0.15, 0.145, skin)
        pen.oval((x - 0.055, y - 0.05), 0.025, 0.04, mix(skin, WHITE, 0.6), 0.6)


def _bowl(pen: Pen, colour: Colour | None, rng: random.Random) -> None:
    china = colour or rng.choice((rgb("3f6d86"), rgb("d9cbb3"), rgb("7a4b3a")))
    fruit = (
        (0.3, 0.52, rgb("c8382f")),
        (0.5, 0.46, rgb("ea8a2c")),
        (0.68, 0.53, rgb("b9b045")),
        (0.42, 0.58, rgb("f0cf45")),
        (0.58, 0.6, rgb("c8382f")),
    )
    for x, y, skin in fruit:
        pen.oval((x, y), 0.145, 0.14, skin)
        pen.oval((x - 0.05, y - 0.05), 0.025, 0.04, mix(skin, WHITE, 0.5), 0.6)
    pen.stroke("50,33 51,28", 0.016, WOOD)
    pen.blob("51,30 58,23 68,25 60,32", GREEN)
    pen.symmetric_blob("50,62 30,61 10,60 16,78 32,92 42,97 50,97.5", china)
    pen.symmetric_blob("50,64.5 30,63.5 11,61.5 13,67 30,70 50,71", lighten(china, 0.1))


def _candle(pen: Pen, colour: Colour | None, rng: random.Random) -> None:
    wax = colour or rgb("f3e6cb")
    pen.oval((0.5, 0.93), 0.24, 0.045, rgb("b08a4f"))
    pen.box(0.4, 0.42, 0.6, 0.93, wax, 0.02)
    pen.oval((0.5, 0.425), 0.1, 0.025, lighten(wax, 0.03))
    pen.blob("40,43 43,43 43.5,55 41.5,60 40,55", lighten(wax, -0.05))
    pen.stroke("50,42 50,36", 0.012, INK)
    pen.symmetric_blob("50,14 44,27 45,34 50,38", rgb("f6a534"))
    pen.symmetric_blob("50,22 47,30 48,35 50,37", rgb("fff1c2"))


def _book(pen: Pen, colour: Colour | None, rng: random.Random) -> None:
    covers = [rgb("a83f3a"), rgb("2f5f7a"), rgb("c99a3c"), rgb("4f6f4a"), rgb("6a4a78")]
    rng.shuffle(covers)
    for number, top in enumerate((0.84, 0.7, 0.56)):
        shift = rng.uniform(-0.05, 0.05)
        cover = colour if colour and number == 0 else covers[number]
        pen.box(0.16 + shift, top, 0.86 + shift, top + 0.13, cover, 0.02)
        pen.box(0.2 + shift, top + 0.018, 0.87 + shift, top + 0.112, rgb("f4ead4"))
        pen.box(0.16 + shift, top, 0.24 + shift, top + 0.13, lighten(cover, -0.06), 0.02)
        for line in range(3):
            pen.box(0.26 + shift, top + 0.035 + line * 0.026, 0.865 + shift, top + 0.038 + line * 0.026, rgb("d5c6a6"))


def _lamp(pen: Pen, colour: Colour | None, rng: random.Random) -> None:
    shade = colour or rng.choice((rgb("e8c27a"), rgb("d97a5a"), rgb("8fae9a")))
    pen.oval((0.5, 0.95), 0.17, 0.035, rgb("5b4636"))
    pen.stroke("50,50 50,94", 0.028, rgb("6b5342"), curved=False)
    pen.polygon(((0.38, 0.12), (0.62, 0.12), (0.8, 0.52), (0.2, 0.52)), shade)
    pen.polygon(((0.2, 0.52), (0.8, 0.52), (0.79, 0.49), (0.21, 0.49)), lighten(shade, -0.1))
    pen.symmetric_blob("50,17 42,18 34,46 50,47", mix(shade, rgb("fff3cf"), 0.6))


def _saguaro(pen: Pen, colour: Colour | None, rng: random.Random) -> None:
    flesh = colour or rgb("4f8a5f")
    pen.stroke("30,58 20,56 19,42 19,38", 0.1, lighten(flesh, -0.03))
    pen.stroke("68,52 80,50 81,36 81,32", 0.1, lighten(flesh, -0.03))
    pen.stroke("30,58 45,60", 0.09, flesh, curved=False)
    pen.stroke("68,52 55,54", 0.09, flesh, curved=False)
    pen.box(0.39, 0.12, 0.61, 1.1, flesh, 0.11)
    for x in (0.45, 0.5, 0.55):
        pen.stroke([(x, 0.18), (x, 1.0)], 0.006, lighten(flesh, 0.14), curved=False)
    pen.oval((0.5, 0.12), 0.05, 0.035, rgb("e8708a"))


def _cactus(pen: Pen, colour: Colour | None, rng: random.Random) -> None:
    _saguaro(pen, colour, rng)
    pen.symmetric_blob("50,70 33,70 36,84 40,97 50,98", CLAY)
    pen.box(0.31, 0.68, 0.69, 0.76, lighten(CLAY, 0.05), 0.015)


def _pot(pen: Pen, colour: Colour | None, rng: random.Random) -> None:
    leaf = colour or GREEN
    for number in range(11):
        angle = -math.pi / 2 + (number - 5) * 0.24
        reach = 0.5 - abs(number - 5) * 0.022 + rng.uniform(-0.04, 0.04)
        tip = (0.5 + math.cos(angle) * reach, 0.68 + math.sin(angle) * reach)
        middle = (0.5 + math.cos(angle) * reach * 0.55, 0.68 + math.sin(angle) * reach * 0.62)
        side = (math.sin(angle) * 0.055, -math.cos(angle) * 0.055)
        tone = lighten(leaf, -0.06 + 0.05 * (number % 3))
        pen.blob(
            [(0.5, 0.7), (middle[0] + side[0], middle[1] + side[1]), tip, (middle[0] - side[0], middle[1] - side[1])],
            tone,
        )
        pen.stroke([(0.5, 0.7), middle, tip], 0.006, lighten(tone, 0.1))
    pen.symmetric_blob("50,66 32,66 35,82 39,97 50,98", CLAY)
    pen.box(0.3, 0.645, 0.7, 0.72, lighten(CLAY, 0.05), 0.015)


def _cake(pen: Pen, colour: Colour | None, rng: random.Random) -> None:
    icing = colour or rng.choice((rgb("f0a6b5"), rgb("fbf1de"), rgb("8fc3b5")))
    pen.oval((0.5, 0.94), 0.42, 0.045, rgb("e8e2d6"))
    pen.box(0.16, 0.6, 0.84, 0.93, rgb("b5763f"), 0.03)
    pen.box(0.26, 0.4, 0.74, 0.62, rgb("c98a50"), 0.03)
    for left, right, top in ((0.15, 0.85, 0.58), (0.25, 0.75, 0.385)):
        pen.box(left, top, right, top + 0.085, icing, 0.04)
        for drip in range(8):
            x = left + (right - left) * (drip + 0.5) / 8
            pen.oval((x, top + 0.075), (right - left) / 17, rng.uniform(0.03, 0.065), icing)
    for number in range(5):
        x = 0.32 + number * 0.09
        pen.box(x - 0.009, 0.28, x + 0.009, 0.39, (rgb("5f9ac0"), rgb("e4675a"), rgb("f0c24b"))[number % 3])
        pen.oval((x, 0.25), 0.014, 0.026, rgb("f7b23b"))


TABLE: dict[str, Artist] = {
    "cup": _cup,
    "teapot": _teapot,
    "vase": _vase,
    "bottle": _bottle,
    "apple": _round_fruit(rgb("c8382f"), True, 0.98),
    "orange": _round_fruit(rgb("ea8a2c"), True, 0.9),
    "pear": _pear,
    "lemon": _lemon,
    "cherry": _cherry,
    "bowl": _bowl,
    "candle": _candle,
    "book": _book,
    "lamp": _lamp,
    "cactus": _cactus,
    "pot": _pot,
    "cake": _cake,
}
