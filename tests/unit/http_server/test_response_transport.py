"""The head of a response is sent together with the first bytes of its body, and is not lost without one."""

from penstock.http_server.response_transport import ResponseTransport
from tests.unit.http_server.recording_transport import RecordingTransport

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
