"""Replay headers on chat calls: mocks are served, recordings of chat do not exist, and nothing is silently live."""

from dataclasses import replace
from typing import Literal

import msgspec

from penstock.chat.request import ChatRequest
from penstock.errors import InvalidRequest
from penstock.fields import CHAT
from penstock.gateway import Gateway
from penstock.models.preferences import FIELD
from penstock.models.routing import Route
from penstock.recordings.replay_headers import has_replay_header, no_match, replay_options, response_headers
from penstock.schema import Call, Response


def chat_replay(call: Call) -> Literal["live", "mocked"] | None:
    """How the call is answered if it, or its key, has a replay mode; None without one.

    Raises InvalidRequest for a mode that would record, and RecordingNotFound where a recording is required.
    """
    if call.caller.replay_mode is None and not has_replay_header(call.headers):
        return None
    options = replay_options(call.headers, call.caller.replay_mode)
    if options is None or options.mode == "off" or call.dry_run:
        return None
    if options.records:
        message = "Chat calls are not recorded: use another mode of `X-Service-Replay`, such as `mock` or `off`."
        raise InvalidRequest(message, param="X-Service-Replay")
    if options.mode == "replay-or-error":
        raise no_match()
    if options.latency != "instant":
        message = "Mocks of chat are instant: X-Service-Replay-Latency is for images and videos."
        raise InvalidRequest(message, param="X-Service-Replay-Latency")
    return "mocked" if options.mode.endswith("mock") else "live"


def mock_chat(gateway: Gateway, chat: ChatRequest) -> tuple[ChatRequest, Route]:
    """The call for the built-in chat model, at no cost: without the fields that only other providers know."""
    mock = gateway.catalog.mock("chat")
    body = {name: value for name, value in chat.body.items() if name in CHAT and name != FIELD}
    free = replace(mock, model=replace(mock.model, prices=()))
    return msgspec.structs.replace(chat, body=body, extras={}), Route((free,))


def with_replay_header(response: Response, replay: str | None) -> Response:
    """The response with the header that says how it was made, for calls with a replay mode."""
    if replay is None:
        return response
    headers = {**response.headers, **response_headers(replay, None)}
    return msgspec.structs.replace(response, headers=headers)
