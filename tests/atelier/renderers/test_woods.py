"""Trees stand on the ground and cover a part of it."""

from __future__ import annotations

import pytest
from PIL import Image, ImageDraw

from penstock_atelier.renderers import land, woods
from penstock_atelier.renderers.canvas import seeded_rng
from penstock_atelier.renderers.palette import PALETTES


def ground(palette: str = "day") -> land.Ground:
    return land.Ground(PALETTES[palette], (120, 90), 50, None, snowy=False)


@pytest.mark.parametrize("painter", [woods.forest, woods.grove, woods.shore, woods.far_shore])
def test_woods_cover_something_but_not_everything(painter: land.Painter) -> None:
    layers = painter(ground(), seeded_rng(1))
    alpha = Image.new("L", (120, 90))
    for layer in layers:
        alpha.paste(255, (layer.left, layer.top), layer.image.getchannel("A"))
    share = sum(alpha.tobytes()) / 255 / (120 * 90)
    assert 0.03 < share < 0.9


def test_groves_have_the_colours_of_the_season() -> None:
    autumn = woods.grove(ground("autumn"), seeded_rng(1))[-1].image.resize((1, 1)).convert("RGB").tobytes()
    assert autumn[0] > autumn[2] + 30


def test_a_pine_is_tallest_in_its_middle() -> None:
    points = woods.pine(50, 80, 40, seeded_rng(1))
    top = min(points, key=lambda point: point[1])
    assert top[0] == 50
    assert top[1] < 45


def test_a_frond_grows_upwards() -> None:
    sheet = Image.new("L", (60, 60))
    woods.frond(ImageDraw.Draw(sheet), (30, 58), 50, 0.2)
    box = sheet.getbbox()
    assert box is not None
    assert box[1] < 20
