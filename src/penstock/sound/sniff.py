"""Recognise the format of a sound file by its first bytes and without decoding."""

from collections.abc import Mapping

from penstock.long_bodies.buffers import Buffer

HEAD_BYTES = 12  # that are enough

# The formats that are decoded, and the only demuxer that may read each. A decoder that may choose for itself reads
# playlists, which name other files.
DEMUXERS: Mapping[str, str] = {
    "mp3": "mp3",
    "wav": "wav",
    "flac": "flac",
    "opus": "ogg",
    "aac": "aac",
    "mp4": "mov",
    "webm": "matroska",
}


def sound_format(data: Buffer) -> str | None:
    """The format of a file, one of DEMUXERS; None for anything else. `opus` is anything in Ogg."""
    head = bytes(data[:HEAD_BYTES])
    if head[:4] in (b"RIFF", b"RF64") and head[8:12] == b"WAVE":
        return "wav"
    if head.startswith(b"OggS"):
        return "opus"
    if head.startswith(b"fLaC"):
        return "flac"
    if head.startswith(b"\x1aE\xdf\xa3"):
        return "webm"
    if head[4:8] == b"ftyp":
        return "mp4"
    if head.startswith(b"ID3"):
        return "mp3"
    return _by_frame_sync(head)


def is_opus(head: bytes) -> bool:
    """Whether a file in Ogg has Opus in it, by its first 64 bytes."""
    return head[28:36] == b"OpusHead"


def _by_frame_sync(head: bytes) -> str | None:
    """Frames of MPEG audio and of ADTS both begin with twelve or eleven set bits; the layer tells them apart."""
    if len(head) < 2 or head[0] != 0xFF or head[1] & 0xE0 != 0xE0:
        return None
    layer = head[1] >> 1 & 0b11
    if layer == 0:
        return "aac" if head[1] & 0xF0 == 0xF0 else None
    is_valid = head[1] >> 3 & 0b11 != 1 and (len(head) < 3 or (head[2] >> 4 != 15 and head[2] >> 2 & 0b11 != 3))
    return "mp3" if is_valid else None
