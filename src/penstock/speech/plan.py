"""Decide what a model is asked for: which format, how fast, in how many parts, and with which fields."""

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from penstock.errors import InvalidRequest, quoted
from penstock.package_extras import has_extra, how_to_install
from penstock.providers.spec import Model
from penstock.sound.formats import WITH_RATE, SoundFormat
from penstock.speech.reference import FIELD as REFERENCE
from penstock.speech.reference import Reference
from penstock.speech.request import SpeechRequest
from penstock.speech.splitting import split_text
from penstock.speech.turns import Turn, plain_turns
from penstock.speech.voices import model_voice, speech_of
from penstock.upstream import checks, translate
from penstock.upstream.extra_fields import check_extras

_RAW: tuple[SoundFormat, ...] = ("pcm", "wav")  # these are made of each other without a codec
_EXTRA = "media"
_LATIN = re.compile(r"[A-Za-z0-9]")


class SpeechPlan(msgspec.Struct, frozen=True):
    """What one model is asked for, and what the gateway does with the sound."""

    model: Model
    voice: str | None
    asked_format: SoundFormat  # of the provider
    tempo: float  # by how much the gateway makes the sound faster
    parts: tuple[str, ...]
    fields: Mapping[str, Any]  # of the provider's body, without the text
    own_fields: tuple[Mapping[str, Any], ...] = ()  # of each part, where the parts are spoken in different ways

    def size_bytes(self, number: int) -> int:
        """About how large the body for one part of the text is."""
        reference: Reference | None = self.fields.get(REFERENCE)
        return len(self.parts[number]) + (len(reference.encoded) if reference else 0)

    def instructions_bytes(self, count: int) -> int:
        """How long the instructions are that are sent with the first so many parts."""
        usual = self.fields.get("instructions") or ""
        own = self.own_fields[:count] or ({},) * count
        return sum(len(str(fields.get("instructions", usual)).encode()) for fields in own)

    def body(self, number: int) -> dict[str, Any]:
        """The provider's fields for one part of the text."""
        speech = speech_of(self.model)
        values = {**self.fields, "input": self.parts[number]}
        if self.voice is not None:
            values["voice"] = self.voice
        if self.own_fields:
            values |= self.own_fields[number]
        fixed = speech.formats[self.asked_format]
        body = translate.provider_body(self.model, values, {})
        for name, value in fixed.items():
            translate.put_field(body, name, value)
        return body


def make_plan(model: Model, request: SpeechRequest, *, is_recorded: bool = False) -> SpeechPlan:
    """What the model is asked for. Raises InvalidRequest if it does not support the call.

    A sound that `is_recorded` is asked for at the usual speed, so that any can be made of it.
    """
    speech = speech_of(model)
    values = {**request.extras, **request.values}
    if request.reference is not None:
        values[REFERENCE] = request.reference
    _check(model, request, values)
    sent_speed, tempo = _speeds(None if is_recorded else speech.speeds, request.speed)
    if sent_speed != 1:
        values["speed"] = sent_speed
    divided = [(turn, part) for turn in request.turns for part in split_text(turn.text, speech.max_characters)]
    parts = tuple(part for _, part in divided)
    asked = _asked_format(model, request, is_joined=len(parts) > 1, tempo=tempo)
    own: tuple[Mapping[str, Any], ...] = ()
    if request.turns != plain_turns(request.turns):
        own = tuple(_own_fields(model, request, turn) for turn, _ in divided)
    voice = None if request.reference else model_voice(model, request.turns[0].voice or request.voice)
    plan = SpeechPlan(model, voice, asked, tempo, parts, values, own)
    check_codecs(plan, request)
    return plan


def _own_fields(model: Model, request: SpeechRequest, turn: Turn) -> dict[str, Any]:
    """How a turn is spoken, where that is not as in the rest of the call."""
    voice = None if request.reference else model_voice(model, turn.voice or request.voice)
    fields = {"voice": voice, "instructions": turn.instructions}
    return {name: value for name, value in fields.items() if value is not None}


def check_codecs(plan: SpeechPlan, request: SpeechRequest) -> None:
    """Raise InvalidRequest if the sound must be converted and the library for that is missing."""
    if _needs_codecs(plan, request) and not has_extra(_EXTRA):
        raise InvalidRequest(
            f"{plan.model.id} makes {quoted(speech_of(plan.model).formats)}; other formats, speeds and rates need an "
            f"extra of the gateway: {how_to_install(_EXTRA)}.",
            param="response_format",
        )


def _check(model: Model, request: SpeechRequest, values: Mapping[str, Any]) -> None:
    if request.extras:
        check_extras(model, request.extras)
    if speech_of(model).latin_only and not _LATIN.search(request.text):
        raise InvalidRequest(f"`input` of {model.id} must have a word in Latin letters.", param="input")
    checked = {**values, "input": request.text}
    for row in model.op.params:
        if row.name in checked or (row.required and row.name != "voice"):
            checks.check_row(model, row, checked.get(row.name))
        if row.name == "instructions":
            for turn in request.turns:
                checks.check_row(model, row, turn.instructions)


def _speeds(native: tuple[float, float] | None, speed: float) -> tuple[float, float]:
    """The speed that the model is asked for, and by how much the gateway makes the sound faster."""
    if native is None or speed == 1:
        return 1, speed
    sent = min(max(speed, native[0]), native[1])
    return sent, speed / sent


def _asked_format(model: Model, request: SpeechRequest, *, is_joined: bool, tempo: float) -> SoundFormat:
    """The caller's format, if the model makes it and nothing has to be done with the sound."""
    formats = speech_of(model).formats
    has_own_rate = request.rate is not None and request.output_format in WITH_RATE
    is_measured = any(price.unit == "second" for price in model.prices)
    if request.output_format in formats and not is_joined and tempo == 1 and not has_own_rate and not is_measured:
        is_other_rate = request.output_format == "pcm" and speech_of(model).pcm_rate != request.wanted_rate
        if not is_other_rate:
            return request.output_format
    return next(iter(formats))


def _needs_codecs(plan: SpeechPlan, request: SpeechRequest) -> bool:
    if plan.tempo != 1:
        return True
    if plan.asked_format in _RAW and request.output_format in _RAW:
        return request.rate not in (None, speech_of(plan.model).pcm_rate)
    return plan.asked_format != request.output_format or len(plan.parts) > 1
