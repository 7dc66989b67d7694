"""Messages between the gateway and its children arrive as they were sent, with their files."""

import msgspec
import pytest

from penstock.imaging import messages
from penstock.imaging.convert import ImageFile
from penstock.imaging.messages import Confined, Done, Failed, Progress, Reply, Work
from penstock.long_bodies.buffers import Buffer

SHORT, LONG = b"a" * 100, b"b" * 70_000


def split(pieces: list[Buffer]) -> list[bytes]:
    """The parts of a message, from the bytes that are sent."""
    wire = b"".join(pieces)
    start = 1 + wire[0] * messages.SIZE_BYTES
    parts = []
    for size in messages.read_sizes(wire[1:start]):
        parts.append(wire[start : start + size])
        start += size
    assert start == len(wire)
    return parts


def test_work_arrives_as_it_was_sent_and_its_files_are_sent_from_where_they_are() -> None:
    arguments = {"data": LONG, "images": [SHORT, LONG, None], "mask": memoryview(LONG)[1:], "name": "x", "width": 3}
    pieces = messages.encode(Work("task", arguments, 2.5))
    message, *files = pieces
    assert len(message) < 500
    assert [file is LONG for file in files] == [True, True, False]
    arrived = messages.decode_work(split(pieces))
    assert arrived == Work("task", {**arguments, "mask": LONG[1:]}, 2.5)


def test_replies_arrive_as_they_were_sent() -> None:
    replies: list[Reply] = [
        Confined(("a", "b")),
        Progress(0.5),
        Failed("refused", "no"),
        Done({}),
        Done({"data": LONG}),
    ]
    for reply in replies:
        assert messages.decode_reply(split(messages.encode(reply))) == reply
    image = messages.decode_reply(split(messages.encode(Done(ImageFile(LONG, "image/png", 3, 4)))))
    assert image == Done({"data": LONG, "content_type": "image/png", "width": 3, "height": 4})


def test_more_files_than_a_message_can_number_arrive_too() -> None:
    pieces = [LONG] * 300
    assert messages.decode_reply(split(messages.encode(Done(pieces)))) == Done(pieces)


def test_a_reply_that_names_files_it_does_not_have_is_refused() -> None:
    """A child that was taken over may send anything."""
    message, *_ = split(messages.encode(Done([LONG, LONG])))
    for parts in ([message], [message, LONG], [b""], [b"\xc1"]):
        with pytest.raises(msgspec.MsgspecError):
            messages.decode_reply(parts)
