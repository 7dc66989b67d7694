"""Rules find words as people read them, and take no longer for any prompt than for another of its length."""

import pytest

from penstock.guards.configured import Rules
from penstock.guards.rules import CompiledRules


def reason(rules: Rules, prompt: str, *, model: str = "m", has_images: bool = False) -> str | None:
    return CompiledRules(rules).reason(model, prompt, has_images=has_images)


@pytest.mark.parametrize("prompt", ["a gun", "A GUN!", "\uff27\uff35\uff2e", "the gun.", "gun"])
def test_a_word_is_found_in_any_case_and_width(prompt: str) -> None:
    assert reason(Rules(words=("Gun",)), prompt) == "the prompt has a word that is not allowed"


@pytest.mark.parametrize("prompt", ["a begun story", "guns", "gunner", ""])
def test_a_part_of_another_word_is_not_meant(prompt: str) -> None:
    assert reason(Rules(words=("gun",)), prompt) is None


def test_a_star_means_longer_words_too() -> None:
    assert reason(Rules(words=("gun*",)), "two gunners")
    assert reason(Rules(words=("gun*",)), "begun") is None


def test_a_phrase_is_found_over_any_space() -> None:
    assert reason(Rules(words=("red rose",)), "a red \n rose")
    assert reason(Rules(words=("red rose",)), "a red, rose") is None


def test_signs_of_expressions_mean_themselves() -> None:
    assert reason(Rules(words=("c++", "(a+)+$")), "in c++ now")
    assert reason(Rules(words=("(a+)+$",)), "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab") is None


def test_long_prompts_and_images_for_named_models_are_refused() -> None:
    assert reason(Rules(max_characters=3), "four") == "the prompt has more than 3 characters"
    assert reason(Rules(max_characters=4), "four") is None
    named = Rules(models_without_images=("lab/*",))
    assert reason(named, "", model="lab/x", has_images=True) == "lab/x takes no input images here"
    assert reason(named, "", model="lab/x") is None
    assert reason(named, "", model="other", has_images=True) is None
