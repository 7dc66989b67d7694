"""Chat completions are given to the caller as they are."""

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
    assert form.whole(b"{}", USAGE, Nanos(3)) == b"{}"
    assert (form.usage, form.cost) == (USAGE, 3)
