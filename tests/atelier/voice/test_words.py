"""Numbers, amounts, times and signs are written out as they are spoken."""

import pytest

from penstock_atelier.voice.words import cardinal, clauses, ordinal


def said(text: str) -> str:
    return " ".join(word for words, _ in clauses(text) for word in words).lower()


@pytest.mark.parametrize(
    ("text", "spoken"),
    [
        ("It costs $3.50.", "it costs three dollars and fifty cents"),
        ("£1", "one pound"),
        ("in 1984", "in nineteen eighty four"),
        ("1905", "nineteen oh five"),
        ("2,026 of them", "two thousand twenty six of them"),
        ("1,000,000", "one million"),
        ("3.14", "three point one four"),
        ("the 21st", "the twenty first"),
        ("the 3rd and 12th", "the third and twelfth"),
        ("at 9:05", "at nine oh five"),
        ("12:00", "twelve o'clock"),
        ("5 km", "five kilometers"),
        ("50% & more", "fifty percent and more"),
        ("Dr. Smith, e.g. him", "doctor smith for example him"),
        ("007", "zero zero seven"),
        ("naïve café", "naive cafe"),
        ("don’t", "don't"),
        ("9" * 20, " ".join(["nine"] * 20)),
    ],
)
def test_text_is_written_out(text: str, spoken: str) -> None:
    assert said(text) == spoken


def test_clauses_keep_the_sign_at_their_end() -> None:
    found = [(" ".join(words), mark) for words, mark in clauses("Yes, you. Really? No!")]
    assert found == [("Yes", ","), ("you", "."), ("Really", "?"), ("No", "!")]


def test_what_has_no_word_has_no_clause() -> None:
    assert list(clauses("... 日本 —")) == []


def test_large_numbers() -> None:
    assert cardinal(10**12 + 5) == "one trillion five"
    assert cardinal(342) == "three hundred and forty two"
    assert ordinal(20) == "twentieth"
