"""Draw creatures: animals, a robot, an astronaut and a person."""

from __future__ import annotations

import random
from collections.abc import Callable

from PIL import Image

from penstock_atelier.renderers import faces
from penstock_atelier.renderers.palette import Colour, lighten, mix, rgb, saturate
from penstock_atelier.renderers.pen import INK, WHITE, Pen, corners


def draw_creature(name: str, side: int, colour: Colour | None, rng: random.Random) -> Image.Image:
    """A square RGBA image of the creature, standing on its lower edge."""
    pen = Pen(side)
    if name in faces.FACES:
        faces.draw(pen, faces.FACES[name], colour, rng)
    else:
        OTHERS[name](pen, colour, rng)
    return pen.render()


def _owl(pen: Pen, colour: Colour | None, rng: random.Random) -> None:
    coat = colour or lighten(rgb("8a6446"), rng.uniform(-0.04, 0.04))
    pale = mix(coat, rgb("f6e8cd"), 0.72)
    pen.symmetric_blob("50,16 33,17 24,34 22,66 30,95 50,102", coat)
    pen.blob_pair("30,30 26.5,11.5 36,16.5 47,20", coat)
    pen.symmetric_blob("50,50 36,55 32,72 37,92 50,97", pale)
    for row in range(5):
        for place in range(4 - row % 2):
            x = 0.5 + (place - (3 - row % 2) / 2) * 0.068
            y = 0.63 + row * 0.062
            pen.stroke([(x - 0.018, y), (x, y + 0.018), (x + 0.018, y)], 0.011, mix(coat, pale, 0.25))
    pen.blob_pair("25,48 20,66 23.5,86 30,93 32.5,70", lighten(coat, -0.07))
    pen.oval_pair((0.4, 0.36), 0.118, 0.118, pale)
    pen.oval_pair((0.405, 0.365), 0.074, 0.074, rgb("e9a93a"))
    pen.oval_pair((0.41, 0.365), 0.043, 0.043, INK)
    pen.oval_pair((0.395, 0.345), 0.014, 0.014, WHITE)
    pen.symmetric_blob("50,39.5 47.2,42 50,49", rgb("e08a2e"))


def _bird(pen: Pen, colour: Colour | None, rng: random.Random) -> None:
    coat = colour or rng.choice((rgb("3f7fae"), rgb("c4553a"), rgb("5d9a62"), rgb("d99a35")))
    belly = mix(coat, rgb("fbe9c9"), 0.75)
    branch = rgb("5b4031")
    pen.stroke("4,93 30,88.5 70,90 96,86", 0.03, branch)
    pen.stroke("72,90 82,83 89,80", 0.015, branch)
    for x, y, turn in ((0.9, 0.775, -0.6), (0.84, 0.8, 0.9), (0.12, 0.885, -0.9), (0.2, 0.93, 0.7)):
        pen.oval((x, y), 0.052, 0.02, rgb("6f9a5a"), turn)
    pen.blob("20,66 0,86 3,90 14,84 30,78", lighten(coat, -0.09))
    pen.blob("18,70 26,50 42,34 52,20 68,17 79,27 77,42 74,62 60,82 36,86", coat)
    pen.blob("76,40 73.5,62 60,80 44,83 52,62 66,42", belly)
    pen.blob("27,55 40,46 55,52 53,66 36,75 13,80", lighten(coat, -0.11))
    pen.blob("30,57 41,51 50,55 47,63 33,69", lighten(coat, -0.04))
    pen.polygon("78,27 92,31.5 77.5,35", rgb("e8a33c"))
    pen.oval((0.685, 0.275), 0.03, 0.032, INK)
    pen.oval((0.694, 0.264), 0.009, 0.01, WHITE)
    for x in (0.45, 0.54):
        pen.stroke([(x, 0.83), (x + 0.01, 0.885)], 0.013, rgb("c98a3a"))


def _penguin(pen: Pen, colour: Colour | None, rng: random.Random) -> None:
    coat = colour or rgb("2b3142")
    pen.blob_pair("27,50 14,68 13,80 24,74 31,62", lighten(coat, -0.03))
    pen.symmetric_blob("50,11 36,16 32,34 24,56 26,86 37,97 50,98", coat)
    pen.symmetric_blob("50,45 36,50 31.5,68 36,90 50,94.5", WHITE)
    pen.oval_pair((0.425, 0.315), 0.085, 0.1, WHITE)
    pen.symmetric_blob("50,45 38.5,44 33,52 42,52", mix(WHITE, rgb("f3c04f"), 0.55))
    pen.oval_pair((0.435, 0.3), 0.023, 0.028, INK)
    pen.oval_pair((0.428, 0.29), 0.008, 0.009, WHITE)
    pen.symmetric_blob("50,33 45,35 50,40.5", rgb("eb9a3c"))
    pen.oval_pair((0.395, 0.965), 0.085, 0.034, rgb("eb9a3c"))


