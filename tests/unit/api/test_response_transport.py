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


HEAD, CONTINUE = b"HTTP/1.1 200 OK\r\n\r\n", b"HTTP/1.1 100 Continue\r\n\r\n"


def test_the_head_of_a_response_is_sent_with_the_first_bytes_of_its_body() -> None:
    sent = RecordingTransport()
    transport = ResponseTransport(sent)
    for part in (CONTINUE, HEAD, b"one", b"two", HEAD, b""):
        transport.write(part)
    assert sent.packets == [CONTINUE, HEAD + b"one", b"two", HEAD]


def test_a_head_without_a_body_is_sent() -> None:
    sent = RecordingTransport()
    transport = ResponseTransport(sent)
    transport.write(HEAD)
    transport.flush()
    transport.flush()
    transport.write(HEAD)
    transport.close()
    assert sent.packets == [HEAD, HEAD, b"END"]
