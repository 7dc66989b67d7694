"""What each word of a prompt sounds like: noises of weather, animals, machines and things."""

import math
import random
from collections.abc import Callable, Mapping

from penstock_atelier.sounds.waves import (
    RATE,
    Track,
    count,
    decay,
    high_pass,
    line,
    low_pass,
    mixed,
    noise,
    resonance,
    scaled,
    shaped,
    sweep,
    swell,
    table,
    tone,
)

Effect = Callable[[Track, random.Random], None]
_SIDES = (-0.4, 0.4)


def _both_sides(track: Track, rng: random.Random, make: Callable[[random.Random], list[float]], level: float) -> None:
    """A noise that is around the listener: each side has its own."""
    for side in (-1.0, 1.0):
        track.add(0, make(rng), level, side)


def _slowly(rng: random.Random, length: int, seconds: float, low: float) -> list[float]:
    """Levels that wander between `low` and one, a new one every so many seconds."""
    made: list[float] = []
    last = rng.uniform(low, 1)
    while len(made) < length:
        following = rng.uniform(low, 1)
        made += line(last, following, count(seconds * rng.uniform(0.6, 1.4)))
        last = following
    return made[:length]


def _moments(track: Track, rng: random.Random, each_second: float) -> list[float]:
    """Random moments, so many in a second, at least one."""
    seconds = track.length / RATE
    return sorted(rng.uniform(0, seconds) for _ in range(max(1, round(seconds * each_second))))


def _steps(track: Track, pause: float) -> list[float]:
    """Regular moments from the beginning."""
    return [at * pause for at in range(math.ceil(track.length / RATE / pause))]


# -------------------------------------------------------------------------------------------------------------- weather


def rain(track: Track, rng: random.Random) -> None:
    _both_sides(track, rng, lambda rng: high_pass(noise(rng, track.length), 2500), 0.22)
    drops = [
        shaped(resonance(noise(rng, count(0.03)), rng.uniform(2500, 6000), 400), decay(count(0.03), 0.006))
        for _ in range(12)
    ]
    for at in _moments(track, rng, 45):
        track.add(at, rng.choice(drops), rng.uniform(0.3, 1.2), rng.uniform(-1, 1))


def wind(track: Track, rng: random.Random) -> None:
    def gust(rng: random.Random) -> list[float]:
        air = resonance(low_pass(noise(rng, track.length), 700), rng.uniform(350, 480), 250)
        return shaped(air, _slowly(rng, track.length, 1.2, 0.15))

    _both_sides(track, rng, gust, 2.2)


def waves(track: Track, rng: random.Random) -> None:
    length = track.length
    rise = [(0.5 - 0.5 * math.cos(2 * math.pi * at / RATE / 6.0)) ** 2 + 0.06 for at in range(length)]
    _both_sides(track, rng, lambda rng: shaped(low_pass(noise(rng, length), 1400), rise), 1.1)


def stream(track: Track, rng: random.Random) -> None:
    _both_sides(track, rng, lambda rng: low_pass(high_pass(noise(rng, track.length), 500), 2200), 0.25)
    for at in _moments(track, rng, 25):
        length = count(rng.uniform(0.03, 0.07))
        start = rng.uniform(500, 1300)
        bubble = shaped(sweep(line(start, start * 1.7, length)), decay(length, 0.02))
        track.add(at, bubble, rng.uniform(0.1, 0.35), rng.uniform(-1, 1))


def thunder(track: Track, rng: random.Random) -> None:
    for at in _steps(track, 6.0):
        length = min(count(5.5), track.length)
        rumble = low_pass(low_pass(noise(rng, length), 130), 130)
        rolling = shaped(shaped(rumble, _slowly(rng, length, 0.3, 0.3)), decay(length, 0.9, 0.05))
        crack = shaped(noise(rng, count(0.25)), decay(count(0.25), 0.04))
        track.add(at, rolling, 9)
        track.add(at, crack, 0.5, rng.choice(_SIDES))


def fire(track: Track, rng: random.Random) -> None:
    _both_sides(track, rng, lambda rng: low_pass(noise(rng, track.length), 350), 0.5)
    for at in _moments(track, rng, 14):
        length = count(rng.uniform(0.004, 0.02))
        crackle = shaped(high_pass(noise(rng, length), 1800), decay(length, 0.003, 0.0005))
        track.add(at, crackle, rng.uniform(0.2, 1.3), rng.uniform(-0.8, 0.8))


# -------------------------------------------------------------------------------------------------------------- animals


