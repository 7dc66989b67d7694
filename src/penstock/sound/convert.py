"""Change the format, the rate and the speed of a sound while it arrives."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import av
from av.audio.frame import AudioFrame
from av.audio.resampler import AudioResampler

from penstock.imaging.pieces import Pieces
from penstock.sound.decode import BadSound, frames
from penstock.sound.encode import Encoder, encoded_rate
from penstock.sound.formats import CHANNELS_OF, SAMPLE_BYTES, Layout, SoundFormat

# This runs in a child process (see imaging/workers.py).

_TEMPO_LOW, _TEMPO_HIGH = 0.5, 2.0  # beyond these, FFmpeg's filter skips samples: several in a row do not


def convert(
    pieces: Pieces,
    emit: Callable[[bytes], None],
    *,
    source: str,
    source_rate: int = 0,
    target: SoundFormat,
    rate: int,
    speed: float = 1.0,
    layout: Layout = "mono",
) -> dict[str, Any]:
    """Convert sounds that follow each other in `pieces` into one sound; the task of a child process.

    `source_rate` is that of raw samples. Returns how many samples each channel of the result has, at
    `rate`.
    """
    rate = encoded_rate(target, rate)
    tempo = _Tempo(rate, speed, layout) if speed != 1 else None
    frame_size = SAMPLE_BYTES * CHANNELS_OF[layout]
    written = 0
    with Encoder(target, rate, emit, layout, is_generated=True) as encoder:
        for file in pieces.files():
            resampler = AudioResampler(format="s16", layout=layout, rate=rate)
            for frame in frames(file, source, source_rate):
                for samples in _samples(resampler.resample(frame), tempo):
                    written += len(samples) // frame_size
                    encoder.add(samples)
            for samples in _samples(resampler.resample(None), tempo):
                written += len(samples) // frame_size
                encoder.add(samples)
        if tempo:
            for samples in tempo.end():
                written += len(samples) // frame_size
                encoder.add(samples)
        if not written:
            raise BadSound("The sound is empty.")
    return {"samples": written, "rate": rate}


def _samples(resampled: list[AudioFrame], tempo: _Tempo | None) -> Iterator[bytes]:
    for frame in resampled:
        if tempo is None:
            yield frame_bytes(frame)
        else:
            yield from tempo.add(frame)


def frame_bytes(frame: AudioFrame) -> bytes:
    """The samples of a frame of 16 bits, without the padding of its memory."""
    return bytes(frame.planes[0])[: frame.samples * SAMPLE_BYTES * len(frame.layout.channels)]


class _Tempo:
    """Plays samples faster or slower at the same pitch."""

    def __init__(self, rate: int, speed: float, layout: Layout) -> None:
        self._rate = rate
        self._position = 0
        self._graph = av.filter.Graph()
        base = Fraction(1, rate)
        last = self._graph.add_abuffer(sample_rate=rate, format="s16", layout=layout, time_base=base)
        for factor in _factors(speed):
            step = self._graph.add("atempo", f"{factor:.6f}")
            last.link_to(step)
            last = step
        sink = self._graph.add("abuffersink")
        last.link_to(sink)
        self._graph.configure()

    def add(self, frame: AudioFrame) -> Iterator[bytes]:
        frame.pts = self._position
        frame.time_base = Fraction(1, self._rate)
        self._position += frame.samples
        self._graph.push(frame)
        return self._pull()

    def end(self) -> Iterator[bytes]:
        self._graph.push(None)
        return self._pull()

    def _pull(self) -> Iterator[bytes]:
        while True:
            try:
                frame = self._graph.pull()
                assert isinstance(frame, AudioFrame), "the graph has no pictures"
                yield frame_bytes(frame)
            except (av.BlockingIOError, av.EOFError):
                return


def _factors(speed: float) -> Iterator[float]:
    """Factors that FFmpeg's filter takes, whose product is the speed."""
    while speed < _TEMPO_LOW:
        yield _TEMPO_LOW
        speed /= _TEMPO_LOW
    while speed > _TEMPO_HIGH:
        yield _TEMPO_HIGH
        speed /= _TEMPO_HIGH
    yield speed
