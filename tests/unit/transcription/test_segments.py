"""Lines that are made of words."""

from penstock.providers.transcription import Segment, Transcript, Word
from penstock.transcription.segments import segments_of


def spoken(text: str, *, pause_before: str = "", step: float = 0.3) -> Transcript:
    """The words of a text at a steady pace, with a pause before one of them."""
    words = []
    at = 0.0
    for word in text.split():
        at += 2.0 if word == pause_before else 0.0
        words.append(Word(word.strip(",."), at, at + step))
        at += step
    return Transcript(text, words=tuple(words))


def texts(transcript: Transcript) -> list[str]:
    return [segment.text for segment in segments_of(transcript)]


def test_a_pause_ends_a_line() -> None:
    assert texts(spoken("one two, three four.", pause_before="three")) == ["one two,", "three four."]


def test_a_line_is_short_enough_to_be_read() -> None:
    lines = segments_of(spoken("word " * 60))
    assert all(len(line.text) <= 84 for line in lines)
    assert all(line.end - line.start <= 7 for line in lines)
    assert [line.start for line in lines] == sorted(line.start for line in lines)
    assert sum(len(line.text.split()) for line in lines) == 60


def test_the_end_of_a_sentence_ends_a_line() -> None:
    words = tuple(Word(word, at, at + 1) for at, word in enumerate(("Stop.", "Now", "go.")))
    assert texts(Transcript("Stop. Now go.", words=words)) == ["Stop.", "Now go."]


def test_another_speaker_begins_a_line() -> None:
    words = (Word("yes", 0, 1, "A"), Word("no", 1, 2, "B"))
    lines = segments_of(Transcript("yes no", words=words))
    assert [(line.text, line.speaker) for line in lines] == [("yes", "A"), ("no", "B")]


def test_a_text_without_spaces_keeps_none() -> None:
    words = tuple(Word(word, at, at + 0.5) for at, word in enumerate("日本語"))
    assert texts(Transcript("日本語", words=words)) == ["日本語"]


def test_words_that_are_not_in_the_text_make_it_themselves() -> None:
    words = (Word(" Hello", 0, 1), Word("there", 1, 2))
    assert texts(Transcript("Hi!", words=words)) == ["Hello there"]


def test_the_segments_of_the_provider_are_kept() -> None:
    given = Transcript("a", segments=(Segment("a", 0, 1),), words=(Word("a", 0, 1),))
    assert segments_of(given) == given.segments
    assert segments_of(Transcript("a")) == ()
