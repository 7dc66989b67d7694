"""Read the sound of a call, and have a child process measure and encode it: its headers are not believed."""

from typing import Any, NamedTuple

import msgspec

from penstock.errors import InvalidRequest, PayloadTooLarge
from penstock.gateway import Gateway
from penstock.imaging.workers import WorkFailed
from penstock.long_bodies.buffers import Buffer
from penstock.package_extras import has_extra, how_to_install
from penstock.providers.spec import Upload
from penstock.schema import Call
from penstock.sound.sniff import HEAD_BYTES, sound_format
from penstock.transcription.request import ListenRequest

MAX_SECONDS = 4 * 3600
_EXTRA = "media"
_CONTENT_TYPES = {"flac": "audio/flac", "opus": "audio/ogg"}
# Of files that are sent as they came, by what the first bytes say they are.
_ORIGINAL_TYPES = {
    "mp3": "audio/mpeg",
    "wav": "audio/wav",
    "flac": "audio/flac",
    "opus": "audio/ogg",
    "aac": "audio/aac",
    "mp4": "audio/mp4",
    "webm": "audio/webm",
}
_FILE_NAMES = {
    "audio/mpeg": "sound.mp3",
    "audio/wav": "sound.wav",
    "audio/flac": "sound.flac",
    "audio/ogg": "sound.ogg",
    "audio/aac": "sound.aac",
    "audio/mp4": "sound.m4a",
    "audio/webm": "sound.webm",
}


class SoundPart(msgspec.Struct, frozen=True):
    """A part of the sound: what a provider is sent, and where it belongs, in seconds."""

    file: Upload
    start: float
    seconds: float
    media_id: str = ""  # where its bytes are in the storage, unless they are in `file`


class PartLimits(NamedTuple):
    """How large a part of a sound may be."""

    size_bytes: int
    seconds: float


ANY_PART = PartLimits(24 * 1024**2, MAX_SECONDS)  # which most models take


class PreparedSound(msgspec.Struct, frozen=True):
    """The sound of a call, in one channel with 16,000 samples a second and without anything else of the file."""

    seconds: float
    sha256: bytes  # of the samples
    parts: tuple[SoundPart, ...]

    def fits(self, limits: PartLimits) -> bool:
        """Whether each part is small enough."""
        return all(len(part.file.data) <= limits.size_bytes and part.seconds <= limits.seconds for part in self.parts)


async def prepare_sound(gateway: Gateway, call: Call, request: ListenRequest, limits: PartLimits) -> PreparedSound:
    """The sound in parts that are small enough. Raises InvalidRequest if it cannot be had or is not a sound."""
    if not has_extra(_EXTRA):
        message = f"To read sound, the gateway needs an extra: {how_to_install(_EXTRA)}."
        raise InvalidRequest(message, param=request.param)
    max_bytes = gateway.settings.input_audio_bytes
    org_id = call.caller.org_id
    data = await gateway.media_transfer.sources.read(request.source, request.param, max_bytes, org_id)
    if len(data) > max_bytes:
        raise PayloadTooLarge(f"`{request.param}` may have {max_bytes} bytes at most.", param=request.param)
    try:
        made = await gateway.worker_pool.run(
            "sound.prepare",
            for_org=org_id,
            data=data,
            part_bytes=limits.size_bytes,
            part_seconds=limits.seconds,
            max_seconds=MAX_SECONDS,
        )
    except WorkFailed as error:
        reason = error.message if error.kind == "refused" else "It could not be read."
        raise InvalidRequest(f"`{request.param}` is not a usable sound: {reason}", param=request.param) from None
    if request.original:
        return PreparedSound(made["seconds"], made["sha256"], (_original(data, made, limits),))
    return PreparedSound(made["seconds"], made["sha256"], tuple(_part(made["format"], part) for part in made["parts"]))


def _original(data: Buffer, made: dict[str, Any], limits: PartLimits) -> SoundPart:
    """The file as it came. Raises InvalidRequest if it would have to be cut."""
    if len(made["parts"]) > 1 or len(data) > limits.size_bytes:
        message = (
            f"`original` needs a sound that can be sent at once: at most {limits.size_bytes} bytes and "
            f"{limits.seconds:g} seconds."
        )
        raise InvalidRequest(message, param="original")
    found = sound_format(data[:HEAD_BYTES])
    assert found is not None, "it was decoded"
    return SoundPart(upload(data, _ORIGINAL_TYPES[found]), 0.0, made["seconds"])


def _part(found: str, part: dict[str, Any]) -> SoundPart:
    return SoundPart(upload(part["data"], _CONTENT_TYPES[found]), part["start"], part["seconds"])


def upload(data: Buffer, content_type: str) -> Upload:
    """A part of the sound as providers are sent it."""
    return Upload(data, content_type, _FILE_NAMES[content_type])
