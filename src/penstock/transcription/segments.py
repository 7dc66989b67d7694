"""Make the segments of a transcript of its words, where the provider gives no segments: lines that can be read."""

from collections.abc import Iterator, Sequence

import msgspec

from penstock.providers.transcription import DETAILS, Detail, Segment, Transcript, Word
from penstock.transcription.request import ListenRequest

_PAUSE_SECONDS = 0.6
_MOST_SECONDS = 7.0
_MOST_CHARACTERS = 84  # two lines of a subtitle
_ENDS = (".", "?", "!", "…", "。", "？", "！")


def has_detail(transcript: Transcript, detail: Detail) -> bool:
    """Whether the times are as exact as that; silence has none."""
    has: Detail = "word" if transcript.words else "segment" if transcript.segments else "text"
    return not transcript.text.strip() or DETAILS.index(has) >= DETAILS.index(detail)


def shown(transcript: Transcript, request: ListenRequest) -> Transcript:
    """The transcript with the segments that the caller's form needs."""
    if request.detail == "text":
        return transcript
    return msgspec.structs.replace(transcript, segments=segments_of(transcript))


def segments_of(transcript: Transcript) -> tuple[Segment, ...]:
    """The segments of the provider, or those that its words make."""
    if transcript.segments or not transcript.words:
        return transcript.segments
    groups = list(_groups(transcript.words))
    texts = _texts(transcript.text, groups)
    return tuple(
        Segment(text, words[0].start, words[-1].end, words[0].speaker)
        for text, words in zip(texts, groups, strict=True)
    )


def _groups(words: Sequence[Word]) -> Iterator[list[Word]]:
    """Words that belong together: they end at a pause, at the end of a sentence, or where the line is full."""
    group: list[Word] = []
    for word in words:
        if group and _is_break(group, word):
            yield group
            group = []
        group.append(word)
    yield group


def _is_break(group: Sequence[Word], word: Word) -> bool:
    last = group[-1]
    length = sum(len(each.text) + 1 for each in group) + len(word.text)
    return (
        word.start - last.end >= _PAUSE_SECONDS
        or word.speaker != last.speaker
        or last.text.rstrip("\"'”’)]」』）").endswith(_ENDS)
        or word.end - group[0].start > _MOST_SECONDS
        or length > _MOST_CHARACTERS
    )


def _texts(text: str, groups: Sequence[Sequence[Word]]) -> list[str]:
    """The part of the text that belongs to each group: with its punctuation, and spaces where it has any."""
    starts: list[int] = []
    at = 0
    for group in groups:
        for number, word in enumerate(group):
            found = text.find(word.text.strip(), at)
            if found < 0:
                return [" ".join(word.text.strip() for word in group) for group in groups]
            if not number:
                starts.append(found)
            at = found + len(word.text.strip())
    if starts:
        starts[0] = 0
    return [text[start:end].strip() for start, end in zip(starts, [*starts[1:], len(text)], strict=True)]
