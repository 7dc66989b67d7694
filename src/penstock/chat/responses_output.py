"""Translate chat completions into responses of OpenAI's Responses API, whole and as a stream of its events."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from penstock.chat.pricing import Usage
from penstock.chat.responses_items import (
    FunctionCall,
    ImageCall,
    Item,
    Message,
    Reasoning,
    ReasoningPart,
    RefusalPart,
    Status,
    TextPart,
)
from penstock.chat.responses_request import ResponsesRequest
from penstock.errors import Problem
from penstock.long_bodies.long_body import LongBody
from penstock.net.event_stream import data_of_events, encoded_event
from penstock.values import Nanos, dollars

_encode = msgspec.json.Encoder(decimal_format="number").encode
_INCOMPLETE = {"length": "max_output_tokens", "content_filter": "content_filter"}
# Where servers put the reasoning of a model: DeepSeek and vLLM, and OpenRouter.
_REASONING_FIELDS = ("reasoning_content", "reasoning")


class ResponsesForm:
    """The form of one call of the Responses API."""

    def __init__(self, request: ResponsesRequest, request_id: str, created_at: int) -> None:
        self._request = request
        self._suffix = request_id.removeprefix("req_")
        self._created_at = created_at
        self._model: str = request.body["model"]
        self._finish_reason = "stop"
        self.output: list[Item] = []
        self._next_event = 0
        self._shown = 0  # how many items of the output have had their events
        # The last item of the output, while the stream adds to it.
        self._open: Message | Reasoning | _StreamedCall | None = None
        # What the stream has said of the open item's last part, which gets it when it ends: adding each word to a long
        # text would copy all of it.
        self._said: list[str] = []
        self._calls: dict[int, _StreamedCall] = {}  # by their index in the chat stream

    # --------------------------------------------------------------------------------------------------------- whole

    def whole(self, body: bytes, usage: Usage, cost: Nanos) -> bytes:
        self.output = []  # the response of another provider, which was tried before, may have been malformed
        self.add_completion(msgspec.json.decode(body))
        return _encode(self.response(usage, cost))

    def add_completion(self, completion: Mapping[str, Any]) -> None:
        """Add the items of a whole chat completion to the output."""
        choice = completion["choices"][0]
        message = choice["message"]
        self._finish_reason = choice["finish_reason"]
        if reasoning := _reasoning(message):
            self.output.append(Reasoning(id=self._new_id("rs"), content=[ReasoningPart(reasoning)]))
        parts: list[TextPart | RefusalPart] = []
        if message.get("content"):
            logprobs = (choice.get("logprobs") or {}).get("content")
            parts.append(TextPart(message["content"], logprobs=list(logprobs or ())))
        if message.get("refusal"):
            parts.append(RefusalPart(message["refusal"]))
        if parts:
            self.output.append(Message(id=self._new_id("msg"), content=parts))
        for call in message.get("tool_calls") or ():
            self.add_function_call(call)

    def add_function_call(self, call: Mapping[str, Any]) -> None:
        function = call["function"]
        arguments = function.get("arguments", "")
        self.output.append(
            FunctionCall(id=self._new_id("fc"), call_id=call["id"], name=function["name"], arguments=arguments)
        )

    def _new_id(self, prefix: str) -> str:
        """The id of the next item of the output."""
        return f"{prefix}_{self._suffix}{len(self.output):02}"

    # ------------------------------------------------------------------------------------------------------ response

    def response(
        self, usage: Usage | None = None, cost: Nanos | None = None, problem: Problem | None = None
    ) -> dict[str, Any]:
        """The response object; without usage it is still in progress."""
        reason = None if usage is None else _INCOMPLETE.get(self._finish_reason)
        status = "failed" if problem else "in_progress" if usage is None else "incomplete" if reason else "completed"
        body = self._request.body
        return {
            "id": f"resp_{self._suffix}",
            "object": "response",
            "created_at": self._created_at,
            "status": status,
            "background": False,
            "error": {"code": "server_error", "message": problem.message} if problem else None,
            "incomplete_details": {"reason": reason} if reason else None,
            "instructions": body.get("instructions"),
            "max_output_tokens": body.get("max_output_tokens"),
            "max_tool_calls": body.get("max_tool_calls"),
            "metadata": body.get("metadata", {}),
            "model": self._model,
            "output": self.output,
            "parallel_tool_calls": body.get("parallel_tool_calls", True),
            "previous_response_id": None,
            "reasoning": {"effort": None, "summary": None, **body.get("reasoning", {})},
            "service_tier": "default",
            "store": False,
            "temperature": body.get("temperature", 1.0),
            "text": {"format": {"type": "text"}, **body.get("text", {})},
            "tool_choice": body.get("tool_choice", "auto"),
            "tools": body.get("tools", []),
            "top_logprobs": body.get("top_logprobs", 0),
            "top_p": body.get("top_p", 1.0),
            "truncation": "disabled",
            "usage": None if usage is None else usage_fields(usage, cost or Nanos(0)),
            "user": body.get("user"),
        }

    # ------------------------------------------------------------------------------------------------------- stream

    def begin(self) -> bytes:
        """The first events of a stream."""
        response = msgspec.Raw(_encode(self.response()))
        return self._event("created", response=response) + self._event("in_progress", response=response)

    def feed(self, events: bytes) -> bytes:
        out = [] if self._next_event else [self.begin()]
        for data in data_of_events(events):
            if data != b"[DONE]":
                out.extend(self._chunk(msgspec.json.decode(data)))
        return b"".join(out)

    def _chunk(self, chunk: Mapping[str, Any]) -> Iterator[bytes]:
        for choice in chunk.get("choices") or ():
            delta = choice.get("delta") or {}
            if reasoning := _reasoning(delta):
                yield self._add_reasoning(reasoning)
            if delta.get("content"):
                yield self._add_text(_text(delta["content"]), (choice.get("logprobs") or {}).get("content"))
            if delta.get("refusal"):
                yield self._add_refusal(_text(delta["refusal"]))
            for call in delta.get("tool_calls") or ():
                yield self._add_arguments(call)
            self._finish_reason = choice.get("finish_reason") or self._finish_reason

    def finish(self, usage: Usage, cost: Nanos) -> bytes:
        return bytes(self.last_events(usage, cost))

    def fail(self, problem: Problem) -> bytes:
        return bytes(self.failed_events(problem))

    def last_events(self, usage: Usage, cost: Nanos) -> bytes | LongBody:
        """As `finish`, for an output that may have images."""
        out = self._close_all()
        response = self.response(usage, cost)
        return self._long_event(out, response["status"], response=response)

    def failed_events(self, problem: Problem) -> bytes | LongBody:
        """As `fail`, for an output that may have images."""
        return self._long_event(self._close_all(), "failed", response=self.response(problem=problem))

    def new_item_events(self) -> bytes:
        """The events of the items that were added as a whole since the last call."""
        items = self.output[self._shown :]
        del self.output[self._shown :]
        out = b"".join([self._item_events(item) for item in items])
        self._shown = len(self.output)
        return out

    def _item_events(self, item: Item) -> bytes:
        out = []
        if isinstance(item, FunctionCall):
            function = {"name": item.name, "arguments": item.arguments}
            out.append(self._add_arguments({"index": len(self.output), "id": item.call_id, "function": function}))
        elif isinstance(item, Reasoning):
            out += [self._add_reasoning(thought.text) for thought in item.content]
        elif isinstance(item, Message):
            for part in item.content:
                if isinstance(part, RefusalPart):
                    out.append(self._add_refusal(part.refusal))
                else:
                    out.append(self._add_text(part.text, part.logprobs))
        return b"".join([*out, self._close()])

    # -------------------------------------------------------------------------------------------------------- images

    def begin_image(self) -> bytes:
        """Add the item of an image that is being made."""
        item = ImageCall(id=self._new_id("ig"))
        self.output.append(item)
        self._shown = len(self.output)
        out = self._event("output_item.added", output_index=self._shown - 1, item=item)
        return out + self._image_event("in_progress") + self._image_event("generating")

    def partial_image(self, image: Mapping[str, Any]) -> bytes:
        """The event of an unfinished image, from that of the image call."""
        names = ("partial_image_index", "size", "quality", "background", "output_format")
        shown = {name: image[name] for name in names if name in image}
        return self._image_event("partial_image", partial_image_b64=image["b64_json"], **shown)

    def end_image(self, *, status: Status = "completed", **fields: Any) -> bytes | LongBody:
        """Complete the item of the image with these fields."""
        begun = self.output[-1]
        assert isinstance(begun, ImageCall), "it was begun"
        item = msgspec.structs.replace(begun, status=status, **fields)
        self.output[-1] = item
        out = self._image_event("completed") if status == "completed" else b""
        return self._long_event(out, "output_item.done", output_index=len(self.output) - 1, item=item)

    def _image_event(self, state: str, **fields: Any) -> bytes:
        place = {"item_id": self.output[-1].id, "output_index": len(self.output) - 1}
        return self._event(f"image_generation_call.{state}", **place, **fields)

    # ------------------------------------------------------------------------------------------------ items of a stream

    def _event(self, event: str, /, **fields: Any) -> bytes:
        return bytes(self._long_event(b"", event, **fields))

    def _long_event(self, before: bytes, event: str, /, **fields: Any) -> bytes | LongBody:
        """An event, perhaps with images, behind the bytes of those before it."""
        kind = f"response.{event}"
        encoded = encoded_event(kind, {"type": kind, "sequence_number": self._next_event, **fields})
        self._next_event += 1
        return encoded.between(before, b"") if isinstance(encoded, LongBody) else before + encoded

    def _add_text(self, text: str, logprobs: Sequence[Any] | None = None) -> bytes:
        """Add to the text of a message, which begins a new item or a new part if need be."""
        message, out = self._open_message()
        part = message.content[-1] if message.content else None
        if not isinstance(part, TextPart):
            out += self._close_part(message)
            part = TextPart()
            message.content.append(part)
            out += self._part_added(message)
        self._said.append(text)
        part.logprobs += logprobs or []
        return out + self._event("output_text.delta", **self._place(message), delta=text, logprobs=logprobs or [])

    def _add_refusal(self, text: str) -> bytes:
        message, out = self._open_message()
        part = message.content[-1] if message.content else None
        if not isinstance(part, RefusalPart):
            out += self._close_part(message)
            part = RefusalPart()
            message.content.append(part)
            out += self._part_added(message)
        self._said.append(text)
        return out + self._event("refusal.delta", **self._place(message), delta=text)

    def _add_reasoning(self, text: str) -> bytes:
        """Add to the text of the model's reasoning, which begins a new item if need be."""
        out = b""
        reasoning = self._open
        if not isinstance(reasoning, Reasoning):
            out = self._close()
            reasoning = Reasoning(id=self._new_id("rs"), status="in_progress")
            out += self._add_item(reasoning)
            self._open = reasoning
            reasoning.content.append(ReasoningPart())
            out += self._part_added(reasoning)
        self._said.append(text)
        return out + self._event("reasoning_text.delta", **self._place(reasoning), delta=text)

    def _add_arguments(self, call: Mapping[str, Any]) -> bytes:
        """Add to the arguments of a function call; chat streams name it by its index, and by its id once."""
        index = call.get("index", 0)
        function = call.get("function") or {}
        out = b""
        streamed = self._calls.get(index)
        if streamed is None:
            out = self._close()
            call_id = call.get("id") or f"call_{self._suffix}{index:02}"
            item = FunctionCall(
                id=self._new_id("fc"),
                status="in_progress",
                call_id=call_id,
                name=function.get("name", ""),
                arguments="",
            )
            out += self._add_item(item)
            self._open = streamed = self._calls[index] = _StreamedCall(item, len(self.output) - 1)
        if arguments := function.get("arguments"):
            streamed.arguments.append(_text(arguments))
            place = {"item_id": streamed.id, "output_index": streamed.output_index}
            out += self._event("function_call_arguments.delta", **place, delta=arguments)
        return out

    def _open_message(self) -> tuple[Message, bytes]:
        """The message that the stream adds to, and the events if it is a new one."""
        if isinstance(self._open, Message):
            return self._open, b""
        out = self._close()
        message = Message(id=self._new_id("msg"), status="in_progress")
        out += self._add_item(message)
        self._open = message
        return message, out

    def _add_item(self, item: Message | Reasoning | FunctionCall) -> bytes:
        self.output.append(item)
        return self._event("output_item.added", output_index=len(self.output) - 1, item=item)

    def _part_added(self, item: Message | Reasoning) -> bytes:
        return self._event("content_part.added", **self._place(item), part=item.content[-1])

    def _place(self, item: Message | Reasoning) -> dict[str, Any]:
        """Which part of which item an event is about: the last part of the open item."""
        return {"item_id": item.id, "output_index": len(self.output) - 1, "content_index": len(item.content) - 1}

    def _close_part(self, item: Message | Reasoning) -> bytes:
        """The last events of the last part, if there is one."""
        if not item.content:
            return b""
        part = item.content[-1]
        said = "".join(self._said)
        self._said.clear()
        place = self._place(item)
        if isinstance(part, RefusalPart):
            part.refusal = said
            out = self._event("refusal.done", **place, refusal=said)
        elif isinstance(part, ReasoningPart):
            part.text = said
            out = self._event("reasoning_text.done", **place, text=said)
        else:
            part.text = said
            out = self._event("output_text.done", **place, text=said, logprobs=part.logprobs)
        return out + self._event("content_part.done", **place, part=part)

    def _close(self) -> bytes:
        """The last events of the open item."""
        opened, self._open = self._open, None
        if opened is None:
            return b""
        index = len(self.output) - 1
        item = opened.joined() if isinstance(opened, _StreamedCall) else opened
        if isinstance(item, FunctionCall):
            place = {"item_id": item.id, "output_index": index}
            out = self._event("function_call_arguments.done", **place, name=item.name, arguments=item.arguments)
        else:
            out = self._close_part(item)
        item.status = "incomplete" if self._finish_reason in _INCOMPLETE else "completed"
        return out + self._event("output_item.done", output_index=index, item=item)

    def _close_all(self) -> bytes:
        """The last events of the open item; calls that got more arguments after theirs have all of them now."""
        out = self._close()
        for call in self._calls.values():
            call.joined()
        return out


class _StreamedCall:
    """A function call whose arguments come in pieces: adding each to a long text would copy all of it."""

    def __init__(self, item: FunctionCall, output_index: int) -> None:
        self.output_index = output_index
        self.arguments: list[str] = []
        self._item = item

    @property
    def id(self) -> str:
        return self._item.id

    def joined(self) -> FunctionCall:
        """The item of the call, with the arguments that have come so far."""
        self._item.arguments = "".join(self.arguments)
        return self._item


def _reasoning(message: Mapping[str, Any]) -> str:
    found = next((message[name] for name in _REASONING_FIELDS if isinstance(message.get(name), str)), "")
    return str(found)


def _text(value: Any) -> str:
    """A piece of text of a stream. Raises TypeError for anything else."""
    if not isinstance(value, str):
        raise TypeError("a piece of text is not a string")
    return value


def usage_fields(usage: Usage, cost: Nanos) -> dict[str, Any]:
    """The usage of a response, with what it cost in dollars."""
    return {
        "input_tokens": usage.input,
        "input_tokens_details": {"cached_tokens": usage.cached, "cache_write_tokens": 0},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": usage.input + usage.output,
        "cost": dollars(cost),
        "cost_currency": "USD",
    }
