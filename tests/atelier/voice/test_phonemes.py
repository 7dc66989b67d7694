"""The mouth moves from one phoneme to the next."""

from penstock_atelier.voice.phonemes import PHONEMES


def test_half_way_between_two_states() -> None:
    start, end = PHONEMES["IY"][0], PHONEMES["S"][0]
    middle = start.toward(end, 0.5)
    assert middle.first == (start.first + end.first) / 2
    assert middle.noise == end.noise / 2
    assert middle.noise_hertz == end.noise_hertz
    assert start.toward(end, 0) is start


def test_vowels_have_voice_and_formants_in_order() -> None:
    for name, targets in PHONEMES.items():
        for target in targets:
            assert target.first < target.second < target.third, name
            assert not target.is_vowel or target.voice == 1
