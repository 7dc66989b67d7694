"""Number the tool calls of a chat stream anew where a server gives several of them one index, or none."""

from typing import Any

import msgspec

from penstock.chat.normalise import new_call_id
from penstock.net.event_stream import event_data

# Quotes inside a JSON string are escaped, so this never matches generated text.
TOOL_CALL_MARKS = (b'"tool_calls":[{', b'"tool_calls": [{')
_MOST_CHECKS = 16  # of one call's arguments: each reads all of them


class CallNumbers:
    """The tool calls of one stream, by the number that each of them has.

    In OpenAI's streams the first piece of a call has its index, its id and its name, all others the index alone. Ollama
    sends each call in one piece, all with the index 0; others leave the index out, or the id, or repeat both. A call
    that begins without an id gets one.
    """

    def __init__(self) -> None:
        self._choices: dict[Any, _Calls] = {}

    def renumber(self, events: bytes) -> bytes:
        """The events with an index of its own for each call. What is right already, or cannot be read, stays."""
        return b"\n\n".join([self._renumber_event(event) for event in events.split(b"\n\n")])

    def _renumber_event(self, event: bytes) -> bytes:
        if b'"tool_calls"' not in event:
            return event
        try:
            chunk = msgspec.json.decode(event_data(event))
            changed = [self._renumber_choice(choice) for choice in chunk["choices"]]
        except (msgspec.DecodeError, KeyError, TypeError, AttributeError):
            return event
        return b"data: " + msgspec.json.encode(chunk) if any(changed) else event

    def _renumber_choice(self, choice: dict[str, Any]) -> bool:
        """Number the calls of a choice, and return whether that changed one."""
        pieces = (choice.get("delta") or {}).get("tool_calls") or ()
        calls = self._choices.setdefault(choice.get("index"), _Calls())
        is_changed = False
        for piece in pieces:
            given_id = piece.get("id")
            number = calls.number(piece)
            is_changed = is_changed or piece.get("index") != number or type(piece["index"]) is not int
            is_changed = is_changed or piece.get("id") != given_id
            piece["index"] = number
        return is_changed


class _Calls:
    """The calls of one choice."""

    def __init__(self) -> None:
        self._calls: list[_Call] = []
        self._at_index: dict[int | None, _Call] = {}  # the newest one that the server gave this index
        self._by_id: dict[tuple[int | None, str], _Call] = {}

    def number(self, piece: dict[str, Any]) -> int:
        """The number of the call to which a piece belongs."""
        index = piece.get("index") if type(piece.get("index")) is int else None
        call_id = _text(piece.get("id"))
        function = piece.get("function") or {}
        name = _text(function.get("name"))
        call = self._by_id.get((index, call_id)) or self._at_index.get(index)
        if call is None or call.is_followed_by(call_id, name, has_index=index is not None):
            call = _Call(len(self._calls))
            self._calls.append(call)
            if name and not call_id:
                piece["id"] = call_id = new_call_id()
        self._at_index[index] = call
        if call_id:
            call.id = call.id or call_id
            self._by_id[index, call_id] = call
        call.name = call.name or name
        call.arguments.append(_text(function.get("arguments")))
        return call.number


class _Call:
    """One call, as far as it has come."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.id = ""
        self.name = ""
        self.arguments: list[str] = []
        self._checks = 0

    def is_followed_by(self, call_id: str, name: str, *, has_index: bool) -> bool:
        """Whether a piece with the same index, this id and this name begins another call.

        A new id alone does not, where there is an index: some servers give each piece a new one. Without ids, a name
        begins another call if this one is whole; some servers repeat the name with each piece.
        """
        if call_id and self.id:
            return call_id != self.id and (bool(name) or not has_index)
        return bool(name and self.name) and self._is_whole()

    def _is_whole(self) -> bool:
        if self._checks == _MOST_CHECKS:
            return False
        self._checks += 1
        self.arguments = ["".join(self.arguments)]
        return is_json(self.arguments[0])


def is_json(text: str) -> bool:
    """Whether a text is a whole JSON object, so that nothing can follow."""
    if not text.rstrip().endswith("}"):
        return False
    try:
        msgspec.json.decode(text)
    except msgspec.DecodeError:
        return False
    return True


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
