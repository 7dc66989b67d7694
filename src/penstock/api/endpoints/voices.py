"""List the voices that can speak, and the models that do."""

from collections.abc import Iterable
from typing import Any

import msgspec

from penstock.api import query
from penstock.api.route import Query
from penstock.errors import InvalidRequest, quoted
from penstock.gateway import Gateway
from penstock.providers.speech import OPENAI_VOICES, Speech
from penstock.schema import Call, Response
from penstock.speech.voices import speech_of
from penstock.upstream.candidate import Candidate

VOICES_QUERY = (
    Query(name="model", about="Only voices of this model."),
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

    @property
    def shown(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "object": "audio.voice",
            "name": self.name,
            "provider": self.provider,
            "models": self.models,
            "languages": [],
            "gender": None,
            "description": self.description,
            "openai_names": self.openai_names,
            "preview_url": None,
            "type": "preset",
        }


async def list_voices(gateway: Gateway, call: Call) -> Response:
    """The voices of the tables, as far as the caller may use their models. Those that an account of the operator has
    besides are not listed; where a model takes any name, they can be named all the same.
    """
    asked = query.read(VOICES_QUERY, call.query)
    words = (asked["search"] or "").lower()
    if len(words) > _WORDS_LENGTH_MAX:
        raise InvalidRequest(f"`search` may have at most {_WORDS_LENGTH_MAX} characters.", param="search")
    found = _voices(_candidates(gateway, call, asked["model"]))
    shown = [voice.shown for voice in found if _fits(voice, words)]
    short = [{"id": voice["id"], "name": voice["name"]} for voice in shown]
    return Response(json={"object": "list", "data": shown, "voices": short, "has_more": False})


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


def _voices(candidates: Iterable[Candidate]) -> list[_Voice]:
    voices: dict[tuple[str, str], _Voice] = {}
    for candidate in candidates:
        slug = candidate.provider.slug
        speech = speech_of(candidate.model)
        for voice_id in dict.fromkeys((*speech.voices, *speech.openai_voices.values())):
            voice = voices.setdefault((slug, voice_id), _new_voice(slug, voice_id, speech))
            if candidate.model.id not in voice.models:
                voice.models.append(candidate.model.id)
    return list(voices.values())


def _new_voice(slug: str, voice_id: str, speech: Speech) -> _Voice:
    names = [name for name in OPENAI_VOICES if speech.openai_voices.get(name) == voice_id]
    description = speech.voices.get(voice_id) or None
    return _Voice(voice_id, slug, speech.voice_names.get(voice_id, voice_id), description, [], names)


def _fits(voice: _Voice, words: str) -> bool:
    text = f"{voice.id} {voice.name} {voice.description or ''} {' '.join(voice.openai_names)}".lower()
    return all(word in text for word in words.split())
