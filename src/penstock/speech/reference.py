"""A voice to imitate: checked for consent, heard and encoded anew, and noted in the audit log."""

import hashlib
from base64 import b64encode
from typing import Any

import msgspec

from penstock.audit_log import Act, Actor, act_as, note_act
from penstock.errors import InvalidRequest, PayloadTooLarge
from penstock.event_loop import run_aside
from penstock.gateway import Gateway
from penstock.imaging.workers import WorkFailed
from penstock.long_bodies.base64_pieces import Base64Text
from penstock.package_extras import has_extra, how_to_install
from penstock.schema import Call

FIELD = "reference_audio"
_NAMES = ("audio", "text", "consent")
_EXTRA = "media"
_MAX_BYTES = 10 * 2**20
_MIN_SECONDS = 2
_MAX_SECONDS = 30
_TEXT_LENGTH_MAX = 2000


class Reference(msgspec.Struct, frozen=True):
    """The sound of the voice: WAV in base64, and what is said in it, if the caller tells."""

    encoded: str
    text: str | None
    sha256: str  # of the WAV
    seconds: float


async def read_reference(gateway: Gateway, call: Call, written: Any, *, is_kept: bool) -> Reference | None:
    """The voice that a call wants imitated; None if it has none. Raises InvalidRequest."""
    if written is None:
        return None
    source = _checked(gateway, written)
    if is_kept:
        raise _wrong("cannot be sent with a call whose sound is kept: its sound would be stored.")
    if not has_extra(_EXTRA):
        raise _wrong(f"needs an extra of the gateway: {how_to_install(_EXTRA)}.")
    org_id = call.caller.org_id
    data = await gateway.media_transfer.sources.read(source, FIELD, _MAX_BYTES, org_id)
    if len(data) > _MAX_BYTES:
        raise PayloadTooLarge(f"The sound of `{FIELD}` may have {_MAX_BYTES} bytes at most.", param=FIELD)
    try:
        made = await gateway.worker_pool.run(
            "sound.remake", for_org=org_id, data=data, target="wav", max_seconds=_MAX_SECONDS
        )
    except WorkFailed as error:
        reason = error.message if error.kind == "refused" else "It could not be read."
        raise _wrong(f"has no usable sound: {reason}") from None
    if made["seconds"] < _MIN_SECONDS:
        raise _wrong(f"must have a sound of {_MIN_SECONDS} to {_MAX_SECONDS} seconds.")
    encoded, sha256 = await run_aside(len(made["data"]), _encode, made["data"])
    return Reference(encoded, written.get("text"), sha256, made["seconds"])


def without_sound(call: Call, reference: Reference | None) -> Call:
    """The call as it is stored and recorded: with the digest of the sound in its place."""
    if reference is None:
        return call
    kept = {"sha256": reference.sha256, "text": reference.text, "consent": True}
    fields = {**call.json, FIELD: kept}
    return msgspec.structs.replace(call, body=msgspec.json.encode(fields), json=fields)


async def note_imitation(gateway: Gateway, call: Call, model: str, reference: Reference) -> None:
    """Note in the audit log who affirmed that the person agrees, and which sound it was."""
    act_as(Actor(call.caller.user_id or call.caller.key_id, call.address, call.id))
    said = {"consent": True, "model": model, "sha256": reference.sha256, "seconds": reference.seconds}
    await note_act(
        gateway.store, gateway.clock.now_ms(), Act("voice.imitated", call.id, call.caller.org_id, after=said)
    )


def _checked(gateway: Gateway, written: Any) -> str | Base64Text:
    """Where the sound is: a data URI or a URL. Raises InvalidRequest if the call may not imitate a voice."""
    if not gateway.settings.allow_voice_cloning:
        raise _wrong("is refused: the operator of this gateway does not allow that voices are imitated.")
    unknown = [name for name in written if name not in _NAMES]
    if unknown or not isinstance(written.get("audio"), str | Base64Text):
        raise _wrong("must be an object with `audio`, a data URI or an HTTPS URL, `consent` and perhaps `text`.")
    if written.get("consent") is not True:
        raise _wrong("needs `consent: true`: the person whose voice it is agrees that it is imitated.")
    text = written.get("text")
    if text is not None and not (isinstance(text, str) and len(text) <= _TEXT_LENGTH_MAX):
        raise _wrong(f"may have a `text` of at most {_TEXT_LENGTH_MAX} characters: what is said in the sound.")
    source: str | Base64Text = written["audio"]
    return source


def _wrong(message: str) -> InvalidRequest:
    return InvalidRequest(f"`{FIELD}` {message}", param=FIELD)


def _encode(data: bytes) -> tuple[str, str]:
    return b64encode(data).decode(), hashlib.sha256(data).hexdigest()
