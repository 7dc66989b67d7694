"""Chat completions are given to the caller as they are."""

from typing import Any

import msgspec
import pytest

from penstock.chat.form import ChatForm, KeptForm
from penstock.chat.pricing import Usage
from penstock.errors import UpstreamError
from penstock.values import Nanos

USAGE = Usage(prompt_tokens=1, completion_tokens=2)


def test_chat_stays_as_it_is() -> None:
    form = ChatForm()
    assert form.whole(b"{}", USAGE, Nanos(3)) == b"{}"
    assert form.feed(b"data: [DONE]\n\n") == b"data: [DONE]\n\n"
    assert form.finish(USAGE, Nanos(3)) == b""
    assert form.fail(UpstreamError("Broken.")).startswith(b'data: {"error":{"message":"Broken."')


def test_usage_and_cost_are_kept() -> None:
    form = KeptForm()
    body = b'{"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}]}'
    assert form.whole(body, USAGE, Nanos(3)) == body
    assert (form.usage, form.cost) == (USAGE, 3)


@pytest.mark.parametrize(
    "message", [{"content": 5}, {"tool_calls": [7]}, {"tool_calls": [{"id": "c"}]}, {"tool_calls": [{"function": {}}]}]
)
def test_what_a_further_step_could_not_read_is_malformed(message: dict[str, Any]) -> None:
    form = KeptForm()
    with pytest.raises(msgspec.DecodeError):
        form.whole(msgspec.json.encode({"choices": [{"message": message, "finish_reason": "stop"}]}), USAGE, Nanos(3))
    with pytest.raises(msgspec.DecodeError):
        form.whole(b'{"choices":[]}', USAGE, Nanos(3))
    assert form.cost == 0
