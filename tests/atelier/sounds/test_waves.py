"""Tones, filters and the stereo track."""

import random

import pytest

from penstock_atelier.sounds import waves


def power(samples: list[float]) -> float:
    return sum(sample * sample for sample in samples) / len(samples)


def test_filters_take_away_what_is_beyond_them() -> None:
    low, high = waves.tone(100, 8000), waves.tone(8000, 8000)
    assert power(waves.low_pass(high, 300)) < 0.01 < 0.3 < power(waves.low_pass(low, 300))
    assert power(waves.high_pass(low, 3000)) < 0.01 < 0.1 < power(waves.high_pass(high, 3000))
    assert power(waves.resonance(low, 100, 20)) > 50 * power(waves.resonance(high, 100, 20))


def test_a_track_is_as_loud_as_it_can_be() -> None:
    track = waves.Track(0.1)
    track.add(0.0, waves.tone(440, 2000), 0.001)
    samples = memoryview(track.finish()).cast("h")
    assert max(samples) == pytest.approx(29_000, rel=0.01)
    assert len(samples) == 2 * track.length


def test_a_silent_track_stays_silent() -> None:
    assert set(waves.Track(0.05).finish()) == {0}


@pytest.mark.parametrize(("side", "left", "right"), [(-1.0, 1.0, 0.0), (0.0, 1.0, 1.0), (1.0, 0.0, 1.0)])
def test_a_sound_is_on_its_side(side: float, left: float, right: float) -> None:
    track = waves.Track(0.01)
    track.add(0.0, [1.0], 1.0, side)
    assert (track.left[0], track.right[0]) == (left, right)


def test_what_is_beyond_the_end_is_left_out() -> None:
    track = waves.Track(0.01)
    track.add(0.009, [1.0] * 4000)
    track.add(7.0, [1.0])
    track.add(-1.0, [1.0])
    assert len(track.left) == track.length


def test_noise_comes_from_its_seed() -> None:
    assert waves.noise(random.Random(1), 50) == waves.noise(random.Random(1), 50)
