"""A word is looked up, taken apart, spelled out or spoken by rules."""

import pytest

from penstock_atelier.voice.pronunciation import phonemes


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("Hello", "HH EH L OW"),
        ("models", "M AA D AX L Z"),
        ("laughed", "L AE F T"),
        ("wanted", "W AA N T IH D"),
        ("moving", "M UW V IH NG"),
        ("API", "EY P IY AY"),
        ("hmm", "EY CH EH M EH M"),
    ],
)
def test_words(word: str, expected: str) -> None:
    assert " ".join(phonemes(word)) == expected
