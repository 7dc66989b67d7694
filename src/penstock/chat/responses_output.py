"""Translate chat completions into responses of OpenAI's Responses API, whole and as a stream of its events."""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from penstock.chat.pricing import Usage
from penstock.chat.responses_events import StreamedItems
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
from penstock.net.event_stream import data_of_events
from penstock.values import Nanos, dollars

_encode = msgspec.json.Encoder(decimal_format="number").encode
_INCOMPLETE = {"length": "max_output_tokens", "content_filter": "content_filter"}
_ERROR_CODES = {400: "invalid_prompt", 422: "invalid_prompt", 429: "rate_limit_exceeded"}
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
        self._items = StreamedItems(self._suffix)

    @property
    def output(self) -> list[Item]:
        return self._items.output

    # --------------------------------------------------------------------------------------------------------- whole

    def whole(self, body: bytes, usage: Usage, cost: Nanos) -> bytes:
        self.output.clear()  # the response of another provider, which was tried before, may have been malformed
        self.add_completion(msgspec.json.decode(body))
        return _encode(self.response(usage, cost))

    def add_completion(self, completion: Mapping[str, Any]) -> None:
        """Add the items of a whole chat completion to the output."""
        choice = completion["choices"][0]
        message = choice["message"]
        self._finish_reason = choice["finish_reason"]
        new_id = self._items.new_id
        count = len(self.output)
        if reasoning := _reasoning(message):
            self.output.append(Reasoning(id=new_id("rs"), content=[ReasoningPart(reasoning)]))
        parts: list[TextPart | RefusalPart] = []
        if message.get("content"):
            logprobs = (choice.get("logprobs") or {}).get("content")
            annotations = _annotations(message)
            parts.append(TextPart(message["content"], annotations=annotations, logprobs=list(logprobs or ())))
        if message.get("refusal"):
            parts.append(RefusalPart(message["refusal"]))
        if parts:
            self.output.append(Message(id=new_id("msg"), content=parts))
        for call in message.get("tool_calls") or ():
            self.add_function_call(call)
        if len(self.output) > count:
            self.output[-1].status = self._last_status

    def add_function_call(self, call: Mapping[str, Any]) -> None:
        function = call["function"]
        arguments = function.get("arguments", "")
        item_id = self._items.new_id("fc")
        self.output.append(FunctionCall(id=item_id, call_id=call["id"], name=function["name"], arguments=arguments))

    @property
    def _last_status(self) -> Status:
        """The status of the item at which the model stopped."""
        return "incomplete" if self._finish_reason in _INCOMPLETE else "completed"

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
            "error": error_fields(problem) if problem else None,
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
            "truncation": body.get("truncation", "disabled"),
            "usage": None if usage is None else usage_fields(usage, cost or Nanos(0)),
            "user": body.get("user"),
        }

    # ------------------------------------------------------------------------------------------------------- stream

    def begin(self) -> bytes:
        """The first events of a stream."""
        self._begin()
        return bytes(self._items.events.take())

    def _begin(self) -> None:
        response = msgspec.Raw(_encode({**self.response(), "output": []}))
        self._items.events.add("created", response=response)
        self._items.events.add("in_progress", response=response)

    def feed(self, events: bytes) -> bytes:
        if not self._items.events.count:
            self._begin()
        for data in data_of_events(events):
            if data != b"[DONE]":
                self._read_chunk(msgspec.json.decode(data))
        return bytes(self._items.events.take())

    def _read_chunk(self, chunk: Mapping[str, Any]) -> None:
        items = self._items
        for choice in chunk.get("choices") or ():
            delta = choice.get("delta") or {}
            if reasoning := _reasoning(delta):
                items.add_reasoning(reasoning)
            if delta.get("content"):
                items.add_text(_text(delta["content"]), (choice.get("logprobs") or {}).get("content"))
            for annotation in _annotations(delta):
                items.add_annotation(annotation)
            if delta.get("refusal"):
                items.add_refusal(_text(delta["refusal"]))
            for call in delta.get("tool_calls") or ():
                self._read_call(call)
            self._finish_reason = choice.get("finish_reason") or self._finish_reason

    def _read_call(self, call: Mapping[str, Any]) -> None:
        """Add to a function call; chat streams name it by its index, and by its id once."""
        function = call.get("function") or {}
        name = _text(function.get("name") or "")
        arguments = _text(function.get("arguments") or "")
        self._items.add_call(call.get("index", 0), _text(call.get("id") or ""), name, arguments)

    def finish(self, usage: Usage, cost: Nanos) -> bytes:
        return bytes(self.last_events(usage, cost))

    def fail(self, problem: Problem) -> bytes:
        return bytes(self.failed_events(problem))

    def output_json(self) -> bytes:
        """JSON with the items, of which those that have not ended are incomplete."""
        self._items.break_off()
        return _encode({"output": self.output})

    def last_events(self, usage: Usage, cost: Nanos) -> bytes | LongBody:
        """As `finish`, for an output that may have images."""
        self._items.end(self._last_status)
        response = self.response(usage, cost)
        self._items.events.add(response["status"], response=response)
        return self._items.events.take()

    def failed_events(self, problem: Problem) -> bytes | LongBody:
        """As `fail`, for an output that may have images."""
        if not self._items.events.count:
            self._begin()
        self._items.break_off()
        self._items.events.add("failed", response=self.response(problem=problem))
        return self._items.events.take()

    def new_item_events(self) -> bytes:
        """The events of the items that were added as a whole since the last call."""
        self._items.show_new()
        return bytes(self._items.events.take())

    # -------------------------------------------------------------------------------------------------------- images

    def begin_image(self) -> bytes:
        """Add the item of an image that is being made."""
        self._items.begin_image()
        return bytes(self._items.events.take())

    def partial_image(self, image: Mapping[str, Any]) -> bytes | LongBody:
        """The event of an unfinished image, from that of the image call."""
        names = ("partial_image_index", "size", "quality", "background", "output_format")
        shown = {name: image[name] for name in names if name in image}
        self._items.add_image_event("partial_image", partial_image_b64=image["b64_json"], **shown)
        return self._items.events.take()

    def end_image(self, *, status: Status = "completed", **fields: Any) -> bytes | LongBody:
        """Complete the item of the image with these fields."""
        begun = self.output[-1]
        assert isinstance(begun, ImageCall), "it was begun"
        self._items.end_image(msgspec.structs.replace(begun, status=status, **fields))
        return self._items.events.take()


def error_fields(problem: Problem) -> dict[str, str]:
    """The error of a failed response, under the nearest of the codes that the Responses API has."""
    code = _ERROR_CODES.get(problem.status, "server_error")
    return {"code": code, "message": problem.message}


def _annotations(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The sources of a text. Chat has what is known of one in a field of its own, Responses beside the type."""
    found: Iterable[Any] = message.get("annotations") or ()
    cited = [item.get("url_citation") for item in found if isinstance(item, dict)]
    return [{"type": "url_citation", **_citation(item)} for item in cited if isinstance(item, dict)]


def _citation(fields: Mapping[str, Any]) -> dict[str, Any]:
    """What the Responses API documents of a source; some servers leave the place or the title out."""
    places = {name: fields.get(name) for name in ("start_index", "end_index")}
    texts = {name: fields.get(name) for name in ("title", "url")}
    return {
        **{name: value if type(value) is int else 0 for name, value in places.items()},
        **{name: value if isinstance(value, str) else "" for name, value in texts.items()},
    }


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
