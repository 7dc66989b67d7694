"""Words that are not in the lexicon are spoken by rules."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock_atelier.voice.phonemes import PHONEMES
from penstock_atelier.voice.spelling import spelled


@pytest.mark.parametrize(
    ("word", "phonemes"),
    [
        ("station", "S T EY SH AX N"),
        ("knight", "N AY T"),
        ("phone", "F OW N"),
        ("church", "CH ER CH"),
        ("vision", "V IH ZH AX N"),
        ("quickly", "K W IH K L IY"),
        ("make", "M EY K"),
        ("thinking", "TH IH NG K IH NG"),
        ("silver", "S IH L V ER"),
    ],
)
def test_common_spellings(word: str, phonemes: str) -> None:
    assert " ".join(spelled(word)) == phonemes


@given(st.text(alphabet="abcdefghijklmnopqrstuvwxyz'", min_size=1, max_size=20))
def test_any_word_has_known_phonemes(word: str) -> None:
    assert set(spelled(word)) <= set(PHONEMES)
