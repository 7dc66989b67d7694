"""The people whom a caller expects to speak: their names, and a sound of each, which is heard and encoded anew."""

import hashlib
from base64 import b64encode
from collections.abc import Mapping, Sequence
from typing import Any

from penstock.errors import InvalidRequest, PayloadTooLarge
from penstock.event_loop import run_aside
from penstock.gateway import Gateway
from penstock.imaging.workers import WorkFailed
from penstock.long_bodies.base64_pieces import Base64Text
from penstock.package_extras import has_extra, how_to_install
from penstock.schema import Call

NAMES = "known_speaker_names"
REFERENCES = "known_speaker_references"
_EXTRA = "media"
_MOST = 4
_MIN_SECONDS = 2
_MAX_SECONDS = 10
_MAX_BYTES = 10 * 2**20


def speaker_sounds(body: Mapping[str, Any]) -> tuple[str | Base64Text, ...]:
    """Where the sounds of the speakers are: data URIs or URLs, one for each name. Raises InvalidRequest."""
    names, sounds = body.get(NAMES, []), body.get(REFERENCES, [])
    if not isinstance(sounds, list) or not all(isinstance(sound, str | Base64Text) for sound in sounds):
        raise InvalidRequest(f"`{REFERENCES}` must be a list of data URIs or HTTPS URLs.", param=REFERENCES)
    if not isinstance(names, list) or len(names) != len(sounds):
        message = f"`{NAMES}` and `{REFERENCES}` must be lists of the same length: a name, and a sound of that person."
        raise InvalidRequest(message, param=NAMES)
    if len(names) > _MOST:
        raise InvalidRequest(f"`{NAMES}` may have {_MOST} names at most.", param=NAMES)
    return tuple(sounds)


def digests(sounds: Sequence[str | Base64Text]) -> list[str]:
    """What is recorded in place of the sounds."""
    return [hashlib.sha256(str(sound).encode()).hexdigest() for sound in sounds]


async def remade_sounds(gateway: Gateway, call: Call, sounds: Sequence[str | Base64Text]) -> list[str]:
    """The sounds as data URIs of WAV files that have nothing but their samples. Raises InvalidRequest."""
    if not has_extra(_EXTRA):
        raise _wrong(f"needs an extra of the gateway: {how_to_install(_EXTRA)}.")
    return [await _remade(gateway, call, sound) for sound in sounds]


async def _remade(gateway: Gateway, call: Call, sound: str | Base64Text) -> str:
    org_id = call.caller.org_id
    data = await gateway.media_transfer.sources.read(sound, REFERENCES, _MAX_BYTES, org_id)
    if len(data) > _MAX_BYTES:
        raise PayloadTooLarge(f"Each sound of `{REFERENCES}` may have {_MAX_BYTES} bytes at most.", param=REFERENCES)
    try:
        made = await gateway.worker_pool.run(
            "sound.remake", for_org=org_id, data=data, target="wav", max_seconds=_MAX_SECONDS
        )
    except WorkFailed as error:
        reason = error.message if error.kind == "refused" else "It could not be read."
        raise _wrong(f"has a sound that cannot be used: {reason}") from None
    if made["seconds"] < _MIN_SECONDS:
        raise _wrong(f"must have sounds of {_MIN_SECONDS} to {_MAX_SECONDS} seconds.")
    return await run_aside(len(made["data"]), _data_uri, made["data"])


def _data_uri(data: bytes) -> str:
    return f"data:audio/wav;base64,{b64encode(data).decode()}"


def _wrong(message: str) -> InvalidRequest:
    return InvalidRequest(f"`{REFERENCES}` {message}", param=REFERENCES)
