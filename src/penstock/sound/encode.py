"""Encode samples as a sound file while they arrive."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Self

import av

from penstock.sound import wave
from penstock.sound.decode import raw_frame
from penstock.sound.formats import CHANNELS_OF, Layout, SoundFormat

# This runs in a child process (see imaging/workers.py).

Emit = Callable[[bytes], object]


class _Codec(NamedTuple):
    container: str
    codec: str
    bit_rate: int | None = None
    options: Mapping[str, str] = {}


_CODECS: Mapping[SoundFormat, _Codec] = {
    # Without a Xing header, which would have to be written when the length is known.
    "mp3": _Codec("mp3", "libmp3lame", 96_000, {"write_xing": "0", "id3v2_version": "3"}),
    "opus": _Codec("ogg", "libopus", 48_000, {"page_duration": "100000"}),
    "aac": _Codec("adts", "aac", 96_000),
    "flac": _Codec("flac", "flac"),
}
GENERATED = "AI-generated"
_OPUS_RATES = (8000, 12000, 16000, 24000, 48000)


def encoded_rate(output_format: SoundFormat, rate: int) -> int:
    """The rate at which a format is encoded: Opus has five only."""
    return rate if output_format != "opus" or rate in _OPUS_RATES else 48000


class Encoder:
    """Takes 16-bit samples, and emits the bytes of a file. Leaving it as a context ends the file."""

    def __init__(
        self,
        output_format: SoundFormat,
        rate: int,
        emit: Emit,
        layout: Layout = "mono",
        *,
        bit_rate: int | None = None,
        is_generated: bool = False,
    ) -> None:
        """With a `bit_rate` the file has that one all the time, if its format has any. One that `is_generated` says so,
        in the comment of formats that have comments.
        """
        self._format = output_format
        self._rate = rate
        self._layout = layout
        self._emit = emit
        self._position = 0
        self._container: Any = None
        self._bit_rate = bit_rate
        self._is_generated = is_generated
        if output_format in _CODECS:
            self._open(_CODECS[output_format])
        elif output_format == "wav":
            emit(wave.header(rate, channels=CHANNELS_OF[layout]))

    def _open(self, codec: _Codec) -> None:
        options = {"flush_packets": "1", **codec.options}
        self._container = av.open(_Output(self._emit), "w", format=codec.container, options=options)
        if self._is_generated:
            self._container.metadata["comment"] = GENERATED
        constant = {"vbr": "off"} if self._bit_rate and codec.codec == "libopus" else {}
        self._stream = self._container.add_stream(codec.codec, rate=self._rate, layout=self._layout, options=constant)
        if codec.bit_rate:
            self._stream.bit_rate = self._bit_rate or codec.bit_rate * CHANNELS_OF[self._layout]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self.close(is_whole=kind is None)

    def close(self, *, is_whole: bool = True) -> None:
        """End the file."""
        if self._container is not None:
            if is_whole:
                self._container.mux(self._stream.encode(None))
            self._container.close()

    def add(self, samples: bytes) -> None:
        """Encode samples at the rate of the encoder."""
        if self._container is None:
            self._emit(samples)
            return
        frame = raw_frame(samples, self._rate, self._position, self._layout)
        self._position += frame.samples
        self._container.mux(self._stream.encode(frame))


class _Output:
    """The file that a container is written to: no place of it can be changed later."""

    def __init__(self, emit: Emit) -> None:
        self._emit = emit

    def write(self, data: bytes) -> int:
        self._emit(bytes(data))
        return len(data)
