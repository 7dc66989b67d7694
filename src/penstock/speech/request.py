"""Check a call of speech: its text, its voice, and the form of the sound."""

from collections.abc import Mapping
from typing import Any

import msgspec

from penstock.errors import InvalidRequest
from penstock.fields import SPEECH, check_field
from penstock.models.preferences import FIELD
from penstock.schema import Call, Request
from penstock.sound.formats import DEFAULT_RATE, WITH_RATE, SoundFormat
from penstock.speech.reference import Reference
from penstock.speech.turns import Turn, read_turns, read_voice
from penstock.upstream.extra_fields import check_extras_size

STREAMED_LENGTH_MAX = 20_000  # characters of a text whose caller waits: about twenty minutes of sound
# What the gateway does itself, whatever the model can.
_OWN = (
    "model", "input", "voice", "response_format", "stream_format", "sample_rate", "speed", "session_id", "labels",
    "metadata", "media_retention", "webhook_url", "idempotency_key", "deliver_to", "deliver_required",
    "reference_audio", FIELD,
)  # fmt: skip


class SpeechRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A checked call of speech."""

    model: str
    turns: tuple[Turn, ...]  # one, unless the input is an array
    voice: str | None
    output_format: SoundFormat
    speed: float
    rate: int | None  # as the caller wrote it
    in_events: bool
    values: Mapping[str, Any]  # the other fields of the interface, for the model's table
    extras: Mapping[str, Any]  # fields that the interface does not name
    preferences: Mapping[str, Any] | None
    written_reference: Mapping[str, Any] | None = None  # the voice to imitate, as the caller wrote it
    reference: Reference | None = None
    records: dict[str, Any]  # what the record of the call keeps of it

    @property
    def text(self) -> str:
        """All that is spoken."""
        return "\n".join(turn.text for turn in self.turns)

    @property
    def wanted_rate(self) -> int:
        """The rate of the sound; a format that is not chosen for its samples has the usual one."""
        return self.rate or DEFAULT_RATE if self.output_format in WITH_RATE else DEFAULT_RATE


def read_speech_request(call: Call) -> SpeechRequest:
    """Check the body of a call; raise InvalidRequest for the first fault."""
    if not isinstance(call.json, dict):
        raise InvalidRequest("The body must be a JSON object.")
    body = {name: value for name, value in call.json.items() if value is not None}
    for name in ("model", "input"):
        if name not in body:
            raise InvalidRequest(f"`{name}` is required.", param=name)
    fields = {name: check_field(SPEECH[name], value) for name, value in body.items() if name in SPEECH}
    extras = {name: value for name, value in body.items() if name not in SPEECH}
    if extras:
        check_extras_size(extras, call.size_bytes)
    return _speech_request(fields, extras)


def stored_speech_request(request: Request) -> SpeechRequest:
    """The call of speech that a stored request is of; it was checked when it was accepted."""
    return _speech_request({**request.values, "model": request.model}, request.extras)


def _speech_request(fields: Mapping[str, Any], extras: Mapping[str, Any]) -> SpeechRequest:
    return SpeechRequest(
        model=fields["model"],
        turns=read_turns(fields["input"]),
        voice=read_voice(fields.get("voice"), "voice"),
        output_format=fields.get("response_format", "mp3"),
        speed=fields.get("speed", 1),
        rate=fields.get("sample_rate"),
        in_events=fields.get("stream_format") == "sse",
        values={name: value for name, value in fields.items() if name not in _OWN},
        extras=extras,
        preferences=fields.get(FIELD),
        written_reference=fields.get("reference_audio"),
        records={name: fields[name] for name in ("user", "session_id") if fields.get(name)},
    )
