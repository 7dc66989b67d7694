"""Answer a chat call with the built-in chat model."""

from dataclasses import replace

import msgspec

from penstock.chat.request import ChatRequest
from penstock.fields import CHAT
from penstock.gateway import Gateway
from penstock.models.preferences import FIELD
from penstock.models.routing import Route


def mock_chat(gateway: Gateway, chat: ChatRequest) -> tuple[ChatRequest, Route]:
    """The call for the built-in chat model, at no cost: without the fields that only other providers know."""
    mock = gateway.catalog.mock("chat")
    body = {name: value for name, value in chat.body.items() if name in CHAT and name != FIELD}
    free = replace(mock, model=replace(mock.model, prices=()))
    return msgspec.structs.replace(chat, body=body, extras={}, speaks=False), Route((free,))
