"""Chat completions as the API of a provider: what is read of a response, and what the caller gets of it."""

from typing import Any

import msgspec
import pytest

from penstock.chat.form import ChatForm
from penstock.chat.pricing import Usage
from penstock.chat.provider_api import CompletionsApi
from penstock.providers import mistral
from penstock.upstream.candidate import Candidate
from penstock.values import Nanos
from tests.manual_clock import ManualClock
from tests.unit.chat.small_request import chat_request

CHOICE = {"index": 0, "finish_reason": "model_length", "message": {"role": "assistant", "content": "x"}}
USAGE: Any = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}


def api(**fields: Any) -> CompletionsApi:
    candidate = Candidate(mistral.PROVIDER, mistral.PROVIDER.models[0])
    return CompletionsApi(chat_request(**fields), candidate, ChatForm(), ManualClock())


def test_what_is_read_of_a_response() -> None:
    found = api().read(msgspec.json.encode({"choices": [CHOICE], "usage": USAGE}))
    assert (found.usage, found.is_empty, found.error) == (Usage(**USAGE), False, b"")
    assert api().read(b'{"choices":[]}').is_empty
    assert api().read(b'{"error":{"code":7}}').error == b'{"error":{"code":7}}'
    with pytest.raises(msgspec.DecodeError):
        api().read(b"<html>")


def test_a_response_gets_the_documented_shape() -> None:
    body = msgspec.json.encode({"choices": [CHOICE], "usage": USAGE})
    shown = msgspec.json.decode(api().whole(body, Usage(**USAGE), Nanos(0)))
    assert (shown["object"], shown["model"]) == ("chat.completion", "lab/chat")
    assert shown["choices"][0]["finish_reason"] == "length"


@pytest.mark.parametrize("everywhere", [True, False])
def test_usage_in_every_chunk_reaches_callers_who_asked_for_that(everywhere: bool) -> None:
    """`continuous_usage_stats` is vLLM's own option."""
    options = {"include_usage": True, "continuous_usage_stats": everywhere}
    choice = {"index": 0, "delta": {"content": "x"}}
    chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
    event = b"data: " + msgspec.json.encode({**chunk, "usage": USAGE}) + b"\n\n"
    assert (b"usage" in api(stream=True, stream_options=options).relay().feed(event)) is everywhere
