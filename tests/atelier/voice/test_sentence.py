"""A whole sentence in every voice: clean samples, the bands of speech, and speech for the built-in listener."""

from __future__ import annotations

import cmath
import json
import math
from array import array

import pytest

from penstock.providers.speech import OPENAI_VOICES
from penstock.sound import wave
from penstock_atelier.renderers.listen import listen
from penstock_atelier.voice.speak import speak
from penstock_atelier.voice.synthesis import RATE

SENTENCE = "The birch canoe slid on the smooth planks."
_WINDOW = 512
_STEP = 1920  # every eighth of a tenth of a second


def said(voice: str) -> array[int]:
    made = bytearray()
    speak(made.extend, text=SENTENCE, voice=voice, speed=1.0)
    return array("h", bytes(made))


def band_energies(samples: array[int]) -> dict[str, float]:
    """The share of the energy in each band, over the whole sentence."""
    bands = {"hum": (0, 70), "speech": (70, 4000), "hiss": (4000, 8000), "rest": (8000, RATE // 2)}
    found = dict.fromkeys(bands, 0.0)
    turns = [cmath.exp(-2j * math.pi * bin_ / _WINDOW) for bin_ in range(0, _WINDOW // 2, 2)]
    for start in range(0, len(samples) - _WINDOW, _STEP):
        piece = [
            value * (0.5 - 0.5 * math.cos(2 * math.pi * at / _WINDOW))
            for at, value in enumerate(samples[start : start + _WINDOW])
        ]
        for number, turn in enumerate(turns):
            hertz = 2 * number * RATE / _WINDOW
            total, power = 0j, 1 + 0j
            for value in piece:
                total += value * power
                power *= turn
            name = next(name for name, (low, high) in bands.items() if low <= hertz < high)
            found[name] += abs(total) ** 2
    whole = sum(found.values())
    return {name: energy / whole for name, energy in found.items()}


@pytest.mark.parametrize("voice", OPENAI_VOICES)
def test_a_sentence_is_clean_and_is_heard_as_speech(voice: str) -> None:
    samples = said(voice)
    loudest = max(map(abs, samples))
    assert 6000 < loudest < 32_700, "loud enough, and not clipped"
    assert abs(sum(samples) / len(samples)) < 0.005 * loudest, "no direct current"
    assert 1.8 < len(samples) / RATE < 4.5, "as long as people take"
    heard = json.loads(listen(file=wave.header(RATE, 2 * len(samples)) + samples.tobytes())["body"])
    assert heard["text"].startswith("[speech]")
    spoken = sum(part["end"] - part["start"] for part in heard["segments"] if part["text"] == "[speech]")
    assert spoken > 0.75 * len(samples) / RATE


@pytest.mark.parametrize("voice", ["onyx", "shimmer"])
def test_the_energy_is_where_speech_has_it(voice: str) -> None:
    found = band_energies(said(voice))
    assert found["speech"] > 0.8
    assert found["hum"] < 0.1
    assert 0.0001 < found["hiss"] < 0.2, "there are fricatives, and no noise over all"
    assert found["rest"] < 0.05
