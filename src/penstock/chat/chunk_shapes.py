"""Give the chunks of a chat stream the documented shape: a role first, texts as strings, an empty delta at the end."""

from collections.abc import Mapping
from typing import Any

import msgspec

from penstock.chat.normalise import REASON_MARKS, text_fields
from penstock.net.event_stream import contains_any, event_data

# Quotes inside a JSON string are escaped, so these never match generated text.
_MARKS = (*REASON_MARKS, b'"content":[', b'"content": [', b'"arguments":{', b'"arguments": {')
_encode = msgspec.json.Encoder(decimal_format="number").encode


class ChunkShapes:
    """The choices of one stream as far as they have come. Chunks that are right, or cannot be read, are not changed."""

    def __init__(self, choices: int = 1) -> None:
        """`choices` is how many the caller asked for."""
        self._choices = choices
        self._begun: set[Any] = set()  # those whose first chunk has been passed on

    def apply(self, events: bytes) -> bytes:
        """The events in the documented shape."""
        if len(self._begun) >= self._choices and not contains_any(events, _MARKS):
            return events
        return b"\n\n".join([self._shaped(event) for event in events.split(b"\n\n")])

    def _shaped(self, event: bytes) -> bytes:
        if len(self._begun) >= self._choices and not contains_any(event, _MARKS):
            return event
        try:
            chunk = msgspec.json.decode(event_data(event))
            changed = [self._shape_choice(choice) for choice in chunk["choices"]]
        except (msgspec.DecodeError, KeyError, TypeError, AttributeError):
            return event
        if not any(changed):
            return event
        written = [choice for choice in chunk["choices"] if choice.get("delta") or not choice.get("finish_reason")]
        ends = [_end(choice) for choice in chunk["choices"] if choice.get("finish_reason")]
        parts = [[_without_reason(choice) for choice in written], ends]
        return b"\n\n".join([b"data: " + _encode({**chunk, "choices": part}) for part in parts if part])

    def _shape_choice(self, choice: dict[str, Any]) -> bool:
        """Bring a choice into shape, and return whether its chunk has to be written anew."""
        given = choice.get("delta") or {}
        delta = {**given, **text_fields(given)}
        index = choice.get("index")
        is_first = index not in self._begun
        self._begun.add(index)
        if is_first and delta.get("role") != "assistant":
            delta = {**delta, "role": "assistant"}
        if choice.get("finish_reason") and not is_first and not any({**delta, "role": None}.values()):
            delta = {}
        choice["delta"] = delta
        return delta != given or bool(delta and choice.get("finish_reason"))


def _without_reason(choice: Mapping[str, Any]) -> dict[str, Any]:
    return {**choice, "finish_reason": None}


def _end(choice: Mapping[str, Any]) -> dict[str, Any]:
    """The last chunk of a choice. What was said of its tokens came with them."""
    kept = {name: value for name, value in choice.items() if name != "logprobs" or not choice.get("delta")}
    return {**kept, "delta": {}}
