"""What the words put into the sky is there, and nothing else."""

from __future__ import annotations

import pytest

from penstock.atelier.renderers import canvas, sky, words
from penstock.atelier.renderers.canvas import Scene, dice
from penstock.atelier.renderers.palette import PALETTES

SIZE = (120, 90)


def painted(prompt: str) -> bytes:
    brief = words.read(prompt)
    palette = PALETTES[brief.palette or "day"]
    light = sky.choose_light(brief, palette, SIZE, 60, dice(1))
    layers = sky.paint_sky(brief, palette, SIZE, 60, light, dice(1))
    return canvas.flatten(Scene(*SIZE, (*layers, *sky.paint_weather(brief, palette, SIZE, dice(2))))).tobytes()


@pytest.mark.parametrize("name", sorted(set(words._lexicon(words._SKY).values()) - {"sun"}))
def test_every_word_of_the_sky_shows(name: str) -> None:
    assert painted(f"{name} at noon") != painted("noon")


def test_a_moon_at_night_and_no_sun_in_the_rain() -> None:
    night = sky.choose_light(words.read("night"), PALETTES["night"], SIZE, 60, dice(1))
    assert night is not None
    assert night.is_moon
    assert sky.choose_light(words.read("rain"), PALETTES["storm"], SIZE, 60, dice(1)) is None
    day = sky.choose_light(words.read("noon"), PALETTES["day"], SIZE, 60, dice(1))
    assert day is not None
    assert not day.is_moon


def test_the_first_layer_covers_everything() -> None:
    first = sky.paint_sky(words.read("noon"), PALETTES["day"], SIZE, 60, None, dice(1))[0]
    assert first.image.size == SIZE
    assert first.image.getchannel("A").getextrema() == (255, 255)


def test_nothing_named_nothing_painted() -> None:
    assert sky.paint_wonders(set(), PALETTES["day"], SIZE, dice(1)) == []
    assert sky.paint_weather(words.read("mountains"), PALETTES["day"], SIZE, dice(1)) == []
