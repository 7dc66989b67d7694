"""Colours: their names, mixing them in Oklab, and palettes for times of day, seasons and weather."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from functools import cache

Colour = tuple[int, int, int]
Oklab = tuple[float, float, float]


def rgb(code: str) -> Colour:
    """A colour from six hexadecimal digits."""
    value = int(code, 16)
    return value >> 16, value >> 8 & 255, value & 255


_NAMES = """
red c8342b crimson a8183c scarlet d7301f ruby 9b1b3a maroon 6b1e2a orange ea7a24 amber f2a324 coral f4795b peach f9b48a
rust a5482a yellow f3c83a gold dba632 golden dba632 mustard c99a2b green 4c9a52 emerald 1f8f66 lime 9ecb3c olive 7b7a3a
mint 9ddcc0 sage 9cb08f jade 3f9b78 teal 1f7f85 turquoise 35b5b0 cyan 4cc3d9 blue 2f6bb3 navy 1b2a52 azure 3f95d6
indigo 3c3a8c cobalt 2548a5 aqua 59c6cf sapphire 1f4fa0 purple 7a4a9e violet 8157b5 lavender b7a3de lilac c3a6d8
magenta c2358f plum 74375f pink ef8fae fuchsia d23f9a brown 7b5136 tan c9a27a beige e3d3b6 cream f6ead0 ivory f5f0de
chocolate 56331f copper b36a3c bronze 9a6b35 white f6f5f0 black 1d1c22 grey 8b8f96 gray 8b8f96 silver bfc5cb
charcoal 33363d ginger d9772b
""".split()
NAMED: dict[str, Colour] = {name: rgb(code) for name, code in zip(_NAMES[::2], _NAMES[1::2], strict=True)}


@dataclass(frozen=True, slots=True)
class Palette:
    """The colours of a scene."""

    sky: tuple[Colour, ...]  # from the top to the horizon
    light: Colour  # sun, moon, lamps
    far: Colour  # land at the horizon
    near: Colour  # land at the front
    water: Colour
    leaf: Colour
    accents: tuple[Colour, ...]
    dark: bool = False


# Name; sky from the top to the horizon; light, far, near, water, leaf; four accents.
_TABLE = """
day     2f74b8 7db7e0 cfe5ee f6eedd  fff4d6 a3bfd0 2f5f4d 3d86a8 5d9450  e4572e f3b23c fdf8ec 2f3e66
dawn    54699e b394bb f2b9a4 fde6c2  ffedc4 b19bbd 3b3b60 7d86b0 6d7f78  f08a7a fbd28a fdf1e4 4d4a7a
golden  4f7dae b9bfae f4cd8b fdebc0  fff2c8 cfa985 4d3b33 a68a63 8c7a34  d9622b f2b84b fdf3de 5b4a3f
sunset  27306f 7d3f80 e2605c fdb863  ffdf94 8f4f76 221a38 8c4a74 4d3450  ff8552 ffd07a fbe9d0 3b2559
dusk    131c44 3d427f 8d6ba2 e7a9a0  ffe3bd 6a6296 15162f 4a4f86 2f3a55  f2917a f6c89c efe3ee 2a2a58
night   060a1c 0f1a3d 22386a 49699a  fbf3d4 2f4570 070c1b 1a3159 16283c  f7c873 8fb8e8 e8eefb 10203f
storm   222b36 4a5866 7f8d94 b9bfba  e8eceb 7d8b93 20292d 46565e 3c4c42  d9a441 a9bcc4 eef1ef 2e3a44
winter  6a92ba aecbe0 e3ebf0 fbf2ea  fffaf0 a3bbd2 7f9ab5 7fa3bd 4e6b6c  c8443a e9b872 ffffff 38506b
autumn  6d97b0 b9c6bd eed9b4 faecd0  fff1cf c59d7c 5e2a1c 6f8f93 c35a1e  d1491f eaa23a fbeed6 4a2b26
spring  74b0da b9dcea f3ebee fdf3e3  fff8dc adcdb0 4c8649 6fb0bf ec9fb6  ee7d9c f8d36b fffaf2 4a6a52
desert  256f95 7fb3b3 f0cd92 f9e4be  fff2cd dca678 8c4026 6f9fa0 6d8a4e  c94f2b eaa94c fbeed4 5b3226
depths  02202f 07475f 16808f 7ccfc0  eafff2 2f8d97 04303d 0f6b7c 1f7a63  ff8a5c ffd166 eafaf4 f25f7a
space   04030e 120a2b 2b1652 5a3583  fff0d0 4a2f78 0a0619 2a1d5c 2a3a5c  ff8f6b 7ee0e6 f6e9ff b05cf0
neon    0a0524 2a0b55 821f8f ff6f91  fff3c4 56227f 0b0620 33126b 1f5e6b  24e5d2 ff3d8b ffd166 7d5cff
pastel  b5c7ef d9cdec f6d7dd fdecd9  fffaf0 c5bfdf 8fa6c2 a9cfdc a8cfae  f49ca8 f9d58b fffdf8 8a8fc4
mono    5a5e66 8d9196 c1c3c4 eceae5  ffffff a3a6aa 25272b 6d7278 4d5153  e8e6e1 9a9ca0 f7f5f1 3a3c40
"""
_DARK = frozenset({"night", "depths", "space", "neon"})


def _palettes() -> dict[str, Palette]:
    palettes = {}
    for row in _TABLE.strip().splitlines():
        name, *codes = row.split()
        colours = tuple(rgb(code) for code in codes)
        light, far, near, water, leaf = colours[4:9]
        palettes[name] = Palette(colours[:4], light, far, near, water, leaf, colours[9:], name in _DARK)
    return palettes


PALETTES = _palettes()
# The palettes of prompts that name none; a palette that is listed twice is chosen twice as often.
BY_CHANCE = ("day", "day", "dawn", "golden", "golden", "sunset", "sunset", "dusk", "night", "spring", "autumn")


def choose_palette(name: str | None, colours: tuple[Colour, ...], rng: random.Random) -> Palette:
    """The palette of this name, else one by chance; tinted with the first colour, if there is any."""
    palette = PALETTES[name or rng.choice(BY_CHANCE)]
    if not colours:
        return palette
    return replace(tint_palette(palette, colours[0], 0.6), accents=(*colours, *palette.accents))


def tint_palette(palette: Palette, colour: Colour, strength: float) -> Palette:
    """The palette with every colour moved towards one hue; lightness stays nearly the same."""
    return replace(
        palette,
        sky=tuple(_tint(step, colour, strength) for step in palette.sky),
        light=_tint(palette.light, colour, strength / 3),
        far=_tint(palette.far, colour, strength),
        near=_tint(palette.near, colour, strength),
        water=_tint(palette.water, colour, strength),
        leaf=_tint(palette.leaf, colour, strength),
    )


def _tint(value: Colour, colour: Colour, strength: float) -> Colour:
    lightness, a, b = oklab(value)
    goal, hue_a, hue_b = oklab(colour)
    # The hue is strong at middle lightness and fades towards white and black.
    room = 1 - abs(2 * lightness - 1) ** 2.5
    a, b = (old + (new * room - old) * strength for old, new in ((a, hue_a), (b, hue_b)))
    return from_oklab((lightness + (goal - lightness) * strength * 0.15, a, b))


@cache
def oklab(colour: Colour) -> Oklab:
    red, green, blue = (_linear(channel) for channel in colour)
    long = (0.4122214708 * red + 0.5363325363 * green + 0.0514459929 * blue) ** (1 / 3)
    medium = (0.2119034982 * red + 0.6806995451 * green + 0.1073969566 * blue) ** (1 / 3)
    short = (0.0883024619 * red + 0.2817188376 * green + 0.6299787005 * blue) ** (1 / 3)
    return (
        0.2104542553 * long + 0.7936177850 * medium - 0.0040720468 * short,
        1.9779984951 * long - 2.4285922050 * medium + 0.4505937099 * short,
        0.0259040371 * long + 0.7827717662 * medium - 0.8086757660 * short,
    )


def from_oklab(colour: Oklab) -> Colour:
    lightness, a, b = colour
    long = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3
    medium = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3
    short = (lightness - 0.0894841775 * a - 1.2914855480 * b) ** 3
    return (
        _display(4.0767416621 * long - 3.3077115913 * medium + 0.2309699292 * short),
        _display(-1.2684380046 * long + 2.6097574011 * medium - 0.3413193965 * short),
        _display(-0.0041960863 * long - 0.7034186147 * medium + 1.7076147010 * short),
    )


def _linear(channel: int) -> float:
    value = channel / 255
    return value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4


def _display(value: float) -> int:
    value = min(1.0, max(0.0, value))
    return round(255 * (12.92 * value if value <= 0.0031308 else 1.055 * value ** (1 / 2.4) - 0.055))


def mix(first: Colour, second: Colour, share: float) -> Colour:
    """One colour with a share of another, mixed in Oklab, where equal steps look equal."""
    channels = zip(oklab(first), oklab(second), strict=True)
    lightness, a, b = (start + (end - start) * share for start, end in channels)
    return from_oklab((lightness, a, b))


def lighten(colour: Colour, amount: float) -> Colour:
    """The colour made lighter by a share of the whole range; darker when negative."""
    lightness, a, b = oklab(colour)
    return from_oklab((min(1.0, max(0.0, lightness + amount)), a, b))


def saturate(colour: Colour, factor: float) -> Colour:
    """The colour with its saturation multiplied."""
    lightness, a, b = oklab(colour)
    return from_oklab((lightness, a * factor, b * factor))


def ramp(stops: tuple[Colour, ...], steps: int) -> list[Colour]:
    """Colours in even steps through all stops."""
    if len(stops) == 1 or steps == 1:
        return [stops[0]] * steps
    keys = [_on_stops(stops, key / 64) for key in range(65)]  # mixing is slow, so values between these are averaged
    return [_between(keys, step / (steps - 1) * 64) for step in range(steps)]


def _on_stops(stops: tuple[Colour, ...], share: float) -> Colour:
    position = share * (len(stops) - 1)
    index = min(len(stops) - 2, int(position))
    return mix(stops[index], stops[index + 1], position - index)


def _between(keys: list[Colour], position: float) -> Colour:
    index = min(len(keys) - 2, int(position))
    share = position - index
    red, green, blue = (
        round(one + (other - one) * share) for one, other in zip(keys[index], keys[index + 1], strict=True)
    )
    return red, green, blue
