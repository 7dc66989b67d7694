"""Read and write server-sent events, the form in which chats and images are streamed."""

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from penstock.long_bodies.json_encoding import encode_with_files
from penstock.long_bodies.long_body import LongBody

_END = b"\n\n"
_MAX_LINES = 10_000  # of an event
_encode = msgspec.json.Encoder(decimal_format="number").encode


class EventTooLong(Exception):
    """An event has more bytes than the limit, or more lines than any event needs."""


class EventBuffer:
    """Turns the bytes of a stream into complete events, and keeps at most one incomplete event.

    Each byte is searched once, however many pieces an event comes in: one with an image has megabytes.
    """

    __slots__ = ("_lines", "_max_bytes", "_rest")

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._rest = bytearray()  # the incomplete event
        self._lines = 0  # in it

    @property
    def size_bytes(self) -> int:
        """How many bytes the incomplete event has."""
        return len(self._rest)

    def feed(self, data: bytes) -> bytes:
        """Return the events that are complete now, each with the empty line at its end, and lines that end with LF.

        Raises EventTooLong for an incomplete event.
        """
        rest = self._rest
        if rest.endswith(b"\r"):  # which may be the first half of CR LF
            del rest[-1]
            data = b"\r" + data
        if b"\r" in data:
            data = data.replace(b"\r\n", b"\n")
        if not rest and data.endswith(_END):
            return data
        searched = max(0, len(rest) - 1)
        rest += data
        end = rest.rfind(_END, searched)
        events = b"" if end < 0 else bytes(rest[: end + len(_END)])
        del rest[: len(events)]
        self._lines = rest.count(b"\n") if events else self._lines + data.count(b"\n")
        if len(rest) > self._max_bytes or self._lines > _MAX_LINES:
            raise EventTooLong
        return events


def event_data(event: bytes) -> bytes:
    """The data of one event, without its name and comments."""
    if event.startswith(b"data:") and b"\n" not in event:  # as most are
        return event[5:].strip()
    return b"".join(line[5:].strip() for line in event.split(b"\n") if line.startswith(b"data:"))


def data_of_events(events: bytes) -> Iterator[bytes]:
    """The data of each complete event that has some; a comment has none."""
    return (data for event in events.split(_END) if (data := event_data(event)))


def contains_any(events: bytes, marks: Iterable[bytes]) -> bool:
    """Whether one of these marks is in the bytes."""
    for mark in marks:  # noqa: SIM110 - `any` with a generator takes three times as long
        if mark in events:
            return True
    return False


def named_event(name: str, data: bytes) -> bytes:
    """The bytes of an event with a name."""
    return b"event: %b\ndata: %b\n\n" % (name.encode(), data)


def encoded_event(name: str, fields: Any) -> bytes | LongBody:
    """An event with a name and JSON; a long one if there is a FileAsBase64 in it."""
    try:
        return named_event(name, _encode(fields))
    except TypeError:  # what it contains that is not JSON is a file
        head, tail = named_event(name, b"\0").split(b"\0")
        return encode_with_files(fields, decimal_format="number").between(head, tail)
