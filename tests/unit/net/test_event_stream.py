"""Server-sent events: found however their bytes are cut, within a limit, and read without what is not data."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.net.event_stream import EventBuffer, EventTooLong, data_of_events, event_data, named_event

EVENTS = (
    b": waiting\n\n",
    b'event: x\ndata: {"a":1}\n\n',
    b"data: first\ndata: second\nid: 7\n\n",
    b"data:[DONE]\n\n",
)
STREAM = b"".join(EVENTS)


@given(
    st.sampled_from([b"\n", b"\r\n"]),
    st.lists(st.integers(1, 2 * len(STREAM)), max_size=20),
    st.sampled_from([b"", b"data: unfin", b"data: unfinished\n"]),
)
def test_events_are_found_however_their_bytes_are_cut(line_end: bytes, cuts: list[int], unfinished: bytes) -> None:
    """Each is returned as soon as its last byte has come."""
    sent = (STREAM + unfinished).replace(b"\n", line_end)
    ends = [len(b"".join(EVENTS[:count]).replace(b"\n", line_end)) for count in range(1, len(EVENTS) + 1)]
    places = [0, *sorted({cut for cut in cuts if cut < len(sent)}), len(sent)]
    buffer = EventBuffer(100)
    found = b""
    for start, end in pairwise(places):
        found += buffer.feed(sent[start:end])
        complete = max((count for count, place in enumerate(ends, 1) if place <= end), default=0)
        assert found.startswith(b"".join(EVENTS[:complete])), (start, end)
    assert found == STREAM
    assert list(data_of_events(found)) == [b'{"a":1}', b"firstsecond", b"[DONE]"]


def test_byte_by_byte() -> None:
    for line_end in (b"\n", b"\r\n"):
        buffer = EventBuffer(100)
        sent = STREAM.replace(b"\n", line_end)
        assert b"".join(buffer.feed(bytes([byte])) for byte in sent) == STREAM


def test_a_carriage_return_alone_ends_no_line() -> None:
    buffer = EventBuffer(100)
    assert buffer.feed(b"data: a\r") == b""
    assert buffer.feed(b"b\n\n") == b"data: a\rb\n\n"


def test_an_incomplete_event_may_be_as_long_as_the_limit() -> None:
    for before, last in ((b"", b"x" * 11), (b"x" * 10, b"x"), (b"", b"data: 1\n\n" + b"x" * 11)):
        buffer = EventBuffer(10)
        assert buffer.feed(before) == b""
        with pytest.raises(EventTooLong):
            buffer.feed(last)
    buffer = EventBuffer(10)
    assert buffer.feed(b"x" * 10) == b""
    assert buffer.feed(b"\n\n") == b"x" * 10 + b"\n\n", "complete events may be longer"


def test_what_is_written_is_read() -> None:
    assert named_event("error", b"{}") == b"event: error\ndata: {}\n\n"
    assert event_data(named_event("error", b"{}")) == b"{}"
    assert event_data(b": data: none\nretry: 1") == b""


def test_an_event_has_a_limit_of_lines() -> None:
    buffer = EventBuffer(2**20)
    for _ in range(9):
        assert buffer.feed(b"data:\n" * 1000) == b""
    assert buffer.feed(b"\n") == b"data:\n" * 9000 + b"\n"
    buffer.feed(b"data:\n" * 9000)
    with pytest.raises(EventTooLong):
        buffer.feed(b":\n" * 2000)
