"""Calls of transcription through a gateway."""

import json
from typing import Any

import msgspec

from penstock.api.responses import encode_body
from penstock.fields import UploadedFile
from penstock.generations.payloads import retrieve_payloads
from penstock.schema import Call, Response
from penstock.transcription.endpoint import transcribe, translate
from tests import sounds
from tests.gateway import RunningGateway

PATH = "/compat/v1/audio/transcriptions"


def form_call(
    running: RunningGateway, *fields: tuple[str, str], file: Any = None, query: Any = None, headers: Any = None
) -> Call:
    """A call with a form: two seconds of a tone, unless another file is given."""
    data = sounds.wav(2.0) if file is None else file
    call = running.call({}, endpoint=PATH, query=query, headers=headers)
    form = (("file", UploadedFile(data, "speech.wav", "audio/wav")), *fields)
    return msgspec.structs.replace(call, json=None, body=b"", is_form=True, form=form, size_bytes=len(data))


async def listen(
    running: RunningGateway,
    *fields: tuple[str, str],
    model: str = "lab/listen",
    file: Any = None,
    query: Any = None,
    headers: Any = None,
) -> Response:
    call = form_call(running, ("model", model), *fields, file=file, query=query, headers=headers)
    return await transcribe(running.gateway, call)


async def into_english(
    running: RunningGateway, *fields: tuple[str, str], model: str = "lab/listen", headers: Any = None
) -> Response:
    return await translate(running.gateway, form_call(running, ("model", model), *fields, headers=headers))


def decoded(response: Response) -> Any:
    assert isinstance(response.body, bytes)
    return json.loads(response.body)


def text_of(response: Response) -> str:
    assert isinstance(response.body, bytes)
    return response.body.decode()


async def stored(running: RunningGateway, request_id: str) -> Any:
    """What is stored of a call."""
    await running.gateway.chat_settlement.catch_up(running.caller.org_id)
    response = await retrieve_payloads(running.gateway, running.call(request_id=request_id))
    return json.loads(bytes(encode_body(response)))
