"""Land is below the horizon, darker at the front."""

from __future__ import annotations

import pytest
from PIL import Image

from penstock_atelier.renderers import canvas, land
from penstock_atelier.renderers.canvas import Layer, Scene, seeded_rng
from penstock_atelier.renderers.palette import PALETTES, oklab

SIZE = (120, 90)


def ground(snowy: bool = False) -> land.Ground:
    return land.Ground(PALETTES["day"], SIZE, 50, None, snowy)


def covered(layers: list[Layer], row: int) -> float:
    """The share of a row of pixels that the layers hide."""
    clear = Layer(Image.new("RGBA", SIZE, (255, 0, 255, 255)))
    flat = canvas.flatten(Scene(*SIZE, (clear, *layers)))
    pixels = flat.crop((0, row, SIZE[0], row + 1)).tobytes()
    seen = sum(pixels[i : i + 3] == b"\xff\x00\xff" for i in range(0, len(pixels), 3))
    return 1 - seen / SIZE[0]


@pytest.mark.parametrize("painter", [land.mountains, land.hills, land.flowers])
def test_the_bottom_is_covered_and_the_top_is_free(painter: land.Painter) -> None:
    layers = painter(ground(), seeded_rng(5))
    assert covered(layers, 88) == 1
    assert covered(layers, 1) < 0.2


def test_water_begins_at_the_horizon() -> None:
    layers = land.water(ground(), seeded_rng(5))
    assert covered(layers, 60) == 1
    assert covered(layers, 45) == 0


def test_a_lake_reflects_what_is_above() -> None:
    above = Image.new("RGB", SIZE, (250, 20, 20))
    still = land.water(ground(), seeded_rng(5))[0].image.convert("RGB").resize((1, 1)).tobytes()
    mirror = land.water(ground(), seeded_rng(5), reflected=above)[0].image.convert("RGB").resize((1, 1)).tobytes()
    assert mirror[0] > still[0] + 20


def test_near_land_is_darker_and_snow_is_white() -> None:
    assert oklab(ground().tone(0))[0] > oklab(ground().tone(1))[0]
    assert oklab(ground(snowy=True).surface_colour(0.5))[0] > 0.8


@pytest.mark.parametrize("rock", [True, False])
def test_a_mound_rises_above_its_base(rock: bool) -> None:
    layer = land.mound(ground(), 60, 70, 30, rock=rock)
    assert layer.top < 70 <= layer.top + layer.image.height + 1
