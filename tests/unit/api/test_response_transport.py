"""The head of a response is sent together with the first bytes of its body, and is not lost without one."""

import asyncio
from typing import Any

from penstock.api.response_transport import ResponseTransport


class RecordingTransport(asyncio.Transport):
    """A transport that records which bytes were written together."""

    def __init__(self) -> None:
        super().__init__()
        self.packets: list[bytes] = []

    def write(self, data: Any) -> None:
        self.packets.append(data)

    def writelines(self, parts: Any) -> None:
        assert all(parts), "asyncio never gets rid of an empty part"
        self.packets.append(b"".join(parts))

    def close(self) -> None:
        self.packets.append(b"END")

    def is_closing(self) -> bool:
        return b"END" in self.packets


HEAD, CONTINUE = b"HTTP/1.1 200 OK\r\n\r\n", b"HTTP/1.1 100 Continue\r\n\r\n"


def test_the_head_of_a_response_is_sent_with_the_first_bytes_of_its_body() -> None:
    sent = RecordingTransport()
    transport = ResponseTransport(sent)
    transport.write(CONTINUE)
    transport.write_head(HEAD)
    for part in (b"one", b"two", HEAD):
        transport.write(part)
    transport.write_head(HEAD)
    transport.write(b"")
    assert sent.packets == [CONTINUE, HEAD + b"one", b"two", HEAD, HEAD]
    assert transport.written == sum(map(len, sent.packets))


def test_a_long_body_is_not_copied_to_its_head() -> None:
    sent = RecordingTransport()
    transport = ResponseTransport(sent)
    transport.write_head(HEAD)
    transport.write(b"x" * 100_000)
    assert sent.packets == [HEAD, b"x" * 100_000]
    assert transport.written == len(HEAD) + 100_000


def test_a_head_without_a_body_is_sent() -> None:
    sent = RecordingTransport()
    transport = ResponseTransport(sent)
    transport.write_head(HEAD)
    transport.flush()
    transport.flush()
    transport.write_head(HEAD)
    transport.close()
    assert sent.packets == [HEAD, HEAD, b"END"]
