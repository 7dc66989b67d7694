"""Parts of a sound that are heard one after the other; tests of calls are in test_endpoint.py."""

import pytest

from penstock.providers.transcription import Segment, Transcript, Word
from penstock.transcription.listening import joined, joined_usage, last_sentence


def test_times_of_a_later_part_are_those_in_the_whole_sound() -> None:
    part = Transcript(
        " a b ", "english", (Segment("a b", 0.5, 1.25, "A"),), (Word("a", 0.5, 0.75),), usage={"input": 3}
    )
    whole = joined([part, part], [0.0, 60.1])
    assert whole.text == "a b a b"
    assert [(segment.start, segment.end) for segment in whole.segments] == [(0.5, 1.25), (60.6, 61.35)]
    assert [(word.start, word.end) for word in whole.words] == [(0.5, 0.75), (60.6, 60.85)]
    assert (whole.language, whole.usage) == ("english", {"input": 6})


def test_a_single_part_stays_as_it_is() -> None:
    part = Transcript(" a\n")
    assert joined([part], [0.0]) is part


def test_usage_counts_only_if_all_parts_have_it() -> None:
    assert joined_usage([Transcript("", usage={"input": 3}), Transcript("")], 2) == {}
    assert joined_usage([Transcript("", usage={"input": 3})], 2) == {}, "one part was not answered"


@pytest.mark.parametrize(
    ("text", "last"),
    [
        ("One. Two? Three!", "Three!"),
        ("no end", "no end"),
        ("", None),
        ("最初。次。", "次。"),
        ("x" * 500, "x" * 400),
    ],
)
def test_the_last_sentence(text: str, last: str | None) -> None:
    assert last_sentence(text) == last
