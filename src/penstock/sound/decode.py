"""Decode a sound that a stranger made, whatever its headers say."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import IO, Any

import av
from av.audio.frame import AudioFrame

from penstock.sound.formats import CHANNELS_OF, SAMPLE_BYTES, Layout
from penstock.sound.sniff import DEMUXERS

# This runs in a child process (see imaging/workers.py): decoders read bytes that callers and providers chose.

RATES = range(4_000, 192_001)
CHANNELS = range(1, 9)
_PCM_BYTES = 8192  # of raw samples that make one frame
_READ_BYTES = 4096
_SELF_EVIDENT = ("mp3", "aac")  # each frame says what it is: nothing is read ahead, so that streams begin at once


class BadSound(Exception):
    """The sound is refused: it is broken, or not what may be read here."""

    kind = "refused"


def frames(file: IO[bytes] | Any, source: str, rate: int = 0) -> Iterator[AudioFrame]:
    """The frames of a sound in this format; `rate` is that of raw samples. Raises BadSound.

    The file is read to its end and no further, in order. Only one demuxer may read it: see `sniff.DEMUXERS`.
    """
    if source == "pcm":
        yield from _raw_frames(file, rate)
        return
    demuxer = DEMUXERS[source]
    options = {"format_whitelist": demuxer, "protocol_whitelist": "", "probesize": "65536"}
    if source in _SELF_EVIDENT:
        options["analyzeduration"] = "1"
    try:
        with av.open(file, "r", format=demuxer, options=options, buffer_size=_READ_BYTES) as container:
            stream = next(iter(container.streams.audio), None)
            if stream is None:
                raise BadSound("The file has no sound.")
            stream.codec_context.thread_count = 1
            for frame in container.decode(stream):
                if frame.sample_rate not in RATES or len(frame.layout.channels) not in CHANNELS:
                    raise BadSound("The sound has a sample rate or a number of channels that is not supported.")
                yield frame
    except BadSound:
        raise
    except (av.FFmpegError, ValueError, OverflowError) as error:  # decoders raise many errors on broken files
        raise BadSound("The sound could not be read.") from error


def _raw_frames(file: IO[bytes] | Any, rate: int) -> Iterator[AudioFrame]:
    """Frames of 16-bit samples; a byte without its second half at the end is left out."""
    rest = b""
    position = 0
    while data := file.read(_PCM_BYTES):
        data = rest + data
        size = len(data) - len(data) % SAMPLE_BYTES
        rest = data[size:]
        if size:
            frame = raw_frame(data[:size], rate, position)
            position += frame.samples
            yield frame


def raw_frame(samples: bytes, rate: int, position: int, layout: Layout = "mono") -> AudioFrame:
    """A frame of 16-bit samples, which begins at this moment of the sound. Two channels take turns."""
    frame = AudioFrame(format="s16", layout=layout, samples=len(samples) // (SAMPLE_BYTES * CHANNELS_OF[layout]))
    # A plane may be longer than its samples, because its memory is aligned.
    frame.planes[0].update(samples.ljust(frame.planes[0].buffer_size, b"\0"))
    frame.sample_rate = rate
    frame.time_base = Fraction(1, rate)
    frame.pts = position
    return frame
