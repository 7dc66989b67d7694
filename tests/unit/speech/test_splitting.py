"""Long texts are cut where a speaker pauses, and never inside of what people see as one character."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.speech.splitting import split_text


@given(st.text(min_size=1, max_size=400), st.integers(min_value=5, max_value=80))
def test_parts_add_up_to_the_text_and_keep_to_the_limit(text: str, most: int) -> None:
    parts = split_text(text, most)
    assert "".join(parts) == text
    assert all(0 < len(part) <= most for part in parts)


@given(st.text(alphabet="ab 12é👋🏽\u0301ไทย中文。", min_size=60, max_size=300))
def test_no_mark_begins_a_part_where_there_was_a_choice(text: str) -> None:
    for before, after in zip(parts := split_text(text, 50), parts[1:], strict=False):
        runs = any(unicodedata.category(sign)[0] != "M" for sign in before[2:])
        assert not (unicodedata.category(after[0]).startswith("M") and runs and len(before) < 50)


@pytest.mark.parametrize(
    ("text", "most", "first"),
    [
        ("One. Two words here.", 12, "One. "),
        ("First paragraph here\n\nSecond one goes on", 30, "First paragraph here\n\n"),
        ("a clause, and another without an end", 20, "a clause, "),
        ("words without any mark at all", 14, "words without "),
        ("文章です。もう一つの文章です。", 8, "文章です。"),
        ("It costs 12345678901 in all", 15, "It costs "),
    ],
)
def test_a_text_is_cut_at_the_best_place(text: str, most: int, first: str) -> None:
    assert split_text(text, most)[0] == first


def test_an_emoji_of_several_signs_stays_whole() -> None:
    family = "👨\u200d👩\u200d👧"
    parts = split_text("x" * 8 + family + "y" * 8, 11)
    assert any(family in part for part in parts)
