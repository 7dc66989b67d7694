"""The sound formats that callers can ask for, and their content types."""

from collections.abc import Mapping
from typing import Literal, get_args

SoundFormat = Literal["mp3", "opus", "aac", "flac", "wav", "pcm"]
SOUND_FORMATS: tuple[SoundFormat, ...] = get_args(SoundFormat)
FILE_FORMATS: tuple[SoundFormat, ...] = ("mp3", "opus", "aac", "flac", "wav")  # whose files say what they are
SAMPLE_RATES = (8000, 16000, 22050, 24000, 44100, 48000)
DEFAULT_RATE = 24000  # clients of OpenAI's `pcm` assume it, because it has no header
SAMPLE_BYTES = 2  # of a sample of `pcm` and `wav`: 16 bits, little-endian, one channel
WITH_RATE: tuple[SoundFormat, ...] = ("wav", "pcm", "flac")  # the formats whose rate a caller can choose

Layout = Literal["mono", "stereo"]
CHANNELS_OF: Mapping[Layout, int] = {"mono": 1, "stereo": 2}

_CONTENT_TYPES: Mapping[SoundFormat, str] = {
    "mp3": "audio/mpeg",
    "opus": "audio/opus",
    "aac": "audio/aac",
    "flac": "audio/flac",
    "wav": "audio/wav",
}


def content_type(output_format: SoundFormat, rate: int = DEFAULT_RATE) -> str:
    """The content type of a sound; that of `pcm` says what its missing header would."""
    return _CONTENT_TYPES.get(output_format, f"audio/pcm;rate={rate};channels=1")
