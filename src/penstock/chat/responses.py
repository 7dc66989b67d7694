"""Handle a call of OpenAI's Responses API: passed on or as a chat call, with images where the model asks for them."""

from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing, suppress
from typing import Any

import msgspec

from penstock.accounts.response_items import ResponseItem, add_items, kept_items
from penstock.chat.endpoint import complete_chat
from penstock.chat.form import KeptForm
from penstock.chat.image_tool import ImageTool, conversation_images
from penstock.chat.kept_items import image_item, with_items
from penstock.chat.pricing import Usage
from penstock.chat.responses_items import ImageCall, Item
from penstock.chat.responses_names import use_callers_names
from penstock.chat.responses_output import ResponsesForm
from penstock.chat.responses_request import IMAGE_TOOL, ResponsesRequest, read_responses_request
from penstock.errors import Problem, StorageUnavailable
from penstock.event_loop import run_aside
from penstock.gateway import Gateway
from penstock.generations import endpoints
from penstock.generations.stream import ImageEvents
from penstock.long_bodies.json_encoding import encode
from penstock.long_bodies.long_body import LongBody, pieces_of, whole
from penstock.schema import Call, Response
from penstock.values import ZERO, Nanos, nanos, new_id

_MAX_ROUNDS = 8  # how often the model may be asked again after it asked for images
_MAX_IMAGES = 10  # of one call; `max_tool_calls` may allow fewer
_NO_MORE_IMAGES = "No further image can be made in this response."
_IMAGE_FIELDS = ("revised_prompt", "action", "size", "output_format", "metadata")
_STREAM_HEADERS = {"cache-control": "no-cache", "x-accel-buffering": "no"}


async def create_response(gateway: Gateway, call: Call) -> Response:
    """Answer as OpenAI's Responses API does. Nothing is stored, so each call has the whole conversation."""
    call = await with_items(gateway, call)
    request = await run_aside(call.size_bytes, read_responses_request, call)
    try:
        return await _respond(gateway, call, request)
    except Problem as problem:
        use_callers_names(problem, request)
        raise


