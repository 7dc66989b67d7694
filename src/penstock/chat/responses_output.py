"""Translate chat completions into responses of OpenAI's Responses API, whole and as a stream of its events."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from penstock.chat.pricing import Usage
from penstock.chat.responses_request import ResponsesRequest
from penstock.errors import Problem
from penstock.net.event_stream import data_of_events, named_event
from penstock.values import Nanos, dollars

Item = dict[str, Any]

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
        self._open: Item | None = None  # the last item of the output, while the stream adds to it
        self._tool_indexes: dict[int, Item] = {}

    # --------------------------------------------------------------------------------------------------------- whole

    def whole(self, body: bytes, usage: Usage, cost: Nanos) -> bytes:
        self.add_completion(msgspec.json.decode(body))
        return _encode(self.response(usage, cost))

    def add_completion(self, completion: Mapping[str, Any]) -> None:
        """Add the items of a whole chat completion to the output."""
        choice = completion["choices"][0]
        message = choice["message"]
        self._finish_reason = choice["finish_reason"]
        if reasoning := _reasoning(message):
            self.output.append(self._new_item("reasoning", content=[_reasoning_part(reasoning)]))
        parts = []
        if message.get("content"):
            parts.append(_text_part(message["content"], (choice.get("logprobs") or {}).get("content")))
        if message.get("refusal"):
            parts.append({"type": "refusal", "refusal": message["refusal"]})
        if parts:
            self.output.append(self._new_item("message", content=parts))
        for call in message.get("tool_calls") or ():
            self.add_function_call(call)

    def add_function_call(self, call: Mapping[str, Any]) -> None:
        function = call["function"]
        self.output.append(
            self._new_item(
                "function_call", call_id=call["id"], name=function["name"], arguments=function.get("arguments", "")
            )
        )

    def _new_item(self, kind: str, **fields: Any) -> Item:
        prefix = {"message": "msg", "function_call": "fc", "reasoning": "rs", "image_generation_call": "ig"}[kind]
        item: Item = {"id": f"{prefix}_{self._suffix}{len(self.output):02}", "type": kind, "status": "completed"}
        if kind == "message":
            item |= {"role": "assistant", "content": []}
        if kind == "reasoning":
            item |= {"summary": [], "content": []}
        return {**item, **fields}

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
        return self._event("created", response=self.response()) + self._event("in_progress", response=self.response())

    def feed(self, events: bytes) -> bytes:
        out = b"" if self._next_event else self.begin()
        for data in data_of_events(events):
            if data != b"[DONE]":
                out += self._chunk(msgspec.json.decode(data))
        return out

    def _chunk(self, chunk: Mapping[str, Any]) -> bytes:
        out = b""
        for choice in chunk.get("choices") or ():
            delta = choice.get("delta") or {}
            if reasoning := _reasoning(delta):
                out += self._add_text("reasoning", reasoning)
            if delta.get("content"):
                out += self._add_text("message", delta["content"], (choice.get("logprobs") or {}).get("content"))
            if delta.get("refusal"):
                out += self._add_refusal(delta["refusal"])
            for call in delta.get("tool_calls") or ():
                out += self._add_arguments(call)
            self._finish_reason = choice.get("finish_reason") or self._finish_reason
        return out

    def finish(self, usage: Usage, cost: Nanos) -> bytes:
        out = self._close()
        response = self.response(usage, cost)
        return out + self._event(response["status"], response=response)

    def fail(self, problem: Problem) -> bytes:
        return self._close() + self._event("failed", response=self.response(problem=problem))

    def new_item_events(self) -> bytes:
        """The events of the items that were added as a whole since the last call."""
        items = self.output[self._shown :]
        del self.output[self._shown :]
        out = b""
        for item in items:
            out += self._item_events(item)
        self._shown = len(self.output)
        return out

    def _item_events(self, item: Item) -> bytes:
        if item["type"] == "function_call":
            call = {"index": len(self.output), "id": item["call_id"], "function": item}
            return self._add_arguments(call) + self._close()
        out = b""
        for part in item["content"]:
            if part["type"] == "refusal":
                out += self._add_refusal(part["refusal"])
            else:
                out += self._add_text(item["type"], part["text"], part.get("logprobs"))
        return out + self._close()

    # -------------------------------------------------------------------------------------------------------- images

    def begin_image(self) -> bytes:
        """Add the item of an image that is being made."""
        item = {**self._new_item("image_generation_call"), "status": "in_progress", "result": None}
        self.output.append(item)
        self._shown = len(self.output)
        out = self._event("output_item.added", output_index=self._shown - 1, item=item)
        return out + self._image_event("in_progress") + self._image_event("generating")

    def partial_image(self, image: Mapping[str, Any]) -> bytes:
        """The event of an unfinished image, from that of the image call."""
        names = ("partial_image_index", "size", "quality", "background", "output_format")
        shown = {name: image[name] for name in names if name in image}
        return self._image_event("partial_image", partial_image_b64=image["b64_json"], **shown)

    def end_image(self, **fields: Any) -> bytes:
        """Complete the item of the image with these fields."""
        item = self.output[-1]
        item |= {"status": "completed", **fields}
        out = self._image_event("completed") if item["status"] == "completed" else b""
        return out + self._event("output_item.done", output_index=len(self.output) - 1, item=item)

    def _image_event(self, state: str, **fields: Any) -> bytes:
        place = {"item_id": self.output[-1]["id"], "output_index": len(self.output) - 1}
        return self._event(f"image_generation_call.{state}", **place, **fields)

    # ------------------------------------------------------------------------------------------------ items of a stream

    def _event(self, event: str, /, **fields: Any) -> bytes:
        kind = f"response.{event}"
        body = _encode({"type": kind, "sequence_number": self._next_event, **fields})
        self._next_event += 1
        return named_event(kind, body)

    def _add_text(self, kind: str, text: str, logprobs: Sequence[Any] | None = None) -> bytes:
        """Add to the text of a message or of the model's reasoning, which begins a new item if need be."""
        out = self._open_item(kind)
        item = self._open
        assert item is not None, "it was opened"
        if not item["content"] or "text" not in item["content"][-1]:
            part = _text_part("") if kind == "message" else _reasoning_part("")
            out += self._add_part(item, part)
        item["content"][-1]["text"] += text
        if kind == "reasoning":
            return out + self._event("reasoning_text.delta", **self._place(item), delta=text)
        item["content"][-1]["logprobs"] += logprobs or []
        return out + self._event("output_text.delta", **self._place(item), delta=text, logprobs=logprobs or [])

    def _add_refusal(self, text: str) -> bytes:
        out = self._open_item("message")
        item = self._open
        assert item is not None, "it was opened"
        if not item["content"] or "refusal" not in item["content"][-1]:
            out += self._close_part(item) + self._add_part(item, {"type": "refusal", "refusal": ""})
        item["content"][-1]["refusal"] += text
        return out + self._event("refusal.delta", **self._place(item), delta=text)

    def _add_arguments(self, call: Mapping[str, Any]) -> bytes:
        """Add to the arguments of a function call; chat streams name it by its index, and by its id once."""
        index = call.get("index", 0)
        function = call.get("function") or {}
        out = b""
        item = self._tool_indexes.get(index)
        if item is None:
            fields = {"call_id": call.get("id") or f"call_{self._suffix}{index:02}", "name": function.get("name", "")}
            out += self._open_item("function_call", is_new=True, **fields, arguments="")
            item = self._open
            assert item is not None, "it was opened"
            self._tool_indexes[index] = item
        if arguments := function.get("arguments"):
            item["arguments"] += arguments
            place = {"item_id": item["id"], "output_index": self.output.index(item)}
            out += self._event("function_call_arguments.delta", **place, delta=arguments)
        return out

    def _open_item(self, kind: str, *, is_new: bool = False, **fields: Any) -> bytes:
        if self._open is not None and self._open["type"] == kind and not is_new:
            return b""
        out = self._close()
        item = {**self._new_item(kind), **fields, "status": "in_progress"}
        self.output.append(item)
        self._open = item
        return out + self._event("output_item.added", output_index=len(self.output) - 1, item=item)

    def _add_part(self, item: Item, part: Item) -> bytes:
        item["content"].append(part)
        return self._event("content_part.added", **self._place(item), part=part)

    def _place(self, item: Item) -> dict[str, Any]:
        """Which part of which item an event is about: the last part of the open item."""
        return {
            "item_id": item["id"],
            "output_index": len(self.output) - 1,
            "content_index": len(item["content"]) - 1,
        }

    def _close_part(self, item: Item) -> bytes:
        if not item["content"]:
            return b""
        part = item["content"][-1]
        place = self._place(item)
        if part["type"] == "refusal":
            out = self._event("refusal.done", **place, refusal=part["refusal"])
        elif part["type"] == "reasoning_text":
            out = self._event("reasoning_text.done", **place, text=part["text"])
        else:
            out = self._event("output_text.done", **place, text=part["text"], logprobs=part["logprobs"])
        return out + self._event("content_part.done", **place, part=part)

    def _close(self) -> bytes:
        """The last events of the open item."""
        item, self._open = self._open, None
        if item is None:
            return b""
        index = len(self.output) - 1
        out = b""
        if item["type"] == "function_call":
            place = {"item_id": item["id"], "output_index": index}
            named = {"name": item["name"], "arguments": item["arguments"]}
            out = self._event("function_call_arguments.done", **place, **named)
        else:
            out = self._close_part(item)
        item["status"] = "incomplete" if self._finish_reason in _INCOMPLETE else "completed"
        return out + self._event("output_item.done", output_index=index, item=item)


def _reasoning(message: Mapping[str, Any]) -> str:
    found = next((message[name] for name in _REASONING_FIELDS if isinstance(message.get(name), str)), "")
    return str(found)


def _text_part(text: str, logprobs: Sequence[Any] | None = None) -> Item:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": list(logprobs or ())}


def _reasoning_part(text: str) -> Item:
    return {"type": "reasoning_text", "text": text}


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
