"""Give the phonemes of a clause lengths and a melody: what the synthesizer is to do, frame by frame."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from penstock_atelier.voice.phonemes import PHONEMES, Target
from penstock_atelier.voice.pronunciation import phonemes

FRAME_SECONDS = 0.005
_PAUSES = {",": 0.16, ";": 0.25, ":": 0.22, ".": 0.38, "!": 0.38, "?": 0.4, "…": 0.4, "\n": 0.3, "—": 0.2, "–": 0.2}
_SHORT_PAUSE = 0.06
_UNSTRESSED = frozenset(
    """a the and of to in is was are were be been have has had at by for from on or as it its an that than but with do
    does will would could should can you your he she we they them their his her my our us me""".split()
)
_GLIDE_FRAMES = 8  # over which the mouth moves from one phoneme to the next


class Frame(NamedTuple):
    """Five milliseconds of speech."""

    pitch: float  # as a factor of the voice's own
    target: Target


class _Sound(NamedTuple):
    target: Target
    frames: int
    pitch: float  # at its middle


def clause_frames(words: Sequence[str], mark: str, rate: float) -> Iterator[Frame]:
    """The frames of a clause with this sign at its end; `rate` is how fast it is spoken."""
    sounds = list(_sounds(words, mark, rate))
    for number, sound in enumerate(sounds):
        after = sounds[number + 1] if number + 1 < len(sounds) else sound
        for frame in range(sound.frames):
            left = sound.frames - frame
            share = max(0.0, (_GLIDE_FRAMES - left) / _GLIDE_FRAMES) * 0.5
            done = frame / sound.frames
            start = sounds[number - 1] if number else sound
            early = max(0.0, 0.5 - frame / (2 * _GLIDE_FRAMES)) if number else 0.0
            target = sound.target.toward(after.target, share) if share else sound.target.toward(start.target, early)
            yield Frame(sound.pitch + (after.pitch - sound.pitch) * done, target)
    silence = PHONEMES["_"][0]
    pause = int(_PAUSES.get(mark, _SHORT_PAUSE) / FRAME_SECONDS / rate)
    for _ in range(pause):
        yield Frame(1.0, silence)


def _sounds(words: Sequence[str], mark: str, rate: float) -> Iterator[_Sound]:
    count = max(1, len(words))
    for number, word in enumerate(words):
        place = number / count
        is_last = number == len(words) - 1
        is_stressed = word.lower() not in _UNSTRESSED
        base = 1.12 - 0.22 * place
        rising = mark == "?" and is_last
        names = phonemes(word)
        vowels = [at for at, name in enumerate(names) if PHONEMES[name][0].is_vowel]
        accent = _accent(word, vowels)
        for at, name in enumerate(names):
            has_accent = is_stressed and at == accent
            pitch = base + (0.12 if has_accent else 0.0)
            if rising:
                pitch = 0.95 + 0.5 * (at + 1) / len(names)
            elif is_last and mark in ".!" and at >= (vowels[-1] if vowels else 0):
                pitch *= 0.86
            stretch = (1.15 if has_accent else 0.85 if not is_stressed else 1.0) * (1.25 if is_last else 1.0)
            for target in PHONEMES[name]:
                seconds = target.seconds * (stretch if target.is_vowel else 1.0) / rate
                yield _Sound(target, max(2, round(seconds / FRAME_SECONDS)), pitch)


def _accent(word: str, vowels: Sequence[int]) -> int:
    """The place of the vowel with the stress; a guess from the ending, otherwise the first one."""
    if len(vowels) > 1 and word.lower().endswith(("tion", "sion", "ic", "ity", "ical")):
        return vowels[max(0, len(vowels) - (3 if word.lower().endswith(("ity", "ical")) else 2))]
    return vowels[0] if vowels else -1
