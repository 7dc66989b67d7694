"""The melody and the lengths of a clause."""

from statistics import mean

from penstock_atelier.voice.prosody import FRAME_SECONDS, clause_frames

WORDS = "this is a simple sentence".split()


def pitches(mark: str) -> list[float]:
    return [frame.pitch for frame in clause_frames(WORDS, mark, 1.0) if frame.target.voice > 0.9]


def test_a_question_rises_and_a_statement_falls() -> None:
    assert mean(pitches("?")[-10:]) > mean(pitches("?")[:10])
    assert mean(pitches(".")[-10:]) < mean(pitches(".")[:10])


def test_speech_at_twice_the_rate_takes_half_as_long() -> None:
    slow, fast = (len(list(clause_frames(WORDS, ".", rate))) for rate in (1.0, 2.0))
    assert 1.8 < slow / fast < 2.2


def test_a_sentence_takes_about_as_long_as_people_take() -> None:
    seconds = len(list(clause_frames(WORDS, ".", 1.0))) * FRAME_SECONDS
    assert 1.2 < seconds < 3.5
