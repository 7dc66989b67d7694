"""What the words put into the sky is drawn, and nothing else."""

from __future__ import annotations

from penstock_atelier.renderers import canvas, sky, words
from penstock_atelier.renderers.canvas import Scene, seeded_rng
from penstock_atelier.renderers.palette import PALETTES
from penstock_atelier.renderers.sky import Light
from tests.atelier.drawings import check_each

SIZE = (120, 90)


def pixels(prompt: str) -> bytes:
    brief = words.read(prompt)
    palette = PALETTES[brief.palette or "day"]
    light = sky.choose_light(brief, palette, SIZE, 60, seeded_rng(1))
    layers = sky.paint_sky(brief, palette, SIZE, 60, light, seeded_rng(1))
    weather = sky.paint_weather(brief, palette, SIZE, seeded_rng(2))
    return canvas.flatten(Scene(*SIZE, (*layers, *weather))).tobytes()


def light(prompt: str, palette: str) -> Light | None:
    return sky.choose_light(words.read(prompt), PALETTES[palette], SIZE, 60, seeded_rng(1))


def test_every_word_of_the_sky_shows() -> None:
    noon = pixels("noon")

    def check(name: str) -> None:
        assert (pixels(f"{name} at noon") == noon) is False

    check_each(sorted(set(words._lexicon(words._SKY).values()) - {"sun"}), check)


def test_a_moon_at_night_and_no_sun_in_the_rain() -> None:
    night = light("night", "night")
    assert night is not None
    assert night.is_moon
    assert light("rain", "storm") is None
    day = light("noon", "day")
    assert day is not None
    assert not day.is_moon


def test_the_first_layer_covers_everything() -> None:
    first = sky.paint_sky(words.read("noon"), PALETTES["day"], SIZE, 60, None, seeded_rng(1))[0]
    assert first.image.size == SIZE
    assert first.image.getchannel("A").getextrema() == (255, 255)


def test_what_is_not_named_is_not_drawn() -> None:
    assert sky.paint_sky_objects(set(), PALETTES["day"], SIZE, seeded_rng(1)) == []
    assert sky.paint_weather(words.read("mountains"), PALETTES["day"], SIZE, seeded_rng(1)) == []
