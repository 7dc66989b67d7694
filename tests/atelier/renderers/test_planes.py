"""Layers move smoothly, and a scene without motion stays the same."""

from __future__ import annotations

from itertools import pairwise

import pytest
from PIL import Image, ImageDraw

from penstock_atelier.renderers.canvas import Layer, Motion, Scene
from penstock_atelier.renderers.planes import Animation, Camera, Planes, to_planes

GROUND = Layer(Image.new("RGBA", (80, 60), (20, 40, 90, 255)))
FIXED_CAMERA = Camera(0, 5)


def spot(motion: Motion, left: int = 30, top: int = 20) -> Layer:
    return Layer(Image.new("RGBA", (10, 10), (255, 255, 255, 255)), left, top, motion)


def centre(shown: Planes) -> tuple[float, float]:
    """Where the light is, to a part of a pixel."""
    base = shown.y.tobytes()[-1]
    weights = [(x, y, value - base) for (x, y), value in _pixels(shown.y) if value > base + 2]
    total = sum(weight for *_, weight in weights)
    return sum(x * weight for x, _, weight in weights) / total, sum(y * weight for _, y, weight in weights) / total


def _pixels(image: Image.Image) -> list[tuple[tuple[int, int], int]]:
    return [((index % image.width, index // image.width), value) for index, value in enumerate(image.tobytes())]


def test_colours_are_bt_709_in_limited_range() -> None:
    white, black, red = (to_planes(Image.new("RGB", (4, 4), colour)) for colour in ("white", "black", "red"))
    assert [plane.getpixel((0, 0)) for plane in white] == [235, 128, 128]
    assert [plane.getpixel((0, 0)) for plane in black] == [16, 128, 128]
    assert [plane.getpixel((0, 0)) for plane in red] == [63, 102, 240]
    assert (red.y.size, red.u.size, red.v.size) == ((4, 4), (2, 2), (2, 2))


def test_a_scene_without_motion_stays_the_same() -> None:
    animation = Animation(Scene(80, 60, (GROUND, spot(Motion()))), (80, 60), FIXED_CAMERA)
    assert animation.frame(0).y.tobytes() == animation.frame(4).y.tobytes()
    assert centre(animation.frame(0)) == (34.5, 24.5)


def test_drift_moves_by_parts_of_a_pixel() -> None:
    animation = Animation(Scene(80, 60, (GROUND, spot(Motion(drift=(0.01, 0))))), (80, 60), FIXED_CAMERA)
    places = [centre(animation.frame(at / 2))[0] for at in range(8)]
    steps = [after - before for before, after in pairwise(places)]
    assert all(0.1 < step < 0.6 for step in steps)  # 0.3 pixels, in quarters
    assert places[-1] == pytest.approx(34.5 + 0.6 * 3.5, abs=0.2)


def test_sway_goes_and_returns() -> None:
    animation = Animation(Scene(80, 60, (GROUND, spot(Motion(sway=(0, 0.05), period=4)))), (80, 60), FIXED_CAMERA)
    assert centre(animation.frame(1))[1] == pytest.approx(24.5 + 3, abs=0.2)
    assert centre(animation.frame(4))[1] == pytest.approx(24.5, abs=0.2)


def test_near_layers_move_more_with_the_camera() -> None:
    wide = Scene(100, 60, (Layer(Image.new("RGBA", (100, 60), "navy")), spot(Motion(depth=1.0), 50)))
    animation = Animation(wide, (80, 60), Camera(10, 4))
    travelled = centre(animation.frame(4))[0] - centre(animation.frame(0))[0]
    assert travelled == pytest.approx(20, abs=0.5)


def test_what_leaves_on_one_side_returns_on_the_other() -> None:
    animation = Animation(Scene(80, 60, (GROUND, spot(Motion(drift=(1.0, 0), wraps=True), 0))), (80, 60), FIXED_CAMERA)
    assert centre(animation.frame(1.5))[0] == pytest.approx(4.5, abs=0.3)  # one whole round: 80 and its own 10


def test_light_comes_and_goes() -> None:
    animation = Animation(Scene(80, 60, (GROUND, spot(Motion(twinkle=1.0, period=2)))), (80, 60), FIXED_CAMERA)
    bright, dark = (max(animation.frame(at).y.tobytes()) for at in (0, 1))
    assert bright > dark + 100


def test_spinning_keeps_the_colour() -> None:
    bar = Image.new("RGBA", (20, 20))
    bar.paste((255, 255, 255, 255), (8, 0, 12, 20))
    animation = Animation(Scene(80, 60, (GROUND, Layer(bar, 30, 20, Motion(spin=0.25)))), (80, 60), FIXED_CAMERA)
    turned = animation.frame(1).y  # a quarter turn
    assert min(turned.tobytes()) >= min(animation.frame(0).y.tobytes()) - 1


def test_edges_at_parts_of_a_pixel_are_not_dark() -> None:
    """Transparent black around a white object must not show."""
    ground = Layer(Image.new("RGBA", (80, 60), "white"))
    sprite = Image.new("RGBA", (30, 30), (0, 0, 0, 0))
    ImageDraw.Draw(sprite).ellipse((4, 4, 26, 26), fill="white")
    moving = Layer(sprite, 20, 20, Motion(drift=(0.0042, 0.0042)))
    shown = Animation(Scene(80, 60, (ground, moving)), (80, 60), FIXED_CAMERA).frame(1).y
    assert min(shown.tobytes()) > 225
