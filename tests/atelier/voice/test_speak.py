"""The task that speaks."""

import pytest

from penstock_atelier.voice.speak import NotEnglish, speak
from tests import sounds


def spoken(text: str, voice: str = "echo", speed: float = 1.0) -> bytes:
    made: list[bytes] = []
    result = speak(made.append, text=text, voice=voice, speed=speed)
    assert result == {"bytes": sum(map(len, made))}
    return b"".join(made)


def test_a_sentence_is_spoken_in_pieces() -> None:
    made: list[bytes] = []
    speak(made.append, text="Hello there, how are you today?", voice="alloy", speed=1.0)
    assert len(made) > 10
    assert max(map(len, made)) < 6000


def test_a_longer_text_takes_longer_and_a_faster_one_less() -> None:
    short, long, fast = spoken("Hello."), spoken("Hello. " * 4), spoken("Hello. " * 4, speed=2.0)
    assert len(long) > 3 * len(short)
    assert len(fast) < 0.6 * len(long)
    assert sounds.seconds_of(short, "pcm") < 2


def test_voices_differ() -> None:
    assert spoken("Hello.", "onyx") != spoken("Hello.", "nova")


def test_a_text_without_words_is_refused() -> None:
    with pytest.raises(NotEnglish) as refusal:
        spoken("…")
    assert refusal.value.kind == "refused"
