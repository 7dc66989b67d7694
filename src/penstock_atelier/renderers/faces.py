"""Draw animal faces: one drawing, and a table of what differs between animals."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass

from penstock_atelier.renderers.canvas import Point
from penstock_atelier.renderers.palette import Colour, lighten, mix, rgb, saturate
from penstock_atelier.renderers.pen import INK, WHITE, Pen, corners


@dataclass(frozen=True, slots=True)
class Face:
    """What makes one animal's face different from the others; lengths are shares of the drawing's side."""

    coat: Colour
    pale: Colour
    ear: str
    marks: str = ""
    cheeks: float = 0.27  # half the width of the head
    chin: float = 0.66
    muzzle: float = 0.1
    nose: Colour = INK
    eyes: Colour = INK
    whiskers: bool = False


ROSE = rgb("d98a8a")
AMBER = rgb("d9a441")
FACES: dict[str, Face] = {
    "fox": Face(rgb("d9662b"), rgb("fbf1e2"), "pointed", "fox", 0.29, 0.71, eyes=rgb("6a4420")),
    "cat": Face(rgb("9aa0aa"), rgb("f3efe9"), "pointed", "tabby", 0.265, 0.635, 0.075, ROSE, rgb("7fae4e"), True),
    "dog": Face(rgb("c48a52"), rgb("f7ead6"), "floppy", "", 0.25, 0.69, 0.125),
    "wolf": Face(rgb("7d8794"), rgb("eef0f2"), "pointed", "fox", 0.28, 0.7, eyes=AMBER),
    "bear": Face(rgb("8a5a37"), rgb("d9b48a"), "round", "", 0.27, 0.66, 0.125),
    "panda": Face(rgb("f5f2ea"), rgb("f5f2ea"), "round", "panda", 0.285, 0.65),
    "koala": Face(rgb("a3a9b3"), rgb("e6e7ea"), "fluffy", "koala", 0.26, 0.64),
    "rabbit": Face(rgb("cdb7a0"), rgb("fbf3ea"), "long", "", 0.23, 0.66, 0.085, ROSE, whiskers=True),
    "lion": Face(rgb("e0a552"), rgb("fae7c4"), "round", "mane", 0.235, 0.67, 0.105, rgb("7a4430")),
    "tiger": Face(rgb("e58a32"), rgb("fbf0df"), "round", "tiger", 0.275, 0.67, 0.105, ROSE, AMBER),
    "mouse": Face(rgb("b3a8a6"), rgb("efe6e2"), "huge", "", 0.2, 0.655, 0.07, ROSE, whiskers=True),
    "pig": Face(rgb("efa8a6"), rgb("f7c6c1"), "folded", "snout", 0.27, 0.65),
    "cow": Face(rgb("f4efe6"), rgb("efc9bd"), "side", "cow", 0.21, 0.72),
    "monkey": Face(rgb("7a4f35"), rgb("e8c39a"), "low", "mask", 0.24, 0.66),
    "otter": Face(rgb("7d5a41"), rgb("ddc3a0"), "small", "", 0.26, 0.64, 0.11, whiskers=True),
    "deer": Face(rgb("a8713f"), rgb("f0dcbf"), "side", "antlers", 0.185, 0.72, 0.085),
}


def draw(pen: Pen, face: Face, colour: Colour | None, rng: random.Random) -> None:
    """Draw head and shoulders; a colour replaces the coat's own."""
    if colour is None:
        coat = saturate(lighten(face.coat, rng.uniform(-0.03, 0.03)), 1.05)
        pale = face.pale
    else:
        coat = mix(face.coat, colour, 0.9)
        pale = mix(face.pale, colour, 0.12)
    panda = face.marks == "panda"
    _body(pen, INK if panda else lighten(coat, -0.035), pale)
    if face.marks == "mane":
        _mane(pen, lighten(saturate(mix(coat, rgb("8a3f1a"), 0.6), 1.1), -0.05))
    elif face.marks == "antlers":
        _antlers(pen, rgb("6e4a2c"))
    _ears(pen, face, INK if panda else coat, INK if panda else mix(pale, (236, 160, 150), 0.45))
    _head(pen, face, coat)
    if face.marks in MARKS:
        MARKS[face.marks](pen, face, coat, pale)
    else:
        pen.oval((0.5, 0.575), face.muzzle, face.muzzle * 0.78, pale)
    _eyes(pen, face)
    if face.marks not in ("snout", "cow", "koala"):
        _nose(pen, face)
    if face.whiskers:
        _whiskers(pen)


