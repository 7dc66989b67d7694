"""Small chat requests, and a model for them."""

from typing import Any

import jsonschema_rs  # comes with schemathesis
import pytest

from penstock.api.openapi import request_schemas
from penstock.chat.request import ChatRequest, read_chat_request
from penstock.errors import InvalidRequest
from penstock.fields import CHAT
from penstock.providers.chat_models import chat_operation
from penstock.providers.spec import Model, Param
from penstock.schema import Call, Caller
from penstock.settings import Settings
from penstock.values import OrgId

HELLO = {"role": "user", "content": "hello"}
TEXT = {"type": "text", "text": "what is this?"}
PUBLIC = "https://example.com/a.png"
IMAGE = {"type": "image_url", "image_url": {"url": PUBLIC, "detail": "low"}}
CALL = {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
SCHEMA = request_schemas.body(CHAT, is_form=False, is_open=True)
SETTINGS = Settings(image_bytes=3000, egress_allow_hosts=("files.internal",))


def chat_request(**body: Any) -> ChatRequest:
    whole = {"model": "lab/chat", "messages": [HELLO], **body}
    return read_chat_request(call_with(whole), SETTINGS)


def call_with(body: Any) -> Call:
    return Call(id="req_1", caller=Caller(OrgId("org"), "key"), endpoint="", at_ms=0, started=0, json=body)


def model(*rows: Param) -> Model:
    return Model(id="lab/chat", upstream="their-chat", op=chat_operation(*rows), prices=())


def error_for(**body: Any) -> InvalidRequest:
    with pytest.raises(InvalidRequest) as caught:
        chat_request(**body)
    return caught.value


def is_described(**body: Any) -> bool:
    """Return whether the published JSON Schema accepts this body."""
    return jsonschema_rs.is_valid(SCHEMA, {"model": "lab/chat", "messages": [HELLO], **body})
