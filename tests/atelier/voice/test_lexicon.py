"""The lexicon has phonemes that the voice knows."""

from penstock_atelier.voice import lexicon
from penstock_atelier.voice.phonemes import PHONEMES


def test_each_word_has_known_phonemes() -> None:
    for word, phonemes in {**lexicon.words(), **lexicon.letters()}.items():
        assert phonemes, word
        assert set(phonemes) <= set(PHONEMES), word


def test_there_are_many_words_and_all_letters() -> None:
    assert len(lexicon.words()) > 300
    assert len(lexicon.letters()) == 26
