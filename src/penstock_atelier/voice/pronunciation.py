"""The phonemes of a word: from the lexicon, from the lexicon and an ending, letter by letter, or by the rules."""

import re
from functools import lru_cache

from penstock_atelier.voice import lexicon
from penstock_atelier.voice.spelling import spelled

_VOICELESS = frozenset("P T K F TH".split())
_HISSING = frozenset("S Z SH ZH CH JH".split())
_VOWEL_LETTER = re.compile("[aeiouy]")
_LONGEST_ABBREVIATION = 5


@lru_cache(4096)
def phonemes(word: str) -> tuple[str, ...]:
    """The phonemes of a word."""
    plain = word.lower()
    known = lexicon.words()
    if plain in known:
        return known[plain]
    is_abbreviation = len(word) > 1 and word.isupper() and len(word) <= _LONGEST_ABBREVIATION
    if is_abbreviation or not _VOWEL_LETTER.search(plain):
        return tuple(name for letter in plain for name in lexicon.letters().get(letter, ()))
    return _with_ending(plain) or tuple(spelled(plain))


def _with_ending(word: str) -> tuple[str, ...] | None:
    """A word of the lexicon with the ending of a plural, a genitive or a past tense, or with `ing`."""
    known = lexicon.words()
    for ending in ("'s", "s", "ed", "d", "ing"):
        stem = word.removesuffix(ending)
        if stem != word and len(stem) > 2 and (stem in known or f"{stem}e" in known):
            base = known.get(stem) or known[f"{stem}e"]
            return (*base, *_ending(ending, base[-1]))
    return None


def _ending(ending: str, last: str) -> tuple[str, ...]:
    if ending == "ing":
        return ("IH", "NG")
    if ending in ("ed", "d"):
        return ("IH", "D") if last in ("T", "D") else ("T",) if last in _VOICELESS | {"S", "SH", "CH"} else ("D",)
    return ("IH", "Z") if last in _HISSING else ("S",) if last in _VOICELESS else ("Z",)
