"""Colours mix as the eye expects, and every palette is complete."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as some

from penstock_atelier.renderers import palette
from penstock_atelier.renderers.canvas import seeded_rng
from penstock_atelier.renderers.palette import Colour
from tests.atelier.drawings import check_each

colours = some.tuples(*[some.integers(0, 255)] * 3)


@given(colours)
def test_oklab_and_back(colour: Colour) -> None:
    assert palette.from_oklab(palette.oklab(colour)) == colour


@given(colours, colours)
def test_mixing_begins_and_ends_at_the_given_colours(first: Colour, second: Colour) -> None:
    assert palette.mix(first, second, 0) == first
    assert palette.mix(first, second, 1) == second


def test_blue_and_yellow_do_not_turn_grey() -> None:
    red, green, blue = palette.mix((0, 60, 220), (250, 220, 0), 0.5)
    assert green > red
    assert max(red, green, blue) - min(red, green, blue) > 40


@given(colours, some.floats(-1, 1))
def test_lighten_never_leaves_the_range(colour: Colour, amount: float) -> None:
    assert all(0 <= channel <= 255 for channel in palette.lighten(colour, amount))


@given(some.lists(colours, min_size=1, max_size=5), some.integers(1, 300))
def test_a_ramp_has_its_steps_and_its_ends(stops: list[Colour], steps: int) -> None:
    ramp = palette.ramp(tuple(stops), steps)
    assert len(ramp) == steps
    assert ramp[0] == stops[0]
    if steps > 1:
        assert ramp[-1] == stops[-1]


def test_every_palette_has_every_colour() -> None:
    def check(name: str) -> None:
        assert len(palette.PALETTES[name].sky) == 4
        assert len(palette.PALETTES[name].accents) == 4

    check_each(palette.PALETTES, check)
    assert set(palette.BY_CHANCE) <= set(palette.PALETTES)


def test_a_named_palette_is_used_and_a_colour_tints_it() -> None:
    plain = palette.choose_palette("night", (), seeded_rng(1))
    assert plain == palette.PALETTES["night"]
    red = palette.choose_palette("day", ((200, 30, 30),), seeded_rng(1))
    assert red.accents[0] == (200, 30, 30)
    assert red.water[0] > palette.PALETTES["day"].water[0]


def test_named_colours_are_colours() -> None:
    def check(name: str) -> None:
        assert all(0 <= channel <= 255 for channel in palette.NAMED[name])

    check_each(palette.NAMED, check)
