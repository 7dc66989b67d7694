"""Find what a chat model wrote in a response as its caller would get it: texts, thoughts and the arguments of tools."""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from penstock.guards.texts import NAMES, joined, texts_in
from penstock.net.event_stream import data_of_events
from penstock.upstream.replies import MALFORMED

_END = b"[DONE]"
Place = tuple[str | int, ...]


def whole_text(body: bytes | bytearray) -> str:
    """The text of a chat completion, or of a response of the Responses API."""
    response = msgspec.json.decode(body)
    return _text_of(response.get("output"), *(choice.get("message") for choice in response.get("choices") or ()))


def streamed_text(events: bytes | bytearray) -> str:
    """The text of a stream: its pieces are joined, so that no word is in two of them."""
    pieces: dict[Place, list[str]] = {}
    output: Any = None
    for data in data_of_events(bytes(events)):
        if data == _END or not data:
            continue
        try:
            event = msgspec.json.decode(data)
            output = (event.get("response") or {}).get("output", output)
            for choice in event.get("choices") or ():
                for place, text in _placed(choice.get("delta")):
                    pieces.setdefault((choice.get("index", 0), *place), []).append(text)
        except MALFORMED:  # it is passed on as it is
            pieces.setdefault(("event", len(pieces)), []).append(data.decode(errors="replace"))
    return _text_of(output, ["".join(texts) for texts in pieces.values()])


def _text_of(*written: Any) -> str:
    texts = list(texts_in(written, NAMES))
    return joined(texts, list(_decoded(texts)))


def _decoded(texts: Sequence[str]) -> Iterator[Any]:
    """What is JSON among texts and their lines, such as the arguments of tools: escapes in it would hide words."""
    for text in texts:
        for part in dict.fromkeys((text, *text.split("\n"))):
            if part.lstrip().startswith(("{", "[")) and "\\" in part:
                try:
                    yield msgspec.json.decode(part)
                except msgspec.DecodeError:
                    continue


def _placed(delta: Any) -> Iterator[tuple[Place, str]]:
    """The texts of a piece of a message, each with where it goes on."""
    left: list[tuple[Place, Any]] = [((), delta)]
    while left:
        place, found = left.pop()
        if isinstance(found, str):
            if place[-1] not in NAMES:
                yield place, found
        elif isinstance(found, dict):
            left.extend(((*place, name), inner) for name, inner in reversed(found.items()))
        elif isinstance(found, list):
            left.extend(((*place, _index(number, inner)), inner) for number, inner in reversed(list(enumerate(found))))


def _index(number: int, item: Any) -> int:
    """The number of an item of a list; tool calls name it, since each piece has only the item that goes on."""
    given = item.get("index") if isinstance(item, dict) else None
    return given if isinstance(given, int) else number