def _fish(pen: Pen, colour: Colour | None, rng: random.Random) -> None:
    coat = colour or rng.choice((rgb("ef7d33"), rgb("e9b23a"), rgb("3f8fb5"), rgb("d6557a")))
    fin = lighten(saturate(coat, 1.1), -0.09)
    pen.blob("25,50 9,28 2,34 8,50 2,67 10,73", fin)
    pen.blob("36,36 46,17 62,20 70,36", fin)
    pen.blob("46,66 48,80 60,79 62,66", fin)
    pen.blob("20,50 34,35 58,28.5 80,37 92.5,50 80,64 58,71 34,65", coat)
    pen.blob("34,65 58,70.5 80,63.5 91,52 70,58.5 50,60", mix(coat, WHITE, 0.6))
    for x in (0.42, 0.6):
        pen.blob(
            [(x, 0.325), (x + 0.045, 0.31), (x + 0.075, 0.5), (x + 0.045, 0.695), (x, 0.68), (x + 0.03, 0.5)],
            mix(coat, WHITE, 0.85),
        )
    pen.blob("56,52 46,50 43,57 50,60", fin)
    pen.oval((0.79, 0.455), 0.042, 0.042, WHITE)
    pen.oval((0.798, 0.457), 0.026, 0.026, INK)
    pen.oval((0.806, 0.447), 0.008, 0.008, WHITE)


def _whale(pen: Pen, colour: Colour | None, rng: random.Random) -> None:
    coat = colour or rgb("41688f")
    pale = mix(coat, WHITE, 0.75)
    pen.blob("14,50 7,36 0,30 3,40 12,44 19,30 27,31 21,42", coat)
    pen.blob("12,42 26,50 40,40 62,33 84,36 96.5,50 94,63 72,73 46,72 26,62", coat)
    pen.blob("42,71 60,62 80,58.5 95.5,57.5 93,64.5 72,73.5 52,73.5", pale)
    for step in range(4):
        x = 0.56 + 0.1 * step
        groove = [(x - 0.06, 0.71 - step * 0.015), (x, 0.67 - step * 0.017), (x + 0.075, 0.64 - step * 0.013)]
        pen.stroke(groove, 0.007, mix(pale, coat, 0.5))
    pen.blob("56,63 48,74 47,85 56,80 64,67", lighten(coat, -0.07))
    pen.oval((0.8, 0.515), 0.017, 0.019, INK)
    pen.oval((0.806, 0.508), 0.005, 0.006, WHITE)
    for lean in (-1, 1):
        spout = [(0.0, 0.33), (0.015, 0.24), (0.075, 0.19), (0.1, 0.235)]
        pen.stroke([(0.72 + lean * x, y) for x, y in spout], 0.016, mix(WHITE, rgb("8fd0e6"), 0.5))


def _butterfly(pen: Pen, colour: Colour | None, rng: random.Random) -> None:
    wing = colour or rng.choice((rgb("e5852f"), rgb("4b7fc4"), rgb("c55b9a"), rgb("e9b83a")))
    edge = mix(wing, INK, 0.75)
    upper = "48.5,47 40,25 20,10 6,16 8,36 22,50 40,54"
    lower = "48,53 34,55 18,60 14,76 26,88 39,80 46,64"
    for shape in (upper, lower):
        points = corners(shape)
        middle = (sum(x for x, _ in points) / len(points), sum(y for _, y in points) / len(points))
        for inset, tone in ((0.0, edge), (0.2, wing), (0.62, mix(wing, WHITE, 0.5))):
            pen.blob_pair([(x + (middle[0] - x) * inset, y + (middle[1] - y) * inset) for x, y in points], tone)
    for x, y in corners("11.5,20 10,26 11,32 21,82 28,84.5"):
        pen.oval_pair((x, y), 0.013, 0.013, WHITE)
    pen.symmetric_blob("50,36 47.7,42 47.4,58 48.8,74 50,78", INK)
    for direction in (-1, 1):
        pen.stroke([(0.5, 0.38), (0.5 + direction * 0.05, 0.27), (0.5 + direction * 0.11, 0.22)], 0.008, INK)


