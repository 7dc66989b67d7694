"""Every effect keeps the size and does what its name says."""

from __future__ import annotations

import pytest
from PIL import Image

from penstock.atelier.renderers import effects
from penstock.atelier.renderers.canvas import dice
from penstock.atelier.renderers.palette import PALETTES
from penstock.atelier.renderers.sketch import picture

SOURCE = picture("a castle in the hills", 120, 90, 2)


def mean(image: Image.Image) -> tuple[int, ...]:
    return tuple(image.resize((1, 1), Image.Resampling.BOX).tobytes())


@pytest.mark.parametrize("effect", [*effects._WORDS, effects.improve])
@pytest.mark.parametrize("size", [(120, 90), (16, 16), (1, 40)])
def test_size_and_mode_stay(effect: effects.Effect, size: tuple[int, int]) -> None:
    source = SOURCE.resize(size)
    changed = effect(source, dice(1))
    assert (changed.size, changed.mode) == (size, "RGB")
    if size == (120, 90):
        assert changed.tobytes() != source.tobytes()


def test_light_and_colour_go_where_they_should() -> None:
    plain = mean(SOURCE)
    assert mean(effects.warm(SOURCE, dice(1)))[0] > plain[0]
    assert mean(effects.cool(SOURCE, dice(1)))[2] > plain[2]
    assert sum(mean(effects.night(SOURCE, dice(1)))) < sum(plain) * 0.7
    assert sum(mean(effects.brighten(SOURCE, dice(1)))) > sum(plain)
    assert sum(mean(effects.darken(SOURCE, dice(1)))) < sum(plain)
    red, green, blue = mean(effects.grey(SOURCE, dice(1)))
    assert red == green == blue
    assert effects.invert(effects.invert(SOURCE, dice(1)), dice(1)).tobytes() == SOURCE.tobytes()
    assert effects.mirror(effects.mirror(SOURCE, dice(1)), dice(1)).tobytes() == SOURCE.tobytes()


def test_grades_and_tinges_move_towards_their_colour() -> None:
    assert mean(effects.tinge(SOURCE, (220, 20, 20)))[0] - mean(SOURCE)[0] > 10
    sunset = effects.grade(SOURCE, PALETTES["sunset"], 0.6)
    assert mean(sunset)[0] > mean(sunset)[1]


def test_a_pencil_leaves_paper_and_lines() -> None:
    red, green, blue = mean(effects.pencil(SOURCE, dice(1)))
    assert min(red, green, blue) > 150
    assert max(red, green, blue) - min(red, green, blue) < 25
