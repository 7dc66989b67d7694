"""The form in which a chat response is given to the caller: as a chat completion, or translated into another API's."""

from typing import Annotated, Protocol

import msgspec

from penstock.chat.pricing import Usage
from penstock.errors import Problem
from penstock.values import ZERO, Nanos


class ResponseForm(Protocol):
    """Translates the response to one call, whole or as a stream."""

    def whole(self, body: bytes, usage: Usage, cost: Nanos) -> bytes:
        """The body for the caller, from that of a chat completion."""

    def feed(self, events: bytes) -> bytes:
        """The next bytes of a stream, from complete events of a chat stream; the last of them is `[DONE]`."""

    def finish(self, usage: Usage, cost: Nanos) -> bytes:
        """The last bytes of a stream that ended well."""

    def fail(self, problem: Problem) -> bytes:
        """The last bytes of a stream that the provider broke off."""

    def output_json(self) -> bytes:
        """JSON with the `output` of a stream of the Responses API as far as it has come; empty for other APIs."""


class ChatForm:
    """Chat completions as they are."""

    def whole(self, body: bytes, usage: Usage, cost: Nanos) -> bytes:
        return body

    def feed(self, events: bytes) -> bytes:
        return events

    def finish(self, usage: Usage, cost: Nanos) -> bytes:
        return b""

    def fail(self, problem: Problem) -> bytes:
        return b"data: " + msgspec.json.encode(problem.body()) + b"\n\n"

    def output_json(self) -> bytes:
        return b""


class _Function(msgspec.Struct):
    name: str
    arguments: str = ""


class _ToolCall(msgspec.Struct):
    id: str
    function: _Function


class _Message(msgspec.Struct):
    content: str | None = None
    tool_calls: list[_ToolCall] | None = None


class _Choice(msgspec.Struct):
    message: _Message
    finish_reason: str | None


class _Completion(msgspec.Struct):
    """What a further step reads of a completion."""

    choices: Annotated[list[_Choice], msgspec.Meta(min_length=1)]


_COMPLETION = msgspec.json.Decoder(_Completion)


class KeptForm(ChatForm):
    """A chat completion as it is, whose usage and cost are kept for a further step.

    `whole` raises DecodeError for one that the further step could not read, before anybody is charged for it.
    """

    def __init__(self) -> None:
        self.usage = Usage()
        self.cost = ZERO

    def whole(self, body: bytes, usage: Usage, cost: Nanos) -> bytes:
        _COMPLETION.decode(body)
        self.usage = usage
        self.cost = cost
        return body


class SentBytes:
    """Counts the bytes of a stream, and keeps them if they are to be stored."""

    def __init__(self, *, stores: bool) -> None:
        self.size = 0
        self.stored = bytearray()
        self._stores = stores

    def count(self, data: bytes) -> bytes:
        self.size += len(data)
        if self._stores:
            self.stored += data
        return data
