"""List the voices that can speak, play one of them, and list the models that do."""

from collections.abc import Iterable
from typing import Any
from urllib.parse import quote

import msgspec

from penstock.api import query
from penstock.api.route import Query
from penstock.errors import InvalidRequest, quoted
from penstock.gateway import Gateway
from penstock.providers.speech import OPENAI_VOICES, Speech
from penstock.providers.voice_lists import ListedVoice
from penstock.schema import Call, Response
from penstock.speech.samples import account_voices, read_sample
from penstock.speech.voices import speech_of
from penstock.upstream.candidate import Candidate

VOICES_QUERY = (
    Query(name="model", about="Only voices of this model."),
    Query(
        name="language",
        about="Only voices that speak this language, such as `en` or `pt-BR`, and those that are not tied to one.",
    ),
    Query(name="search", about="Only voices that have these words in their id, name or description."),
)
_WORDS_LENGTH_MAX = 200
_TASKS = ("speech",)


class _Voice(msgspec.Struct):
    """A voice of a provider, and the models that have it."""

    id: str
    provider: str
    name: str
    description: str | None
    models: list[str]
    openai_names: list[str]
    languages: tuple[str, ...] = ()
    gender: str | None = None
    has_sample: bool = False
    is_preset: bool = True

    def shown(self, base_url: str) -> dict[str, Any]:
        sample = f"{base_url}/compat/v1/audio/previews/{self.provider}/{quote(self.id, safe='')}"
        return {
            "id": self.id,
            "object": "audio.voice",
            "name": self.name,
            "provider": self.provider,
            "models": self.models,
            "languages": list(self.languages),
            "gender": self.gender,
            "description": self.description,
            "openai_names": self.openai_names,
            "preview_url": sample if self.has_sample else None,
            "type": "preset" if self.is_preset else "account",
        }


async def list_voices(gateway: Gateway, call: Call) -> Response:
    """The voices of the tables and those that accounts at vendors have, as far as the caller may use their models."""
    asked = query.read(VOICES_QUERY, call.query)
    words = (asked["search"] or "").lower()
    language = (asked["language"] or "").lower().replace("_", "-")
    for name, text in (("search", words), ("language", language)):
        if len(text) > _WORDS_LENGTH_MAX:
            raise InvalidRequest(f"`{name}` may have at most {_WORDS_LENGTH_MAX} characters.", param=name)
    candidates = list(_candidates(gateway, call, asked["model"]))
    found = _voices(candidates, await account_voices(gateway, call.caller, candidates))
    shown = [voice.shown(call.base_url) for voice in found if _fits(voice, words) and _speaks(voice, language)]
    short = [{"id": voice["id"], "name": voice["name"]} for voice in shown]
    return Response(json={"object": "list", "data": shown, "voices": short, "has_more": False})


async def play_voice(gateway: Gateway, call: Call) -> Response:
    """The sound by which a voice of an account can be heard before it is used, which costs nothing."""
    candidates = _candidates(gateway, call, None)
    data, kind = await read_sample(gateway, call.caller, candidates, call.path["provider"], call.path["id"])
    return Response(body=bytes(data), media_type=kind, headers={"cache-control": "private, max-age=3600"})


async def list_speech_models(gateway: Gateway, call: Call) -> Response:
    """The models that speak, as far as the caller may use them, in the form that Open WebUI reads."""
    return Response(json={"models": [{"id": model} for model in _model_ids(gateway, call)]})


def _model_ids(gateway: Gateway, call: Call) -> list[str]:
    return [model for model in gateway.catalog.listed_ids(_TASKS) if call.caller.may_use(model)]


def _candidates(gateway: Gateway, call: Call, model: str | None) -> Iterable[Candidate]:
    """Those that speak, or those of one model. Raises InvalidRequest for a model that does not speak."""
    ids = _model_ids(gateway, call)
    if model is not None:
        if gateway.catalog.public_id(model) not in ids:
            raise InvalidRequest(f"`model` must be one of {quoted(ids)}.", param="model")
        ids = [gateway.catalog.public_id(model)]
    for each in ids:
        for candidate in gateway.catalog.serving(each):
            if candidate.model.op.task in _TASKS:
                yield candidate


def _voices(candidates: Iterable[Candidate], listed: Iterable[tuple[Candidate, ListedVoice]]) -> list[_Voice]:
    """The voices of tables, and after them those that only accounts have. What a vendor says of a voice that is in a
    table is added to that.
    """
    voices: dict[tuple[str, str], _Voice] = {}
    for candidate in candidates:
        slug = candidate.provider.slug
        speech = speech_of(candidate.model)
        for voice_id in dict.fromkeys((*speech.voices, *speech.openai_voices.values())):
            _add_model(voices.setdefault((slug, voice_id), _new_voice(slug, voice_id, speech)), candidate)
    for candidate, found in listed:
        slug = candidate.provider.slug
        speech = speech_of(candidate.model)
        if speech.voices and found.id not in speech.voices:  # the model takes only those of its table
            continue
        voice = voices.setdefault(
            (slug, found.id), _Voice(found.id, slug, "", None, [], [], is_preset=not found.is_own)
        )
        _add_model(voice, candidate)
        voice.name = found.name or voice.name or found.id
        voice.description = found.description or voice.description
        voice.languages = found.languages or voice.languages
        voice.gender = found.gender or voice.gender
        voice.has_sample = voice.has_sample or bool(found.sample)
    return list(voices.values())


def _add_model(voice: _Voice, candidate: Candidate) -> None:
    if candidate.model.id not in voice.models:
        voice.models.append(candidate.model.id)


def _new_voice(slug: str, voice_id: str, speech: Speech) -> _Voice:
    names = [name for name in OPENAI_VOICES if speech.openai_voices.get(name) == voice_id]
    description = speech.voices.get(voice_id) or None
    name = speech.voice_names.get(voice_id, voice_id)
    return _Voice(voice_id, slug, name, description, [], names, languages=speech.languages)


def _fits(voice: _Voice, words: str) -> bool:
    text = f"{voice.id} {voice.name} {voice.description or ''} {' '.join(voice.openai_names)}".lower()
    return all(word in text for word in words.split())


def _speaks(voice: _Voice, language: str) -> bool:
    """Whether a voice speaks a language, or is not tied to one; `en` and `en-US` are the same one to different degrees
    of detail.
    """
    if not language or not voice.languages:
        return True
    known = [each.lower().replace("_", "-") for each in voice.languages]
    return any(each == language or each.startswith(f"{language}-") or language.startswith(f"{each}-") for each in known)
