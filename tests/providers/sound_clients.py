"""What vendors' own clients can send about sound: which fields there are, of which type, and which must be there.

Clients that describe their requests as types are read themselves: those of OpenAI, Cartesia and Together.
`sound_clients.json` was read from the signatures and types of the other clients that it names. MiniMax, xAI and Google
are in neither: what they are sent is compared with nothing but our fakes of them.
"""

import json
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any, get_type_hints
from urllib.parse import parse_qs, urlsplit

from tests.fake_providers.exchange import ReceivedRequest
from tests.providers.descriptions import Validator, parameters

_STORED: dict[str, Any] = json.loads((Path(__file__).parent / "sound_clients.json").read_text())
_IN_PATH = {"voice_id"}  # of ElevenLabs' speech
_IS_BODY = {"request"}  # Deepgram's body is the sound itself
# By vendor and what is asked for: the client, and the type of the request in it.
_TYPES: dict[tuple[str, str], tuple[str, str, str]] = {
    ("cartesia", "speech"): ("cartesia", "tts_generate_params", "TTSGenerateParams"),
    ("cartesia", "transcription"): ("cartesia", "stt_transcribe_params", "STTTranscribeParams"),
    ("cartesia", "voices"): ("cartesia", "voice_list_params", "VoiceListParams"),
    ("together", "speech"): ("together", "audio.speech_create_params", "SpeechCreateParams"),
}


@cache
def _validator(slug: str, task: str) -> Validator:
    return Validator(parameters(*_TYPES[slug, task]))


def _breaches(slug: str, task: str, request: ReceivedRequest) -> list[str]:
    """Where a request does not fit the type of the vendor's client. Values in forms and queries are texts, whose types
    are not compared.
    """
    query = {name.removesuffix("[]"): values for name, values in parse_qs(urlsplit(request.path).query).items()}
    fields = {name.removesuffix("[]"): value for name, value in request.fields.items()} | query
    texts = bool(query) or any(isinstance(value, bytes) for value in fields.values())
    shown = {name: "file" if isinstance(value, bytes) else value for name, value in fields.items()}
    return [
        error.message
        for error in _validator(slug, task).errors(shown)
        if not texts or "unexpected" in error.message or "required" in error.message
    ]


def _openai() -> dict[str, Any]:
    from openai.types.audio.speech_create_params import SpeechCreateParams
    from openai.types.audio.transcription_create_params import TranscriptionCreateParamsBase

    kinds = {"speech": SpeechCreateParams, "transcription": TranscriptionCreateParamsBase}
    return {
        task: {"fields": [*get_type_hints(kind), "stream"], "required": sorted(kind.__required_keys__)}
        for task, kind in kinds.items()
    }


def not_in_client(slug: str, task: str, requests: Iterable[ReceivedRequest]) -> list[str]:
    """What is wrong with requests by the vendor's own client; empty also for a vendor without one."""
    if (slug, task) in _TYPES:
        return [breach for request in requests for breach in _breaches(slug, task, request)]
    known = (_openai() if slug == "openai" else _STORED.get(slug, {})).get(task)
    if known is None:
        return []
    wrong: list[str] = []
    for request in requests:
        sent = {name.removesuffix("[]").partition("[")[0] for name in request.fields}
        sent |= set(parse_qs(urlsplit(request.path).query))
        wrong += [f"unknown: {name}" for name in sent - set(known["fields"])]
        wrong += [f"missing: {name}" for name in set(known["required"]) - sent - _IN_PATH - _IS_BODY]
    return wrong


def is_described(slug: str, task: str) -> bool:
    return slug == "openai" or (slug, task) in _TYPES or task in _STORED.get(slug, {})


def client_fields(slug: str, task: str) -> set[str]:
    return set(_STORED[slug][task]["fields"])
