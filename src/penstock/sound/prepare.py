"""Decode a caller's sound once: measure it, and encode it for providers, in parts that they take."""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Iterator
from io import BytesIO
from typing import Any

from av.audio.resampler import AudioResampler

from penstock.long_bodies.buffers import Buffer
from penstock.sound.convert import frame_bytes
from penstock.sound.decode import BadSound, frames
from penstock.sound.encode import Encoder
from penstock.sound.formats import SAMPLE_BYTES
from penstock.sound.sniff import HEAD_BYTES, sound_format

# This runs in a child process (see imaging/workers.py).

RATE = 16_000  # what models that listen take
_BIT_RATE = 32_000  # of Opus: a part of 24 MiB has 100 minutes
_WINDOW_BYTES = RATE // 10 * SAMPLE_BYTES  # a tenth of a second
_SEARCHED_SECONDS = 30.0  # at the end of a part, for the quietest place
_HOUR = 3600


class _TooLarge(Exception):
    """A part has more bytes than it may have in this format."""


def prepare(data: Buffer, *, part_bytes: int, part_seconds: float, max_seconds: float) -> dict[str, Any]:
    """Return the parts of a sound as files of one channel, and how long they are by their samples; the task of a child
    process. The parts are FLAC, or Opus where that would be too large; the digest is that of all samples.

    Raises BadSound for what is not sound, is empty, or is longer than `max_seconds`.
    """
    found = sound_format(data[:HEAD_BYTES])
    if found is None:
        raise BadSound("The file type is unknown; flac, mp3, m4a, mp4, ogg, wav and webm can be read.")
    try:
        return _parts(data, found, "flac", part_bytes, part_seconds, max_seconds)
    except _TooLarge:
        fitting = part_bytes * 8 / _BIT_RATE * 0.9  # the container takes some
        return _parts(data, found, "opus", part_bytes, min(part_seconds, fitting), max_seconds)


def _parts(
    data: Buffer, found: str, target: Any, part_bytes: int, part_seconds: float, max_seconds: float
) -> dict[str, Any]:
    digest = hashlib.sha256()
    parts: list[dict[str, Any]] = []
    count = 0
    for windows in _cut(_windows(data, found), int(part_seconds * 10)):
        made = bytearray()
        start = count
        with Encoder(target, RATE, made.extend, bit_rate=_BIT_RATE) as encoder:
            for samples in windows:
                digest.update(samples)
                count += len(samples) // SAMPLE_BYTES
                if count > max_seconds * RATE:
                    raise BadSound(f"The sound is longer than {max_seconds / _HOUR:g} hours.")
                encoder.add(samples)
                if len(made) > part_bytes:
                    raise _TooLarge
        parts.append({"data": bytes(made), "start": start / RATE, "seconds": (count - start) / RATE})
    if not count:
        raise BadSound("The sound is empty.")
    return {"format": target, "seconds": round(count / RATE, 3), "sha256": digest.digest(), "parts": parts}


def _windows(data: Buffer, found: str) -> Iterator[bytes]:
    """The samples in pieces of a tenth of a second; the last one may be shorter."""
    resampler = AudioResampler(format="s16", layout="mono", rate=RATE)
    rest = bytearray()
    try:
        for frame in frames(BytesIO(data), found):
            for resampled in resampler.resample(frame):
                rest += frame_bytes(resampled)
            while len(rest) >= _WINDOW_BYTES:
                yield bytes(rest[:_WINDOW_BYTES])
                del rest[:_WINDOW_BYTES]
        for resampled in resampler.resample(None):
            rest += frame_bytes(resampled)
    except ValueError as error:  # a rate or a number of channels that changes
        raise BadSound("The sound could not be read.") from error
    for start in range(0, len(rest), _WINDOW_BYTES):
        yield bytes(rest[start : start + _WINDOW_BYTES])


def _cut(windows: Iterator[bytes], most: int) -> Iterator[Iterator[bytes]]:
    """The windows of each part, at most so many. One that is not the last ends at the quietest of its last windows."""
    searched = min(int(_SEARCHED_SECONDS * 10), most // 2)
    ahead: list[bytes] = []

    def part() -> Iterator[bytes]:
        """The windows of the next part; those after its end stay in `ahead`."""
        sent = 0
        while ahead and sent < most - searched:
            yield ahead.pop(0)
            sent += 1
        for window in windows:
            if sent < most - searched:
                yield window
                sent += 1
                continue
            ahead.append(window)
            if len(ahead) > searched:
                break
        end = len(ahead) if len(ahead) <= searched else _quietest(ahead[:searched]) + 1
        for window in ahead[:end]:
            yield window
        del ahead[:end]

    yield part()
    while ahead:
        yield part()


def _quietest(windows: list[bytes]) -> int:
    """Which window has the least energy; the last of several that are alike, so that parts are long."""
    energies = [sum(abs(sample) for sample in array("h", window)) for window in windows]
    least = min(energies)
    return max(at for at, energy in enumerate(energies) if energy == least)
