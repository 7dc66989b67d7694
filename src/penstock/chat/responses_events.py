"""The events with which the items of a response of the Responses API are streamed."""

from collections.abc import Mapping, Sequence
from typing import Any

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
from penstock.chat.tool_calls import is_json
from penstock.long_bodies.long_body import LongBody
from penstock.net.event_stream import encoded_event


class Events:
    """Numbered events that wait to be sent."""

    def __init__(self) -> None:
        self.count = 0
        self._waiting: list[bytes | LongBody] = []

    def add(self, event: str, /, **fields: Any) -> None:
        kind = f"response.{event}"
        self._waiting.append(encoded_event(kind, {"type": kind, "sequence_number": self.count, **fields}))
        self.count += 1

    def take(self) -> bytes | LongBody:
        """The events that wait; a LongBody if there are images in them."""
        waiting, self._waiting = self._waiting, []
        if any(isinstance(event, LongBody) for event in waiting):
            return LongBody.of(waiting)
        return b"".join(map(bytes, waiting))


class StreamedItems:
    """The output of a response, whose items grow piece by piece; each change adds its events.

    A message or some reasoning ends before the next item begins. Function calls may grow in turns, as in chat streams:
    one whose arguments are whole ends when the next item begins, the others when the stream ends.
    """

    def __init__(self, suffix: str) -> None:
        """`suffix` is what the ids of all items have in common."""
        self._suffix = suffix
        self.output: list[Item] = []
        self.events = Events()
        self._shown = 0  # how many items of the output have had their events
        self._open: Message | Reasoning | None = None  # what the stream adds to
        self._open_index = 0
        # What the stream has said of the open item's last part, which gets it when it ends: adding each word to a long
        # text would copy all of it.
        self._said: list[str] = []
        self._calls: dict[int, _StreamedCall] = {}  # by their index in the chat stream
        self._last_call: _StreamedCall | None = None

    def new_id(self, prefix: str) -> str:
        """The id of the next item of the output."""
        return f"{prefix}_{self._suffix}{len(self.output):02}"

    # ------------------------------------------------------------------------------------------------- pieces of items

    def add_text(self, text: str, logprobs: Sequence[Any] | None = None) -> None:
        """Add to the text of a message, which begins a new item or a new part if need be."""
        message, part = self._text_part()
        self._said.append(text)
        part.logprobs += logprobs or []
        self.events.add("output_text.delta", **self._place(message), delta=text, logprobs=logprobs or [])

    def add_annotation(self, annotation: Mapping[str, Any]) -> None:
        """Add a source to the text of a message."""
        message, part = self._text_part()
        place = {**self._place(message), "annotation_index": len(part.annotations)}
        part.annotations.append(annotation)
        self.events.add("output_text.annotation.added", **place, annotation=annotation)

    def add_refusal(self, text: str) -> None:
        message = self._open_message()
        if not message.content or not isinstance(message.content[-1], RefusalPart):
            self._begin_part(message, RefusalPart())
        self._said.append(text)
        self.events.add("refusal.delta", **self._place(message), delta=text)

    def add_reasoning(self, text: str) -> None:
        """Add to the text of the model's reasoning, which begins a new item if need be."""
        reasoning = self._open
        if not isinstance(reasoning, Reasoning):
            reasoning = Reasoning(id=self.new_id("rs"), status="in_progress")
            self._begin_item(reasoning)
            self._begin_part(reasoning, ReasoningPart())
        self._said.append(text)
        self.events.add("reasoning_text.delta", **self._place(reasoning), delta=text)

    def add_call(self, index: int, call_id: str, name: str, arguments: str) -> None:
        """Add to a function call, which begins a new item when its name is known. Raises ValueError if it has ended."""
        call = self._calls.get(index)
        if call is None:
            call = self._calls[index] = _StreamedCall(call_id or f"call_{self._suffix}{index:02}")
        if call.is_ended and arguments.strip():
            raise ValueError("there are more arguments after the last brace")
        if arguments and not call.is_ended:
            call.arguments.append(arguments)
        if call.item is None and name:
            self._begin_call(call, name)
            arguments = "".join(call.arguments)
        if call.item is not None and arguments and not call.is_ended:
            self.events.add("function_call_arguments.delta", **call.place, delta=arguments)

    def add_whole(self, item: Item) -> None:
        """Add an item that is whole already, as if it came in pieces."""
        if isinstance(item, FunctionCall):
            self.add_call(len(self.output), item.call_id, item.name, item.arguments)
            assert self._last_call is not None, "it was just begun"
            self._end_call(self._last_call, item.status)
        elif isinstance(item, Reasoning):
            for thought in item.content:
                self.add_reasoning(thought.text)
        elif isinstance(item, Message):
            for part in item.content:
                self._add_whole_part(part)
        self._end_item(item.status)

    def _add_whole_part(self, part: TextPart | RefusalPart) -> None:
        if isinstance(part, RefusalPart):
            self.add_refusal(part.refusal)
            return
        self.add_text(part.text, part.logprobs)
        for annotation in part.annotations:
            self.add_annotation(annotation)

    def show_new(self) -> None:
        """Add the events of the items that were added to the output as a whole since the last call."""
        items = self.output[self._shown :]
        del self.output[self._shown :]
        for item in items:
            self.add_whole(item)
        self._shown = len(self.output)

    # ------------------------------------------------------------------------------------------------------------ ends

    def end(self, status: Status) -> None:
        """End the items that the stream was adding to. Raises ValueError for a function call without a name."""
        self._end_item(status)
        for call in self._calls.values():
            if call.item is None:
                raise ValueError("a function call has no name")
            self._end_call(call, status)

    def break_off(self) -> None:
        """End a message or reasoning that the stream was adding to. Half a function call gets no event by which a
        caller would run it; the output has what has come of it.
        """
        self._end_item("incomplete")
        for call in self._calls.values():
            if call.item is not None and not call.is_ended:
                call.item.arguments = "".join(call.arguments)
                call.item.status = "incomplete"

    def _end_item(self, status: Status) -> None:
        item, self._open = self._open, None
        if item is not None:
            self._end_part(item)
            item.status = status
            self.events.add("output_item.done", output_index=self._open_index, item=item)

    def _end_part(self, item: Message | Reasoning) -> None:
        """The last events of the last part, if there is one."""
        if not item.content:
            return
        part = item.content[-1]
        said = "".join(self._said)
        self._said.clear()
        place = self._place(item)
        if isinstance(part, RefusalPart):
            part.refusal = said
            self.events.add("refusal.done", **place, refusal=said)
        elif isinstance(part, ReasoningPart):
            part.text = said
            self.events.add("reasoning_text.done", **place, text=said)
        else:
            part.text = said
            self.events.add("output_text.done", **place, text=said, logprobs=part.logprobs)
        self.events.add("content_part.done", **place, part=part)

    def _end_call(self, call: "_StreamedCall", status: Status) -> None:
        if call.is_ended or call.item is None:
            return
        call.is_ended = True
        item = call.item
        item.arguments = "".join(call.arguments)
        item.status = status
        self.events.add("function_call_arguments.done", **call.place, name=item.name, arguments=item.arguments)
        self.events.add("output_item.done", output_index=call.output_index, item=item)

    # ---------------------------------------------------------------------------------------------------------- begins

    def _open_message(self) -> Message:
        """The message that the stream adds to; a new one if need be."""
        if isinstance(self._open, Message):
            return self._open
        message = Message(id=self.new_id("msg"), status="in_progress")
        self._begin_item(message)
        return message

    def _text_part(self) -> tuple[Message, TextPart]:
        message = self._open_message()
        part = message.content[-1] if message.content else None
        if not isinstance(part, TextPart):
            part = TextPart()
            self._begin_part(message, part)
        return message, part

    def _begin_item(self, item: Message | Reasoning) -> None:
        self._end_before_next()
        self.output.append(item)
        self._open = item
        self._open_index = len(self.output) - 1
        self.events.add("output_item.added", output_index=self._open_index, item=item)

    def _begin_call(self, call: "_StreamedCall", name: str) -> None:
        self._end_before_next()
        item = FunctionCall(id=self.new_id("fc"), status="in_progress", call_id=call.call_id, name=name, arguments="")
        self.output.append(item)
        call.item = item
        call.output_index = len(self.output) - 1
        self._last_call = call
        self.events.add("output_item.added", output_index=call.output_index, item=item)

    def _end_before_next(self) -> None:
        """End what is open and whole, because another item begins."""
        self._end_item("completed")
        call, self._last_call = self._last_call, None
        if call is not None and is_json("".join(call.arguments)):
            self._end_call(call, "completed")

    def _begin_part(self, item: Message | Reasoning, part: Any) -> None:
        self._end_part(item)
        item.content.append(part)
        self.events.add("content_part.added", **self._place(item), part=part)

    def _place(self, item: Message | Reasoning) -> dict[str, Any]:
        """Which part of which item an event is about: the last part of the open item."""
        return {"item_id": item.id, "output_index": self._open_index, "content_index": len(item.content) - 1}

    # ---------------------------------------------------------------------------------------------------------- images

    def begin_image(self) -> None:
        """Add the item of an image that is being made."""
        item = ImageCall(id=self.new_id("ig"))
        self.output.append(item)
        self._shown = len(self.output)
        self.events.add("output_item.added", output_index=self._shown - 1, item=item)
        self.add_image_event("in_progress")
        self.add_image_event("generating")

    def add_image_event(self, state: str, **fields: Any) -> None:
        """Add an event about the image that was begun last."""
        place = {"item_id": self.output[-1].id, "output_index": len(self.output) - 1}
        self.events.add(f"image_generation_call.{state}", **place, **fields)

    def end_image(self, item: ImageCall) -> None:
        """Put the item in the place of the one that was begun."""
        self.output[-1] = item
        if item.status == "completed":
            self.add_image_event("completed")
        self.events.add("output_item.done", output_index=len(self.output) - 1, item=item)


class _StreamedCall:
    """A function call whose arguments come in pieces: adding each to a long text would copy all of it."""

    def __init__(self, call_id: str) -> None:
        self.call_id = call_id
        self.arguments: list[str] = []
        self.item: FunctionCall | None = None  # None: it has no name yet
        self.output_index = 0
        self.is_ended = False

    @property
    def place(self) -> dict[str, Any]:
        """The fields by which events name the item."""
        assert self.item is not None, "its name is known"
        return {"item_id": self.item.id, "output_index": self.output_index}
