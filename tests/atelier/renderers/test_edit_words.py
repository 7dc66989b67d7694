"""The words of edits: each effect has some, and none of them counts as unknown."""

from penstock_atelier.renderers import effects
from penstock_atelier.renderers.edit_words import EDIT_WORDS, EFFECT_WORDS
from penstock_atelier.renderers.words import unknown_words


def test_every_effect_has_words_that_lead_to_it() -> None:
    assert {effect.__name__ for effect in effects._EFFECTS} == EFFECT_WORDS.keys()
    assert effects.EFFECTS["sepia"] is effects.sepia


def test_only_words_that_change_nothing_are_unknown() -> None:
    expected = {
        "make it a starry night": [],
        "replace the background with a forest": [],
        "add a dragon and remove the car": ["dragon", "car"],
    }
    assert {prompt: unknown_words(prompt, EDIT_WORDS) for prompt in expected} == expected
