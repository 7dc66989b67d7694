"""Small chat requests, and a model for them."""

from typing import Any

from penstock.chat.request import ChatRequest, read_chat_request
from penstock.providers.chat_models import chat_operation
from penstock.providers.spec import Model, Param
from penstock.schema import Call, Caller
from penstock.settings import Settings
from penstock.values import OrgId

HELLO = {"role": "user", "content": "hello"}
SETTINGS = Settings(image_bytes=3000, egress_allow_hosts=("files.internal",))


def chat_request(**body: Any) -> ChatRequest:
    whole = {"model": "lab/chat", "messages": [HELLO], **body}
    return read_chat_request(call_with(whole), SETTINGS)


def call_with(body: Any) -> Call:
    return Call(id="req_1", caller=Caller(OrgId("org"), "key"), endpoint="", at_ms=0, started=0, json=body)


def model(*rows: Param) -> Model:
    return Model(id="lab/chat", upstream="their-chat", op=chat_operation(*rows), prices=())