def birds(track: Track, rng: random.Random) -> None:
    for at in _moments(track, rng, 1.6):
        base = rng.uniform(2300, 4600)
        side = rng.uniform(-1, 1)
        for chirp in range(rng.randint(2, 5)):
            length = count(rng.uniform(0.05, 0.12))
            song = sweep(line(base * rng.uniform(0.85, 1.1), base * rng.uniform(0.95, 1.3), length))
            track.add(at + chirp * 0.14, shaped(song, swell(length, 0.01, 0.03)), 0.5, side)


def crickets(track: Track, rng: random.Random) -> None:
    pulse = shaped(tone(4400, count(0.018)), swell(count(0.018), 0.004, 0.006))
    for at in _steps(track, 0.55):
        for number in range(3):
            track.add(at + number * 0.03, pulse, 0.5, -0.5)
            track.add(at + 0.21 + number * 0.03, pulse, 0.3, 0.6)


def bees(track: Track, rng: random.Random) -> None:
    hum = [210 + 25 * math.sin(2 * math.pi * at / RATE / 1.7) for at in range(track.length)]
    voice = sweep(hum)
    track.add(0, shaped([value * abs(value) for value in voice], _slowly(rng, track.length, 0.8, 0.3)), 0.7)


def heartbeat(track: Track, rng: random.Random) -> None:
    for at in _steps(track, 60 / 70):
        for pause, level in ((0.0, 1.0), (0.28, 0.7)):
            length = count(0.18)
            thump = shaped(sweep(line(75, 42, length)), decay(length, 0.035, 0.01))
            track.add(at + pause, thump, level)


# ------------------------------------------------------------------------------------------------------------- machines


def engine(track: Track, rng: random.Random) -> None:
    speed = [62 + 14 * (0.5 - 0.5 * math.cos(2 * math.pi * at / track.length)) for at in range(track.length)]
    strokes = [abs(value) ** 0.4 * (1 if value > 0 else -1) for value in sweep(speed)]
    track.add(0, mixed(low_pass(strokes, 500), scaled(low_pass(noise(rng, track.length), 300), 0.5)), 0.8)


def siren(track: Track, rng: random.Random) -> None:
    pitch = [900 + 300 * math.sin(2 * math.pi * at / RATE / 3.0) for at in range(track.length)]
    voice = sweep(pitch)
    track.add(0, [value + 0.25 * value * value * value for value in voice], 0.8)


def alarm(track: Track, rng: random.Random) -> None:
    for at in _steps(track, 1.0):
        for number in range(4):
            length = count(0.07)
            beeps = shaped(tone(2048, length, table(1, 0, 0.3)), swell(length, 0.004, 0.01))
            track.add(at + number * 0.12, beeps, 0.7)


def phone(track: Track, rng: random.Random) -> None:
    length = count(1.2)
    hammer = [0.5 + 0.5 * math.sin(2 * math.pi * 22 * at / RATE) for at in range(length)]
    ring = mixed(tone(1180, length, table(1, 0.2)), tone(1420, length, table(1, 0.2)))
    for at in _steps(track, 3.0):
        track.add(at, shaped(shaped(ring, hammer), swell(length, 0.01, 0.2)), 0.5)


def clock(track: Track, rng: random.Random) -> None:
    for number, at in enumerate(_steps(track, 0.5)):
        length = count(0.03)
        tick = shaped(resonance(noise(rng, length), 2600 if number % 2 else 2000, 300), decay(length, 0.005))
        track.add(at, tick, 1.2)


def laser(track: Track, rng: random.Random) -> None:
    for at in _steps(track, 0.8):
        length = count(0.35)
        falling = [180 + 2800 * math.exp(-at / RATE * 11) for at in range(length)]
        track.add(at, shaped(sweep(falling), decay(length, 0.09)), 0.8, rng.choice(_SIDES))


# --------------------------------------------------------------------------------------------------------------- things

_BELL = ((0.5, 0.4, 2.2), (1.0, 1.0, 1.6), (1.19, 0.6, 1.1), (1.5, 0.5, 0.9), (2.0, 0.6, 0.7), (2.74, 0.35, 0.4))


def bell(track: Track, rng: random.Random) -> None:
    for at in _steps(track, 3.5):
        length = count(4.0)
        partials = [
            scaled(shaped(tone(520 * ratio, length), decay(length, half * 0.5)), level) for ratio, level, half in _BELL
        ]
        track.add(at, mixed(*partials), 0.4)