def _body(pen: Pen, coat: Colour, pale: Colour) -> None:
    pen.symmetric_blob("50,55 34,60 24,78 19,106 50,110", coat)
    pen.symmetric_blob("50,60 41,66 37.5,84 39,106 50,108", pale)


def _head(pen: Pen, face: Face, coat: Colour) -> None:
    side = face.cheeks
    low = face.chin
    half = [(0.62, 0.285), (0.97, 0.44), (1.0, 0.54), (0.55, low - 0.045)]
    pen.symmetric_blob([(0.5, 0.25), *((0.5 - side * share, y) for share, y in half), (0.5, low)], coat)


_EAR_SHAPES = {  # outer and inner outline, relative to the left edge of the head
    "pointed": ("1,44 -0.5,24 4.5,13 13,20 22,30", "4.5,38 3.5,26 6.2,18.5 11.5,23.5 15.5,32"),
    "floppy": ("10,27 -2,30 -7.5,44 -4.5,60 3,60 7,45", ""),
    "folded": ("3,37 -1,22 9,21.5 20,28 10,34", ""),
}
_EAR_SIZES = {"round": 0.085, "small": 0.052, "fluffy": 0.115, "huge": 0.145}


def _ears(pen: Pen, face: Face, coat: Colour, inner: Colour) -> None:
    left = 0.5 - face.cheeks
    if face.ear in _EAR_SHAPES:
        outer_shape, inner_shape = _EAR_SHAPES[face.ear]
        shade = {"pointed": 0.0, "floppy": 0.3, "folded": 0.12}[face.ear]
        pen.blob_pair([(x + left, y) for x, y in corners(outer_shape)], mix(coat, INK, shade))
        if inner_shape:
            pen.blob_pair([(x + left, y) for x, y in corners(inner_shape)], inner)
    elif face.ear in _EAR_SIZES:
        reach = _EAR_SIZES[face.ear]
        at = (left + 0.045 - reach * 0.25, 0.31 - reach * 0.15)
        pen.oval_pair(at, reach, reach, coat)
        pen.oval_pair((at[0], at[1] + reach * 0.08), reach * 0.62, reach * 0.62, inner)
    elif face.ear == "long":
        pen.oval_pair((0.405, 0.18), 0.06, 0.16, coat, -0.12)
        pen.oval_pair((0.405, 0.19), 0.032, 0.12, inner, -0.12)
    else:  # at the side of the head
        across = 0.095 if face.ear == "side" else 0.07
        pen.oval_pair((left - 0.055, 0.42), across, 0.052, coat, 0.25)
        pen.oval_pair((left - 0.055, 0.42), across * 0.64, 0.032, inner, 0.25)


def _fox(pen: Pen, face: Face, coat: Colour, pale: Colour) -> None:
    side = face.cheeks
    low = face.chin
    cheek = [(0.5 - side * 0.98, 0.53), (0.5 - side * 0.55, 0.485), (0.46, 0.545), (0.5, 0.62), (0.5, low - 0.002)]
    pen.blob_pair([*cheek, (0.5 - side * 0.54, low - 0.05)], pale)
    pen.symmetric_blob("50,36 47.2,47 45.5,58 50,64", coat)


def _panda(pen: Pen, face: Face, coat: Colour, pale: Colour) -> None:
    pen.oval_pair((0.395, 0.455), 0.062, 0.082, INK, 0.5)
    pen.oval((0.5, 0.575), face.muzzle, face.muzzle * 0.78, lighten(pale, 0.01))


def _mask(pen: Pen, face: Face, coat: Colour, pale: Colour) -> None:
    pen.oval_pair((0.43, 0.44), 0.1, 0.105, pale)
    pen.oval((0.5, 0.56), 0.15, 0.095, pale)


def _striped(pen: Pen, face: Face, coat: Colour, pale: Colour) -> None:
    dark = mix(coat, INK, 0.55)
    pen.oval((0.5, 0.575), face.muzzle, face.muzzle * 0.78, pale)
    for x, y, length, turn in ((0.5, 0.29, 0.045, 1.57), (0.45, 0.3, 0.04, 1.3), (0.55, 0.3, 0.04, 1.84)):
        pen.oval((x, y), length, 0.0125, dark, turn)
    for step in range(3 if face.marks == "tiger" else 2):
        pen.oval_pair((0.5 - face.cheeks * 0.8, 0.47 + 0.055 * step), 0.05, 0.0125, dark, 0.25 - 0.2 * step)


