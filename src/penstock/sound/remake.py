"""Convert a whole sound file to another format, with its channels as far as two, and measure it."""

from __future__ import annotations

from io import BytesIO
from typing import Any

from av.audio.resampler import AudioResampler

from penstock.sound.convert import frame_bytes
from penstock.sound.decode import BadSound, frames
from penstock.sound.encode import Encoder, encoded_rate
from penstock.sound.formats import SAMPLE_RATES, Layout, SoundFormat
from penstock.sound.sniff import HEAD_BYTES, sound_format

# This runs in a child process (see imaging/workers.py).

_RATE_MAX = max(SAMPLE_RATES)


def remake(data: bytes, target: SoundFormat, max_seconds: float | None = None) -> dict[str, Any]:
    """The file in another format, marked as generated, and its seconds; the task of a child process.

    Raises BadSound for what is not sound, for a file without samples, and for one that is longer than `max_seconds`.
    """
    found = sound_format(data[:HEAD_BYTES])
    if found is None:
        raise BadSound("The file type is unknown.")
    made = bytearray()
    samples = 0
    rate = 0
    encoder: Encoder | None = None
    resampler: AudioResampler | None = None
    try:
        for frame in frames(BytesIO(data), found):
            if resampler is None or encoder is None:
                layout: Layout = "mono" if len(frame.layout.channels) == 1 else "stereo"
                rate = encoded_rate(target, min(frame.sample_rate, _RATE_MAX))
                resampler = AudioResampler(format="s16", layout=layout, rate=rate)
                encoder = Encoder(target, rate, made.extend, layout, is_generated=True)
            for plain in resampler.resample(frame):
                encoder.add(frame_bytes(plain))
                samples += plain.samples
            if max_seconds is not None and samples > max_seconds * rate:
                raise BadSound(f"The sound is longer than {max_seconds:g} seconds.")
        for plain in resampler.resample(None) if resampler else ():
            assert encoder is not None, "both are made together"
            encoder.add(frame_bytes(plain))
            samples += plain.samples
    except BaseException:
        if encoder is not None:
            encoder.close(is_whole=False)
        raise
    if encoder is None or not samples:
        raise BadSound("The sound is empty.")
    encoder.close()
    return {"data": bytes(made), "seconds": round(samples / rate, 3)}