def _robot(pen: Pen, colour: Colour | None, rng: random.Random) -> None:
    metal = colour or rng.choice((rgb("9fb4c0"), rgb("c9a25f"), rgb("7fa58f")))
    dark = mix(metal, INK, 0.6)
    glow = rng.choice((rgb("7ff0e0"), rgb("ffd166"), rgb("ff8f70")))
    pen.stroke("50,26 50,13", 0.014, dark)
    pen.oval((0.5, 0.115), 0.03, 0.03, glow)
    pen.box(0.2, 0.35, 0.8, 0.53, lighten(metal, -0.12), 0.04)
    pen.box(0.25, 0.24, 0.75, 0.62, metal, 0.09)
    pen.box(0.305, 0.32, 0.695, 0.535, mix(INK, metal, 0.15), 0.06)
    pen.oval_pair((0.41, 0.415), 0.048, 0.048, glow)
    pen.oval_pair((0.41, 0.415), 0.02, 0.02, WHITE)
    pen.stroke("44,49 50,51 56,49", 0.012, glow)
    pen.box(0.45, 0.6, 0.55, 0.7, dark)
    pen.box(0.22, 0.67, 0.78, 1.08, lighten(metal, -0.04), 0.1)
    pen.box(0.36, 0.75, 0.64, 0.92, mix(metal, WHITE, 0.35), 0.03)
    for step, light in enumerate((glow, rgb("ff7a66"), rgb("ffd166"))):
        pen.oval((0.43 + 0.07 * step, 0.83), 0.022, 0.022, light)
    for x, y in ((0.28, 0.28), (0.72, 0.28), (0.28, 0.58), (0.72, 0.58)):
        pen.oval((x, y), 0.009, 0.009, dark)


def _astronaut(pen: Pen, colour: Colour | None, rng: random.Random) -> None:
    suit = rgb("eef0f2")
    trim = colour or rng.choice((rgb("e4672e"), rgb("3f7fc4"), rgb("d9a032")))
    pen.box(0.27, 0.5, 0.73, 1.05, mix(suit, INK, 0.35), 0.06)
    pen.symmetric_blob("50,62 33,65 20,78 16,106 50,110", suit)
    pen.box(0.37, 0.78, 0.63, 0.95, mix(suit, INK, 0.12), 0.03)
    for step, light in enumerate((trim, rgb("69b58a"), rgb("e9c04f"))):
        pen.box(0.4 + 0.07 * step, 0.81, 0.45 + 0.07 * step, 0.85, light, 0.01)
    pen.blob_pair("21,80 18,92 28,94 29,84", trim)
    pen.oval((0.5, 0.4), 0.27, 0.265, suit)
    pen.oval((0.5, 0.41), 0.205, 0.19, mix(INK, rgb("1f3a63"), 0.5))
    pen.blob("33,40 38,29 50,25.5 46,33 38,42", mix(rgb("5d86b8"), WHITE, 0.15))
    pen.oval((0.6, 0.5), 0.05, 0.028, rgb("3f5f8f"), -0.6)
    pen.oval((0.41, 0.33), 0.02, 0.032, WHITE, 0.6)
    pen.oval_pair((0.235, 0.41), 0.035, 0.07, trim)


def _person(pen: Pen, colour: Colour | None, rng: random.Random) -> None:
    """Without a face, so that it resembles nobody."""
    skin = rng.choice((rgb("f1c9a5"), rgb("d9a074"), rgb("a86f4a"), rgb("7a4b32"), rgb("f6d7be")))
    hair = rng.choice((rgb("2c2024"), rgb("5b3624"), rgb("a8652e"), rgb("d9b26a"), rgb("8f8a8c")))
    dress = colour or rng.choice((rgb("b5473a"), rgb("2f6a7a"), rgb("d99a3a"), rgb("5a4a80"), rgb("4c7a54")))
    long = rng.random() < 0.5
    if long:
        pen.symmetric_blob("50,14 33,18 26,38 27,62 22,80 38,84 50,80", hair)
    pen.symmetric_blob("50,66 40,70 25,77 17,90 14,110 50,112", dress)
    pen.symmetric_blob("50,55 43.5,58 43,70 46,77 50,79", lighten(skin, -0.05))
    pen.symmetric_blob("50,20 37,25 34.5,42 38,56 45,64 50,66", skin)
    pen.oval_pair((0.345, 0.45), 0.025, 0.04, skin)
    if long:
        pen.blob("34,46 34,30 42,20 55,17 65,25 66.5,45 61,33 50,28 40,34", hair)
    else:
        pen.blob("34.5,40 31,27 38,16 50,12 63,14 69,26 65.5,41 63,31 52,27 40,30", hair)
    pen.symmetric_blob("50,79 44,76 40,71 37,73 43,84 50,90", lighten(dress, 0.1))
    pen.oval_pair((0.405, 0.525), 0.03, 0.02, mix(skin, rgb("e0705f"), 0.35))


OTHERS: dict[str, Callable[[Pen, Colour | None, random.Random], None]] = {
    "owl": _owl,
    "bird": _bird,
    "penguin": _penguin,
    "fish": _fish,
    "whale": _whale,
    "butterfly": _butterfly,
    "robot": _robot,
    "astronaut": _astronaut,
    "person": _person,
}
SWIMMERS = frozenset({"fish", "whale"})
KNOWN = frozenset({*faces.FACES, *OTHERS})
