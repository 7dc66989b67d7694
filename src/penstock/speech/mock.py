"""Replay headers on calls of speech, and the mock."""

from dataclasses import replace

import msgspec

from penstock.gateway import Gateway
from penstock.models.routing import Route
from penstock.recordings.replay_headers import (
    ReplayOptions,
    has_replay_header,
    replay_options,
    response_headers,
)
from penstock.schema import Call, Request, Response
from penstock.speech.request import SpeechRequest
from penstock.speech.turns import plain_turns, read_turns


def speech_replay(call: Call) -> ReplayOptions | None:
    """The replay options of a call if it, or its key, has a replay mode; None without one."""
    if call.caller.replay_mode is None and not has_replay_header(call.headers):
        return None
    options = replay_options(call.headers, call.caller.replay_mode)
    return None if options is None or options.mode == "off" or call.dry_run else options


def mock_speech(gateway: Gateway, request: SpeechRequest) -> tuple[SpeechRequest, Route]:
    """The call for the built-in voice, at no cost: without a voice and fields that only other models know."""
    mock = gateway.catalog.mock("speech")
    turns = plain_turns(request.turns)
    plain = msgspec.structs.replace(request, turns=turns, voice=None, extras={}, preferences=None, reference=None)
    return plain, Route((replace(mock, model=replace(mock.model, prices=())),))


def for_mock(request: Request) -> Request:
    """The request of a kept sound for the built-in voice; see `mock_speech`."""
    values = {name: value for name, value in request.values.items() if name not in ("voice", "reference_audio")}
    if not isinstance(values["input"], str):
        values["input"] = [{"text": turn.text} for turn in read_turns(values["input"])]
    return msgspec.structs.replace(request, values=values, extras={})


def with_replay_header(response: Response, replay: str | None, recording: str | None = None) -> Response:
    """The response with the headers that say how it was made, for calls with a replay mode."""
    if replay is None:
        return response
    return msgspec.structs.replace(response, headers={**response.headers, **response_headers(replay, recording)})
