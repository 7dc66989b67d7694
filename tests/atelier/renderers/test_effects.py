"""Every effect keeps the size and does what its name says."""

from __future__ import annotations

from itertools import product

from PIL import Image

from penstock_atelier.renderers import effects
from penstock_atelier.renderers.canvas import seeded_rng
from penstock_atelier.renderers.palette import PALETTES
from tests.atelier.drawings import check_each, draw

SOURCE = draw("a castle in the hills", 120, 90, 2)


def mean(image: Image.Image) -> tuple[int, ...]:
    return tuple(image.resize((1, 1), Image.Resampling.BOX).tobytes())


def apply(effect: effects.Effect, image: Image.Image = SOURCE) -> Image.Image:
    return effect(image, seeded_rng(1))


def test_size_and_mode_stay() -> None:
    def check(case: tuple[effects.Effect, tuple[int, int]]) -> None:
        effect, size = case
        source = SOURCE.resize(size)
        changed = apply(effect, source)
        assert (changed.size, changed.mode) == (size, "RGB")
        if size == (120, 90):
            assert (changed.tobytes() == source.tobytes()) is False

    check_each(product([*effects._EFFECTS, effects.improve], [(120, 90), (16, 16), (1, 40)]), check)


def test_light_and_colour_change_as_the_names_say() -> None:
    plain = mean(SOURCE)
    assert mean(apply(effects.warm))[0] > plain[0]
    assert mean(apply(effects.cool))[2] > plain[2]
    assert sum(mean(apply(effects.night))) < sum(plain) * 0.7
    assert sum(mean(apply(effects.brighten))) > sum(plain)
    assert sum(mean(apply(effects.darken))) < sum(plain)
    red, green, blue = mean(apply(effects.grey))
    assert red == green == blue
    assert apply(effects.invert, apply(effects.invert)).tobytes() == SOURCE.tobytes()
    assert apply(effects.mirror, apply(effects.mirror)).tobytes() == SOURCE.tobytes()


def test_grading_and_tinting_move_towards_the_colour() -> None:
    assert mean(effects.tint_image(SOURCE, (220, 20, 20)))[0] - mean(SOURCE)[0] > 10
    sunset = effects.grade(SOURCE, PALETTES["sunset"], 0.6)
    assert mean(sunset)[0] > mean(sunset)[1]


def test_a_pencil_leaves_paper_and_lines() -> None:
    red, green, blue = mean(apply(effects.pencil))
    assert min(red, green, blue) > 150
    assert max(red, green, blue) - min(red, green, blue) < 25