async def _respond(gateway: Gateway, call: Call, request: ResponsesRequest) -> Response:
    form = ResponsesForm(request, call.id, call.at_ms // 1000)
    chat_call = msgspec.structs.replace(call, json=request.chat)
    if request.image_tool is None or call.dry_run:
        return await complete_chat(gateway, chat_call, form, request)
    images = await run_aside(call.size_bytes, conversation_images, request.body["input"])
    turn = _Turn(gateway, chat_call, request, ImageTool(gateway, request, images), form)
    first = await turn.ask()  # an error of the first step is an HTTP error, not an event
    if not request.stream:
        problem = await turn.make_all(first)
        await turn.keep_items()
        return Response(json=form.response(turn.usage, turn.cost, problem))
    return Response(chunks=turn.events(first), headers=_STREAM_HEADERS, media_type="text/event-stream")


class _Turn:
    """One response in which the model may ask for images: chat calls and image calls, each with a record of its own."""

    def __init__(
        self, gateway: Gateway, call: Call, request: ResponsesRequest, tool: ImageTool, form: ResponsesForm
    ) -> None:
        self._gateway = gateway
        # Each step is waited for, whatever the caller prefers.
        headers = {name: value for name, value in call.headers.items() if name not in ("prefer", "idempotency-key")}
        self._call = msgspec.structs.replace(call, headers=headers)
        self._tool = tool
        self._form = form
        self._chat = {**request.chat, "stream": False, "tools": self._tool.chat_tools(request.chat["tools"])}
        limit = request.body.get("max_tool_calls")
        self._images_left = _MAX_IMAGES if limit is None else min(limit, _MAX_IMAGES)
        self._is_told = False  # that no further image can be made
        self._asked = False
        self._keeps_items = request.keeps_items
        self._image_requests: dict[str, str] = {}  # by the ids of their items
        self.usage = Usage(prompt_tokens=0, completion_tokens=0)
        self.cost: Nanos = ZERO

    async def ask(self) -> Mapping[str, Any]:
        """Ask the model; return its message after adding it to the output, except for its calls of the image tool."""
        kept = KeptForm()
        call = await self._next_call(self._call.endpoint, self._chat)
        body = (await complete_chat(self._gateway, call, kept)).body or b"{}"
        completion: Mapping[str, Any] = await run_aside(len(body), lambda: msgspec.json.decode(whole(body)))
        self._count(kept.usage, kept.cost)
        message: Mapping[str, Any] = completion["choices"][0]["message"]
        functions = [call for call in message.get("tool_calls") or () if not _is_image_call(call)]
        shown = {**message, "tool_calls": functions}
        self._form.add_completion({**completion, "choices": [{**completion["choices"][0], "message": shown}]})
        return message

    async def make_all(self, message: Mapping[str, Any]) -> Problem | None:
        """Take all steps. A step that is refused ends the response, which has what was made and paid until then."""
        try:
            async for _ in self.steps(message):
                pass
        except Problem as problem:
            return problem
        return None

    async def steps(self, message: Mapping[str, Any]) -> AsyncIterator[bytes]:
        """Make the images that the model asked for and ask it again, until it asks for none. Yields the events of each
        step, for a caller who wants a stream.

        A model that also calls the caller's own functions has to wait for their results, which the caller sends.
        """
        for _ in range(_MAX_ROUNDS):
            calls = message.get("tool_calls") or []
            image_calls = [call for call in calls if _is_image_call(call)]
            if not image_calls or (self._is_told and not self._images_left):
                return
            results: list[str] = []
            for call in image_calls:
                if not self._images_left:
                    results.append(_NO_MORE_IMAGES)
                    continue
                self._images_left -= 1
                async for event in self._make_image(call, results):
                    for piece in pieces_of(event):
                        yield piece
            if len(image_calls) < len(calls):
                return
            answered = [
                {"role": "tool", "tool_call_id": call["id"], "content": result}
                for call, result in zip(image_calls, results, strict=True)
            ]
            said = {"role": "assistant", "content": message.get("content"), "tool_calls": image_calls}
            self._chat = {**self._chat, "messages": [*self._chat["messages"], said, *answered], "tool_choice": "auto"}
            if not self._images_left:
                self._chat["tool_choice"] = "none"
                self._is_told = True
            message = await self.ask()
            yield self._form.new_item_events()

    async def events(self, message: Mapping[str, Any]) -> AsyncIterator[bytes]:
        """The events of a stream: those of an item follow when it is made, those of an unfinished image at once."""
        yield self._form.begin() + self._form.new_item_events()
        try:
            async for events in self.steps(message):
                yield events
        except Problem as problem:
            last = self._form.failed_events(problem)
            await self.keep_items()
        else:
            last = self._form.last_events(self.usage, self.cost)
            await self.keep_items()
        for piece in pieces_of(last):
            yield piece

    async def _make_image(self, call: Mapping[str, Any], results: list[str]) -> AsyncIterator[bytes | LongBody]:
        """Make one image, and add what the model is told about it to the results. Yields its events."""
        yield self._form.begin_image()
        image: Mapping[str, Any] = {}
        try:
            order = self._tool.order(call["function"]["arguments"])
            path = "/compat/v1/images/edits" if order.is_edit else "/compat/v1/images/generations"
            make = endpoints.edit_images if order.is_edit else endpoints.make_images
            async for fields in _image_events(await make(self._gateway, await self._next_call(path, order.body))):
                if fields["type"].endswith(".partial_image"):
                    yield self._form.partial_image(fields)
                else:
                    action = "edit" if order.is_edit else "generate"
                    image = {"revised_prompt": order.body["prompt"], "action": action, **fields}
            problem = image.get("error")
        except Problem as error:
            problem = error.body()["error"]
        if problem:
            results.append(f"The image could not be generated: {problem['message']}")
            yield self._form.end_image(status="failed", result=None, error=problem)
            return
        self._count(Usage(prompt_tokens=0, completion_tokens=0), nanos(image["metadata"]["cost"]))
        results.append("The image was generated and is shown to the user.")
        shown = {name: image[name] for name in _IMAGE_FIELDS}
        self._image_requests[self._form.output[-1].id] = image["id"]
        yield self._form.end_image(result=image["b64_json"], **shown)

    async def keep_items(self) -> None:
        """Keep the items of the response for later calls."""
        if not self._keeps_items:
            return
        settings = self._gateway.settings
        items = [self._kept(item) for item in self._form.output]
        call = self._call
        kept = kept_items(settings, call.caller.org_id, call.id, items, self._gateway.clock.now_ms())
        with suppress(StorageUnavailable):  # the response is here, and can be sent back as it is
            await self._gateway.store.write(lambda tx: add_items(tx, kept), org_id=call.caller.org_id)

    def _kept(self, item: Item) -> ResponseItem:
        if isinstance(item, ImageCall):
            fields = msgspec.to_builtins(msgspec.structs.replace(item, result=None))
            return image_item(fields, self._image_requests.get(item.id))
        return ResponseItem(item.id, msgspec.json.encode(item))

    async def _next_call(self, endpoint: str, body: dict[str, Any]) -> Call:
        """The call of one step. The first one has the id of the caller's call; each has a request of its own."""
        if not self._asked:
            self._asked = True
            return msgspec.structs.replace(self._call, json=body)
        now = self._gateway.clock.now_ms()
        size_bytes = self._call.size_bytes  # about, since the images of the conversation are all that is long
        encoded = await run_aside(size_bytes, _encoded, body, size_bytes)
        return msgspec.structs.replace(
            self._call,
            id=new_id("req", now),
            at_ms=now,
            started=self._gateway.clock.monotonic(),
            endpoint=endpoint,
            json=body,
            body=encoded,
            size_bytes=len(encoded),
        )

    def _count(self, usage: Usage, cost: Nanos) -> None:
        self.usage = Usage(
            prompt_tokens=self.usage.input + usage.input, completion_tokens=self.usage.output + usage.output
        )
        self.cost = Nanos(self.cost + cost)


def _encoded(body: dict[str, Any], size_bytes: int) -> bytes | bytearray:
    """The bytes of a call, made in small steps if there are many."""
    return whole(encode(body, size_bytes))


def _is_image_call(call: Mapping[str, Any]) -> bool:
    return bool(call["function"]["name"] == IMAGE_TOOL)


async def _image_events(response: Response) -> AsyncIterator[dict[str, Any]]:
    """The events of an image call; those of one that is not streamed are the same as if it were."""
    if not isinstance(response.chunks, ImageEvents):
        result = response.json
        (image,) = result["data"]
        yield {"type": "image_generation.completed", **result, **image}
        return
    async with aclosing(response.chunks.events) as events:
        async for event in events:
            if event is not None:
                yield {"type": event.name, **event.fields}
