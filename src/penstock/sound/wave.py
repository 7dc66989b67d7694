"""Read and write the headers of WAV files with 16-bit samples, also of streams whose length is not known."""

import struct
from typing import NamedTuple

from penstock.sound.formats import SAMPLE_BYTES

UNKNOWN_SIZE = 0xFFFFFFFF  # in both places of the header of a stream
_HEADER_BYTES_MAX = 64 * 1024  # the samples begin before that, whatever other chunks there are
_PCM = 1
_EXTENSIBLE = 0xFFFE


class WaveFormat(NamedTuple):
    """What the samples of a WAV file are, and where they begin."""

    rate: int
    channels: int
    bits: int
    is_pcm: bool
    data_start: int
    data_bytes: int  # as the header says, true or not

    @property
    def is_plain(self) -> bool:
        """Whether the samples are as in `pcm`: 16 bits, one channel."""
        return self.is_pcm and self.bits == 8 * SAMPLE_BYTES and self.channels == 1


def header(rate: int, data_bytes: int | None = None, channels: int = 1) -> bytes:
    """The header of a file with samples of 16 bits; without a length, that of a stream."""
    size = UNKNOWN_SIZE if data_bytes is None else data_bytes
    riff = UNKNOWN_SIZE if data_bytes is None else data_bytes + 36
    frame = channels * SAMPLE_BYTES  # the bytes of one moment
    parts = (b"RIFF", riff, b"WAVE", b"fmt ", 16, _PCM, channels, rate, rate * frame, frame, 8 * SAMPLE_BYTES)
    return struct.pack("<4sI4s4sIHHIIHH", *parts) + struct.pack("<4sI", b"data", size)


def read_header(data: bytes) -> WaveFormat | None:
    """What the beginning of a WAV file says about its samples; None if it is not complete yet.

    Raises ValueError if it cannot be a WAV file. Sizes are not believed, but for where the next chunk begins.
    """
    if len(data) < 12:
        return None
    if data[:4] not in (b"RIFF", b"RF64") or data[8:12] != b"WAVE":
        raise ValueError("not a WAV file")
    at = 12
    found: tuple[int, ...] = ()
    while at + 8 <= len(data):
        name, size = struct.unpack_from("<4sI", data, at)
        if name == b"data":
            if not found:
                raise ValueError("samples before their format")
            code, channels, rate, _, _, bits = found
            return WaveFormat(rate, channels, bits, code in (_PCM, _EXTENSIBLE), at + 8, size)
        if name == b"fmt " and at + 24 <= len(data):
            if size < 16:
                raise ValueError("a format that is too short")
            found = struct.unpack_from("<HHIIHH", data, at + 8)
        at += 8 + size + size % 2
    if at > _HEADER_BYTES_MAX or len(data) > _HEADER_BYTES_MAX:
        raise ValueError("no samples at the beginning")
    return None
