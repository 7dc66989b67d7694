"""The task of a child process: write down when a sound has speech, another sound or silence, with true times.

No model is behind it, so it knows no words: it is for transcripts what the echo is for chats.
"""

from array import array
from collections.abc import Iterator, Sequence
from io import BytesIO
from itertools import groupby
from statistics import fmean, pstdev
from typing import Any

import msgspec
from av.audio.resampler import AudioResampler

from penstock.sound.convert import frame_bytes
from penstock.sound.decode import frames
from penstock.sound.sniff import HEAD_BYTES, sound_format

_RATE = 16_000
_WINDOW = _RATE // 50  # samples: 20 milliseconds
_SECONDS = _WINDOW / _RATE
_SILENCE = 100  # the mean amplitude of 16-bit samples below which nothing is heard
_SHORTEST = 15  # windows: a shorter pause belongs to what is around it
_SPEECH_VARIATION = 0.5  # the loudness of syllables varies; that of a tone or of noise does not


def listen(*, file: bytes) -> dict[str, Any]:
    """The segments of a sound. Its text names what each of them is: `[speech]`, `[sound]` or `[silence]`."""
    loudness = list(_loudness(file))
    segments = [
        {"text": _kind(loudness[start:end]), "start": round(start * _SECONDS, 3), "end": round(end * _SECONDS, 3)}
        for start, end in _spans(loudness)
    ]
    text = " ".join(str(segment["text"]) for segment in segments)
    words = [{"word": segment["text"], "start": segment["start"], "end": segment["end"]} for segment in segments]
    return {"body": msgspec.json.encode({"text": text, "segments": segments, "words": words})}


def _loudness(file: bytes) -> Iterator[float]:
    """The mean amplitude of each window."""
    found = sound_format(file[:HEAD_BYTES])
    assert found is not None, "the gateway has made the file"
    resampler = AudioResampler(format="s16", layout="mono", rate=_RATE)
    rest: array[int] = array("h")
    for frame in frames(BytesIO(file), found):
        for plain in resampler.resample(frame):
            rest.frombytes(frame_bytes(plain))
        whole = len(rest) - len(rest) % _WINDOW
        for start in range(0, whole, _WINDOW):
            yield fmean(map(abs, rest[start : start + _WINDOW]))
        del rest[:whole]
    if rest:
        yield fmean(map(abs, rest))


def _spans(loudness: Sequence[float]) -> list[tuple[int, int]]:
    """Where it is silent and where not: the first window of each span, and the one after its last."""
    spans: list[tuple[bool, int, int]] = []
    for is_silent, group in groupby(enumerate(loudness), key=lambda pair: pair[1] < _SILENCE):
        windows = [at for at, _ in group]
        start, end = windows[0], windows[-1] + 1
        if spans and (end - start < _SHORTEST or spans[-1][0] == is_silent):
            last_silent, first, _ = spans.pop()
            spans.append((last_silent, first, end))
        elif len(spans) == 1 and start < _SHORTEST:  # the padding of an encoder
            spans = [(is_silent, 0, end)]
        else:
            spans.append((is_silent, start, end))
    return [(start, end) for _, start, end in spans]


def _kind(loudness: Sequence[float]) -> str:
    mean = fmean(loudness)
    if mean < _SILENCE:
        return "[silence]"
    return "[speech]" if pstdev(loudness) / mean > _SPEECH_VARIATION else "[sound]"