def _cow(pen: Pen, face: Face, coat: Colour, pale: Colour) -> None:
    pen.blob_pair("42,27 36,24 33,17 37.5,21.5 45,25", rgb("cbb79a"))
    pen.blob("30.5,38 40,27 47,34 44,47 33,52", rgb("4a3a35"))
    pen.oval((0.5, 0.62), 0.175, 0.105, pale)
    pen.oval_pair((0.44, 0.615), 0.018, 0.026, mix(pale, INK, 0.6))


def _snout(pen: Pen, face: Face, coat: Colour, pale: Colour) -> None:
    pen.oval((0.5, 0.545), 0.105, 0.08, lighten(coat, -0.05))
    pen.oval_pair((0.463, 0.545), 0.017, 0.03, mix(coat, INK, 0.55))


def _koala(pen: Pen, face: Face, coat: Colour, pale: Colour) -> None:
    pen.oval((0.5, 0.535), 0.048, 0.075, rgb("3a3740"))


MARKS: dict[str, Callable[[Pen, Face, Colour, Colour], None]] = {
    "fox": _fox,
    "panda": _panda,
    "mask": _mask,
    "tiger": _striped,
    "tabby": _striped,
    "cow": _cow,
    "snout": _snout,
    "koala": _koala,
}


def _eyes(pen: Pen, face: Face) -> None:
    spread = 0.115 if face.cheeks > 0.24 else 0.1
    slit = face.marks == "tabby"
    for x in (0.5 - spread, 0.5 + spread):
        if face.eyes == INK:
            pen.oval((x, 0.455), 0.027, 0.031, INK)
        else:
            pen.oval((x, 0.455), 0.034, 0.037, INK)
            pen.oval((x, 0.455), 0.028, 0.031, face.eyes)
            pen.oval((x, 0.455), 0.011 if slit else 0.017, 0.027 if slit else 0.019, INK)
        pen.oval((x + 0.009, 0.443), 0.0085, 0.0095, WHITE)


def _nose(pen: Pen, face: Face) -> None:
    y = face.chin - 0.055 if face.marks == "fox" else 0.545
    pen.symmetric_blob([(0.5, y - 0.02), (0.462, y - 0.012), (0.48, y + 0.018), (0.5, y + 0.028)], face.nose)
    pen.oval((0.49, y - 0.008), 0.011, 0.005, mix(face.nose, WHITE, 0.5))
    if face.marks != "fox":
        pen.stroke([(0.5, y + 0.02), (0.5, y + 0.048)], 0.006, INK)
        smile = [(0.455, 0.052), (0.478, 0.064), (0.5, 0.048), (0.522, 0.064), (0.545, 0.052)]
        pen.stroke([(x, y + down) for x, down in smile], 0.006, INK)


def _whiskers(pen: Pen) -> None:
    for step in range(3):
        y = 0.565 + 0.018 * step
        for direction in (-1, 1):
            hair = [(0.1, y), (0.2, y - 0.012 + 0.016 * step), (0.29, y - 0.02 + 0.03 * step)]
            pen.stroke([(0.5 + direction * x, down) for x, down in hair], 0.0035, WHITE)


def _mane(pen: Pen, colour: Colour) -> None:
    locks: list[Point] = []
    for step in range(44):
        angle = math.tau * step / 44
        reach = 0.375 if step % 2 else 0.325
        locks.append((0.5 + math.cos(angle) * reach, 0.47 + math.sin(angle) * reach * 1.02))
    pen.blob(locks, colour)
    pen.oval((0.5, 0.47), 0.3, 0.3, lighten(colour, 0.05))


def _antlers(pen: Pen, colour: Colour) -> None:
    for direction in (-1, 1):
        beam = ((0.06, 0.29), (0.12, 0.2), (0.14, 0.12), (0.22, 0.06))
        pen.stroke([(0.5 + direction * x, y) for x, y in beam], 0.018, colour)
        for x, y, to_x, to_y in ((0.115, 0.21, 0.21, 0.16), (0.135, 0.14, 0.1, 0.06), (0.17, 0.095, 0.16, 0.035)):
            pen.stroke([(0.5 + direction * x, y), (0.5 + direction * to_x, to_y)], 0.014, colour)
