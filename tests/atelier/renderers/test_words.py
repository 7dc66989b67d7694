"""A prompt becomes a list of things to draw."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as some

from penstock_atelier.renderers import edit_words, words
from penstock_atelier.renderers.effects import EFFECTS
from penstock_atelier.renderers.palette import NAMED
from penstock_atelier.renderers.words import Brief, Subject, read, unknown_words


def names(subjects: tuple[Subject, ...]) -> list[str]:
    return [subject.name for subject in subjects]


def test_subjects_with_their_colour_and_number() -> None:
    brief = read("three red foxes and a blue boat")
    assert brief.creatures == (Subject("fox", NAMED["red"], 3),)
    assert brief.placed == (Subject("boat", NAMED["blue"], 1),)
    assert brief.colours == ()  # both colours belong to a subject


def test_a_colour_of_the_land_colours_the_scene() -> None:
    brief = read("purple mountains")
    assert names(brief.scenery) == ["mountains"]
    assert brief.colours == (NAMED["purple"],)


def test_plurals_mean_several() -> None:
    assert read("butterflies").creatures == (Subject("butterfly", None, 3),)
    assert read("wolves").creatures == (Subject("wolf", None, 3),)
    assert read("7 penguins").creatures == (Subject("penguin", None, 7),)


@pytest.mark.parametrize(
    ("prompt", "palette"),
    [
        ("a forest at night in winter", "night"),
        ("a snowy sunset", "sunset"),
        ("cyberpunk city at night", "neon"),
        ("fireworks over the sea", "night"),
        ("a summer day", "day"),
        ("something", None),
    ],
)
def test_palettes_have_an_order_of_precedence(prompt: str, palette: str | None) -> None:
    assert read(prompt).palette == palette


def test_what_is_denied_is_not_drawn() -> None:
    assert read("mountains, no clouds").sky == ()
    assert names(read("mountains without any big clouds but a moon").sky) == ["moon"]


def test_an_oak_tree_is_not_a_forest() -> None:
    assert read("an oak tree").scenery == ()
    assert names(read("a tree").scenery) == ["forest"]


def test_a_portrait_is_of_the_creature_that_is_named() -> None:
    assert names(read("portrait of a cat").creatures) == ["cat"]
    assert names(read("a portrait").creatures) == ["person"]


def test_an_orange_cat_and_two_oranges() -> None:
    assert read("an orange cat").creatures == (Subject("cat", NAMED["orange"], 1),)
    assert names(read("two oranges").things) == ["orange"]


def test_a_coral_reef_has_no_colour() -> None:
    assert (read("a coral reef").colours, read("a coral dress").colours) == ((), (NAMED["coral"],))


def test_abstract_alone_means_flow() -> None:
    assert [read(prompt).abstract for prompt in ("abstract", "abstract geometric")] == ["flow", "bauhaus"]


def test_unknown_words_are_those_that_name_something_and_are_not_drawn() -> None:
    expected = {
        "a lighthouse at dusk, calm sea": [],
        "A beautiful photo of three foxes, no clouds": [],
        "a red sports car": ["sports", "car"],
        "a car behind a car on a bridge": ["car", "bridge"],
        "un château, 富士山と桜 猫": ["un", "château", "富士山と桜", "猫"],
        "": [],
    }
    assert {prompt: unknown_words(prompt) for prompt in expected} == expected
    assert len(unknown_words(" ".join(f"x{letter}y" for letter in "abcdefghijklmnop"))) == 12


def test_the_documentation_lists_every_word() -> None:
    page = set(re.findall(r"[a-z]+", (Path(__file__).parents[3] / "docs" / "atelier.md").read_text()))
    lexicons: list[Iterable[str]] = [
        *words._WORDS.values(),
        words._PALETTE_WORDS,
        words._ABSTRACT_WORDS,
        words._COUNTS,
        NAMED,
        EFFECTS,
    ]
    known = {word for lexicon in lexicons for word in lexicon}
    known |= (
        edit_words.ADDING | edit_words.REMOVING | edit_words.BEHIND | edit_words.BLENDING | words._PORTRAIT | words._NOT
    )
    assert sorted(known - page) == []


@given(some.text(max_size=300))
def test_any_text_can_be_read(prompt: str) -> None:
    assert isinstance(read(prompt), Brief)
