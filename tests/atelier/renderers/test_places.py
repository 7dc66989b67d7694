"""Deserts, cities, reefs and planets."""

from __future__ import annotations

import pytest

from penstock_atelier.renderers import canvas, land, places
from penstock_atelier.renderers.canvas import Layer, Scene, seeded_rng
from penstock_atelier.renderers.palette import PALETTES

SIZE = (160, 120)


def ground(palette: str, horizon: float = 70) -> land.Ground:
    return land.Ground(PALETTES[palette], SIZE, horizon, None, snowy=False)


@pytest.mark.parametrize(
    ("painter", "palette"),
    [(places.desert, "desert"), (places.city, "night"), (places.underwater, "depths"), (places.space, "space")],
)
def test_each_place_is_drawn_the_same_twice(painter: land.Painter, palette: str) -> None:
    def paint() -> bytes:
        below = Layer(canvas.gradient(PALETTES[palette].sky, SIZE).convert("RGBA"))
        return canvas.flatten(Scene(*SIZE, (below, *painter(ground(palette), seeded_rng(8))))).tobytes()

    once = paint()
    assert once == paint()
    assert once != canvas.gradient(PALETTES[palette].sky, SIZE).tobytes()


def test_windows_are_lit_at_night() -> None:
    rows = places.city(ground("night"), seeded_rng(3))
    light = PALETTES["night"].light
    near = rows[-1].image.convert("RGB").tobytes()
    assert any(near[i : i + 3] == bytes(light) for i in range(0, len(near), 3))


def test_the_sea_floor_covers_the_whole_image() -> None:
    first = places.underwater(ground("depths"), seeded_rng(1))[0].image
    assert first.size == SIZE
    assert first.getchannel("A").getextrema() == (255, 255)
