"""What vendors' own clients can send about sound: which fields there are, and which must be there.

`sound_clients.json` was read from the signatures and types of the clients that it names; OpenAI's client is installed.
MiniMax, xAI and Google are not in it: what they are sent is compared with nothing but our fakes of them.
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, get_type_hints
from urllib.parse import parse_qs, urlsplit

from tests.fake_providers.exchange import ReceivedRequest

_STORED: dict[str, Any] = json.loads((Path(__file__).parent / "sound_clients.json").read_text())
_IN_PATH = {"voice_id"}  # of ElevenLabs' speech
_IS_BODY = {"request"}  # Deepgram's body is the sound itself


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
    return slug == "openai" or task in _STORED.get(slug, {})


def client_fields(slug: str, task: str) -> set[str]:
    return set(_STORED[slug][task]["fields"])
