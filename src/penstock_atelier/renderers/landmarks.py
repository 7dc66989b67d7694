"""Draw objects of a landscape: houses, boats, towers, balloons, single trees."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

from penstock_atelier.renderers.palette import Colour, lighten, mix, rgb
from penstock_atelier.renderers.pen import INK, WHITE, Pen

Artist = Callable[[Pen, Colour | None, random.Random], None]
WOOD = rgb("7a5338")


def _boat(pen: Pen, colour: Colour | None, rng: random.Random) -> None:
    sail = colour or rng.choice((rgb("f6efe0"), rgb("d9513c"), rgb("f2c14e")))
    pen.stroke("48,8 48,80", 0.016, WOOD, curved=False)
    pen.polygon(((0.5, 0.1), (0.5, 0.7), (0.86, 0.7)), sail)
    pen.polygon(((0.46, 0.2), (0.46, 0.7), (0.18, 0.7)), lighten(sail, -0.06))
    pen.polygon(((0.48, 0.05), (0.48, 0.1), (0.6, 0.075)), rgb("d9513c"))
    pen.blob("8,76 30,79 70,79 94,74 84,90 68,96 30,96 16,90", rgb("6b3f2a"))
    pen.blob("8,76 30,79 70,79 94,74 92,79 70,84 30,84 10,81", rgb("efe3cb"))


def _house(pen: Pen, colour: Colour | None, rng: random.Random) -> None:
    wall = colour or rng.choice((rgb("efe3cc"), rgb("b5473a"), rgb("8fa6b5"), rgb("d9a86a")))
    roof = mix(rgb("7a3a2c"), wall, 0.1)
    pen.box(0.66, 0.2, 0.75, 0.5, lighten(roof, -0.08))
    pen.box(0.18, 0.5, 0.82, 1.02, wall)
    pen.polygon(((0.1, 0.54), (0.5, 0.18), (0.9, 0.54)), roof)
    pen.box(0.43, 0.72, 0.57, 1.02, rgb("5b3a2a"), 0.02)
    for x in (0.25, 0.63):
        pen.box(x, 0.62, x + 0.12, 0.76, rgb("ffe9a8"), 0.01)
        pen.stroke([(x + 0.06, 0.62), (x + 0.06, 0.76)], 0.01, rgb("5b3a2a"), curved=False)
        pen.stroke([(x, 0.69), (x + 0.12, 0.69)], 0.01, rgb("5b3a2a"), curved=False)


def _lighthouse(pen: Pen, colour: Colour | None, rng: random.Random) -> None:
    stripe = colour or rgb("c8382f")
    pen.polygon(((0.41, 0.26), (0.59, 0.26), (0.66, 1.02), (0.34, 1.02)), WHITE)
    for number in range(3):
        top = 0.34 + number * 0.25
        wide = 0.09 + (top - 0.26) * 0.092
        pen.polygon(
            ((0.5 - wide, top), (0.5 + wide, top), (0.51 + wide, top + 0.12), (0.49 - wide, top + 0.12)), stripe
        )
    pen.box(0.37, 0.23, 0.63, 0.27, INK, 0.01)
    pen.box(0.43, 0.13, 0.57, 0.24, rgb("fff0b0"))
    pen.polygon(((0.4, 0.14), (0.5, 0.04), (0.6, 0.14)), stripe)


def _castle(pen: Pen, colour: Colour | None, rng: random.Random) -> None:
    stone = rgb("b3a897")
    roof = colour or rng.choice((rgb("5a4a80"), rgb("8f3a3a"), rgb("3f5f7a")))
    for x, wide, top in (
        (0.1, 0.16, 0.45),
        (0.74, 0.16, 0.45),
        (0.27, 0.14, 0.32),
        (0.59, 0.14, 0.32),
        (0.42, 0.16, 0.2),
    ):
        pen.box(x, top, x + wide, 1.02, lighten(stone, 0.04 if x == 0.42 else -0.03))
        pen.polygon(((x - 0.02, top), (x + wide / 2, top - 0.19), (x + wide + 0.02, top)), roof)
        pen.box(x + wide / 2 - 0.014, top + 0.07, x + wide / 2 + 0.014, top + 0.14, rgb("4a4038"), 0.014)
    pen.box(0.16, 0.68, 0.84, 1.02, stone)
    for number in range(9):
        pen.box(0.16 + number * 0.0765, 0.64, 0.2 + number * 0.0765, 0.69, stone)
    pen.box(0.43, 0.8, 0.57, 1.02, rgb("4a3426"), 0.06)


def _windmill(pen: Pen, colour: Colour | None, rng: random.Random) -> None:
    pen.polygon(((0.4, 0.36), (0.6, 0.36), (0.7, 1.02), (0.3, 1.02)), colour or rgb("efe6d4"))
    pen.symmetric_blob("50,27 41,31 38.5,38 50,39", rgb("7a4a35"))
    pen.box(0.45, 0.84, 0.55, 1.02, WOOD, 0.02)
    pen.box(0.465, 0.55, 0.535, 0.63, rgb("5f7f8f"), 0.01)
    for quarter in range(4):
        angle = math.tau * quarter / 4 + 0.6
        cos, sin = math.cos(angle), math.sin(angle)
        arm = [
            (along * cos - across * sin + 0.5, along * sin + across * cos + 0.36)
            for along, across in ((0.05, 0.0), (0.08, 0.07), (0.34, 0.07), (0.34, 0.0))
        ]
        pen.polygon(arm, rgb("d8c7a8"))
        pen.stroke([(0.5, 0.36), (0.5 + cos * 0.35, 0.36 + sin * 0.35)], 0.013, WOOD, curved=False)
    pen.oval((0.5, 0.36), 0.022, 0.022, INK)


def _tent(pen: Pen, colour: Colour | None, rng: random.Random) -> None:
    cloth = colour or rng.choice((rgb("e0853a"), rgb("d9b84a"), rgb("5f9a8f")))
    pen.polygon(((0.5, 0.4), (0.96, 1.0), (0.04, 1.0)), cloth)
    pen.polygon(((0.5, 0.4), (0.96, 1.0), (0.62, 1.0)), lighten(cloth, -0.1))
    pen.polygon(((0.47, 0.5), (0.56, 1.0), (0.32, 1.0)), rgb("ffe9b0"))


def _balloon(pen: Pen, colour: Colour | None, rng: random.Random) -> None:
    skin = colour or rng.choice((rgb("d9513c"), rgb("e9a63a"), rgb("3f8fa5"), rgb("8a5aa0"), rgb("e0708f")))
    stripe = mix(skin, rgb("fff3dc"), 0.75)
    pen.symmetric_blob("50,3 33,6 21,20 20,38 29,54 43,68 50,69", skin)
    for half in (0.62, 0.24):
        tone = stripe if half == 0.62 else skin
        pen.symmetric_blob(
            [
                (0.5, 0.03),
                *(
                    (0.5 - (0.5 - x) * half, y)
                    for x, y in ((0.33, 0.06), (0.21, 0.2), (0.2, 0.38), (0.29, 0.54), (0.43, 0.68))
                ),
                (0.5, 0.69),
            ],
            tone,
        )
    for x in (0.44, 0.56):
        pen.stroke([(x, 0.68), (0.5 + (x - 0.5) * 0.8, 0.82)], 0.006, WOOD, curved=False)
    pen.box(0.44, 0.81, 0.56, 0.91, rgb("8a5c38"), 0.02)
    pen.box(0.435, 0.805, 0.565, 0.83, rgb("b58550"), 0.01)


def _rocket(pen: Pen, colour: Colour | None, rng: random.Random) -> None:
    trim = colour or rgb("d9483c")
    pen.symmetric_blob("50,78 41,80 44,92 50,102", rgb("f6a030"))
    pen.symmetric_blob("50,78 45,80 47,88 50,95", rgb("ffe9a0"))
    pen.blob_pair("38,56 26,70 25,84 38,76", trim)
    pen.symmetric_blob("50,4 41,18 36,40 37,66 42,79 50,80", rgb("eceff1"))
    pen.symmetric_blob("50,4 44.5,12 40.5,20 50,22", trim)
    pen.oval((0.5, 0.38), 0.066, 0.066, trim)
    pen.oval((0.5, 0.38), 0.048, 0.048, rgb("6fb5d6"))
    pen.oval((0.485, 0.362), 0.014, 0.014, WHITE)


def _plane(pen: Pen, colour: Colour | None, rng: random.Random) -> None:
    body = colour or rgb("f1f2f3")
    pen.blob("10,38 4,24 12,24 24,40", lighten(body, -0.1))
    pen.blob("6,46 30,40 74,41 92,46 97,51 88,57 40,58 16,54", body)
    pen.polygon(((0.42, 0.5), (0.6, 0.5), (0.4, 0.82), (0.3, 0.82)), lighten(body, -0.09))
    pen.polygon(((0.46, 0.44), (0.58, 0.44), (0.45, 0.24), (0.39, 0.24)), lighten(body, -0.05))
    for number in range(7):
        pen.oval((0.34 + number * 0.065, 0.475), 0.013, 0.013, rgb("5f8fb0"))
    pen.blob("84,46 92,47.5 94,50 86,50", rgb("5f8fb0"))


def _kite(pen: Pen, colour: Colour | None, rng: random.Random) -> None:
    cloth = colour or rgb("e0584a")
    pen.stroke("50,62 42,72 54,82 46,92 56,99", 0.009, INK)
    quarters = ("50,4 50,30 26,30", "50,4 74,30 50,30", "26,30 50,30 50,64", "50,30 74,30 50,64")
    for quarter, tone in zip(quarters, (cloth, rgb("f3c04b"), rgb("4f9ab5"), lighten(cloth, -0.08)), strict=True):
        pen.polygon(quarter, tone)
    for x, y in ((0.43, 0.73), (0.53, 0.83), (0.47, 0.92)):
        pen.oval((x, y), 0.035, 0.014, cloth, 0.4)


def _umbrella(pen: Pen, colour: Colour | None, rng: random.Random) -> None:
    cloth = colour or rgb("c8382f")
    pen.stroke("50,16 50,88 55,95 61,91", 0.02, WOOD)
    pen.symmetric_blob("50,14 30,20 15,36 10,54 23,50 36,55 50,50", cloth)
    pen.symmetric_blob("50,14 43,24 38,40 36.5,54 50,49", lighten(cloth, 0.06))
    pen.stroke("50,9 50,15", 0.016, WOOD)


def _oak(pen: Pen, colour: Colour | None, rng: random.Random) -> None:
    leaf = colour or rng.choice((rgb("5d8f4a"), rgb("7a9a3f"), rgb("c9742e"), rgb("d99ab0")))
    pen.polygon(((0.46, 0.55), (0.54, 0.55), (0.57, 1.0), (0.43, 1.0)), rgb("5b4030"))
    pen.stroke("50,72 62,60 70,52", 0.028, rgb("5b4030"))
    pen.stroke("49,66 38,56 32,48", 0.024, rgb("5b4030"))
    for ring, count in ((0.0, 13), (0.05, 13), (0.1, 11)):
        for number in range(count):
            angle = math.tau * number / count + ring * 9
            reach = (0.27 - ring * 1.6) * rng.uniform(0.85, 1.1)
            tone = lighten(leaf, -0.09 + ring * 1.5 + rng.uniform(-0.02, 0.02))
            pen.oval(
                (0.5 - ring * 0.5 + math.cos(angle) * reach * 1.15, 0.36 - ring * 0.4 + math.sin(angle) * reach * 0.9),
                0.125 - ring * 0.3,
                0.115 - ring * 0.3,
                tone,
            )


def _palm(pen: Pen, colour: Colour | None, rng: random.Random) -> None:
    leaf = colour or rgb("4f8a55")
    pen.stroke("44,101 47,74 52,50 58,30", 0.04, rgb("7a5a3c"))
    for number in range(9):
        angle = math.pi + number * math.pi / 8
        tip = (0.58 + math.cos(angle) * 0.4, 0.3 + math.sin(angle) * 0.22 + 0.13)
        middle = (0.58 + math.cos(angle) * 0.22, 0.28 + math.sin(angle) * 0.2)
        tone = lighten(leaf, -0.05 + 0.035 * (number % 3))
        pen.blob([(0.58, 0.3), (middle[0], middle[1] - 0.035), tip, (middle[0], middle[1] + 0.03)], tone)
    for x, y in ((0.555, 0.325), (0.6, 0.335), (0.58, 0.35)):
        pen.oval((x, y), 0.022, 0.022, rgb("6b4a2c"))


OUTDOORS: dict[str, Artist] = {
    "boat": _boat,
    "house": _house,
    "lighthouse": _lighthouse,
    "castle": _castle,
    "windmill": _windmill,
    "tent": _tent,
    "balloon": _balloon,
    "rocket": _rocket,
    "plane": _plane,
    "kite": _kite,
    "umbrella": _umbrella,
    "oak": _oak,
    "palm": _palm,
}
AIRBORNE = frozenset({"balloon", "rocket", "plane", "kite"})