def chime(track: Track, rng: random.Random) -> None:
    for at in _moments(track, rng, 2.5):
        length = count(1.6)
        hertz = 1046.5 * 2 ** (rng.choice((0, 2, 4, 7, 9, 12)) / 12)
        metal = mixed(tone(hertz, length), scaled(tone(hertz * 2.76, length), 0.4))
        track.add(at, shaped(metal, decay(length, 0.22)), 0.35, rng.uniform(-0.8, 0.8))


def footsteps(track: Track, rng: random.Random) -> None:
    for number, at in enumerate(_steps(track, 0.55)):
        length = count(0.14)
        heel = shaped(low_pass(noise(rng, length), 260), decay(length, 0.02))
        sole = shaped(high_pass(noise(rng, length), 1500), decay(length, 0.012))
        track.add(at, heel, 3.0, _SIDES[number % 2] / 2)
        track.add(at + 0.05, sole, 0.2, _SIDES[number % 2] / 2)


def applause(track: Track, rng: random.Random) -> None:
    claps = [
        shaped(resonance(noise(rng, count(0.05)), rng.uniform(900, 2200), 700), decay(count(0.05), 0.007))
        for _ in range(10)
    ]
    for at in _moments(track, rng, 170):
        track.add(at, rng.choice(claps), rng.uniform(0.2, 0.9), rng.uniform(-1, 1))


def knock(track: Track, rng: random.Random) -> None:
    for start in _steps(track, 2.5):
        for number in range(3):
            length = count(0.12)
            wood = shaped(resonance(noise(rng, length), 210, 90), decay(length, 0.018))
            track.add(start + number * 0.24, wood, 2.5)


def click(track: Track, rng: random.Random) -> None:
    for at in _steps(track, 0.75):
        length = count(0.012)
        track.add(at, shaped(resonance(noise(rng, length), 3200, 500), decay(length, 0.002, 0.0003)), 2.0)


def explosion(track: Track, rng: random.Random) -> None:
    for at in _steps(track, 5.0):
        length = count(4.5)
        blast = mixed(low_pass(noise(rng, length), 420), scaled(low_pass(noise(rng, length), 90), 4))
        track.add(at, shaped(blast, decay(length, 0.45, 0.004)), 2.2)


def beep(track: Track, rng: random.Random) -> None:
    for at in _steps(track, 1.0):
        track.add(at, shaped(tone(880, count(0.5)), swell(count(0.5), 0.01, 0.02)), 0.7)


def whistle(track: Track, rng: random.Random) -> None:
    for at in _steps(track, 2.0):
        length = count(1.2)
        pitch = [1500 + 350 * math.sin(math.pi * step / length) for step in range(length)]
        breath = scaled(high_pass(noise(rng, length), 1500), 0.05)
        track.add(at, shaped(mixed(sweep(pitch), breath), swell(length, 0.06, 0.15)), 0.6)


def whoosh(track: Track, rng: random.Random) -> None:
    for at in _steps(track, 2.5):
        length = count(1.4)
        rush = resonance(noise(rng, length), rng.uniform(700, 1500), 900)
        track.add(at, shaped(rush, swell(length, 0.7, 0.6)), 1.6, rng.choice(_SIDES))


WORDS: Mapping[str, Effect] = {
    word: effect
    for words, effect in (
        ("rain raining rainy drizzle shower storm", rain),
        ("wind windy breeze gust storm blizzard", wind),
        ("wave waves ocean sea surf beach", waves),
        ("stream river brook creek waterfall water", stream),
        ("thunder thunderstorm lightning", thunder),
        ("fire campfire fireplace flames crackle crackling", fire),
        ("bird birds birdsong chirp chirping forest", birds),
        ("cricket crickets night cicadas", crickets),
        ("bee bees buzz buzzing fly mosquito", bees),
        ("heart heartbeat heartbeats pulse", heartbeat),
        ("engine motor car truck motorcycle tractor", engine),
        ("siren sirens ambulance police", siren),
        ("alarm", alarm),
        ("phone telephone ringing ringtone", phone),
        ("clock tick ticking watch", clock),
        ("laser zap blaster", laser),
        ("bell bells church gong", bell),
        ("chime chimes coin coins sparkle magic", chime),
        ("footstep footsteps walking steps walk", footsteps),
        ("applause clapping clap audience crowd", applause),
        ("knock knocking door", knock),
        ("click clicks button switch keyboard", click),
        ("explosion explode boom bomb blast", explosion),
        ("beep beeps beeping tone", beep),
        ("whistle whistling", whistle),
        ("whoosh swoosh swish", whoosh),
    )
    for word in words.split()
}
