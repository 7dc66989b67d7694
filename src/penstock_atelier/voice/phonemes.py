"""What the mouth does for each phoneme: formants, voice, breath and noise.

The frequencies of the vowels are averages of men's voices, as textbooks of phonetics give them.
"""

from collections.abc import Mapping
from typing import NamedTuple


class Target(NamedTuple):
    """One state of the mouth. Frequencies are in hertz; loudnesses are from 0 to 1."""

    seconds: float
    first: float  # formants
    second: float
    third: float
    voice: float = 0.0
    breath: float = 0.0  # through the formants
    noise: float = 0.0  # of friction, around `noise_hertz`
    noise_hertz: float = 4000.0
    noise_width: float = 1500.0
    is_vowel: bool = False

    def toward(self, other: "Target", share: float) -> "Target":
        """A state between this one and another."""
        if not share:
            return self
        return Target(
            self.seconds,
            self.first + (other.first - self.first) * share,
            self.second + (other.second - self.second) * share,
            self.third + (other.third - self.third) * share,
            self.voice + (other.voice - self.voice) * share,
            self.breath + (other.breath - self.breath) * share,
            self.noise + (other.noise - self.noise) * share,
            self.noise_hertz if self.noise >= other.noise else other.noise_hertz,
            self.noise_width if self.noise >= other.noise else other.noise_width,
            self.is_vowel,
        )


def _vowel(seconds: float, first: float, second: float, third: float) -> Target:
    return Target(seconds, first, second, third, voice=1.0, is_vowel=True)


def _sonorant(seconds: float, voice: float, first: float, second: float, third: float) -> Target:
    return Target(seconds, first, second, third, voice=voice)


def _stop(second: float, noise: float, hertz: float, width: float, *, voiced: bool) -> tuple[Target, ...]:
    """Closed lips or tongue, the burst, and the breath after it."""
    closed = Target(0.05, 250, second, 2500, voice=0.12 if voiced else 0.0)
    burst = Target(0.012, 300, second, 2500, 0.2 if voiced else 0.0, 0.0, noise, hertz, width)
    after = Target(0.01 if voiced else 0.035, 400, second, 2500, 0.5 if voiced else 0.0, 0.1 if voiced else 0.35)
    return closed, burst, after


def _friction(seconds: float, second: float, noise: float, hertz: float, width: float, voice: float) -> Target:
    return Target(seconds, 300, second, 2500, voice, 0.0, noise, hertz, width)


_SH = _friction(0.06, 1900, 0.55, 2900, 900, 0.0)
_ZH = _friction(0.05, 1900, 0.35, 2900, 900, 0.35)
PHONEMES: Mapping[str, tuple[Target, ...]] = {
    "_": (Target(0.05, 500, 1500, 2500),),
    "IY": (_vowel(0.11, 280, 2250, 3000),),
    "IH": (_vowel(0.075, 400, 1950, 2550),),
    "EH": (_vowel(0.09, 540, 1830, 2480),),
    "AE": (_vowel(0.12, 670, 1720, 2420),),
    "AA": (_vowel(0.12, 730, 1100, 2440),),
    "AO": (_vowel(0.12, 580, 860, 2410),),
    "UH": (_vowel(0.075, 440, 1020, 2240),),
    "UW": (_vowel(0.11, 310, 900, 2240),),
    "AH": (_vowel(0.08, 630, 1200, 2400),),
    "AX": (_vowel(0.05, 500, 1450, 2450),),
    "ER": (_vowel(0.1, 480, 1330, 1680),),
    "EY": (_vowel(0.07, 480, 1950, 2550), _vowel(0.06, 330, 2200, 2750)),
    "AY": (_vowel(0.09, 710, 1180, 2450), _vowel(0.07, 390, 1950, 2550)),
    "OY": (_vowel(0.09, 540, 860, 2400), _vowel(0.08, 390, 1900, 2500)),
    "AW": (_vowel(0.09, 700, 1250, 2450), _vowel(0.07, 430, 950, 2300)),
    "OW": (_vowel(0.07, 520, 960, 2350), _vowel(0.06, 390, 820, 2300)),
    "M": (_sonorant(0.065, 0.4, 250, 1050, 2200),),
    "N": (_sonorant(0.06, 0.4, 250, 1550, 2550),),
    "NG": (_sonorant(0.07, 0.4, 250, 1950, 2650),),
    "L": (_sonorant(0.06, 0.65, 360, 1080, 2700),),
    "R": (_sonorant(0.06, 0.65, 340, 1150, 1550),),
    "W": (_sonorant(0.055, 0.6, 300, 640, 2200),),
    "Y": (_sonorant(0.05, 0.6, 280, 2200, 3000),),
    "HH": (Target(0.055, 550, 1500, 2500, 0.0, 0.55),),
    "F": (_friction(0.08, 1100, 0.13, 6500, 4000, 0.0),),
    "TH": (_friction(0.07, 1400, 0.11, 7000, 4000, 0.0),),
    "S": (_friction(0.09, 1700, 0.5, 6300, 1800, 0.0),),
    "SH": (_SH._replace(seconds=0.095),),
    "V": (_friction(0.05, 1100, 0.06, 6500, 4000, 0.4),),
    "DH": (_friction(0.04, 1400, 0.05, 7000, 4000, 0.45),),
    "Z": (_friction(0.065, 1700, 0.28, 6300, 1800, 0.35),),
    "ZH": (_ZH._replace(seconds=0.07),),
    "P": _stop(900, 0.2, 900, 1200, voiced=False),
    "T": _stop(1750, 0.5, 4800, 2500, voiced=False),
    "K": _stop(1900, 0.45, 2100, 700, voiced=False),
    "B": _stop(900, 0.12, 800, 1000, voiced=True),
    "D": _stop(1750, 0.3, 4300, 2500, voiced=True),
    "G": _stop(1900, 0.3, 2000, 700, voiced=True),
    "CH": (*_stop(1800, 0.4, 3000, 1000, voiced=False)[:2], _SH),
    "JH": (*_stop(1800, 0.25, 3000, 1000, voiced=True)[:2], _ZH),
}
