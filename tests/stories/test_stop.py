"""SIGTERM while calls are under way: each gets an error in the envelope, and its money is available again."""

import json
import socket
from contextlib import ExitStack, closing
from typing import Any

from tests.fake_providers import faults
from tests.fake_providers.scripted import ScriptedProvider
from tests.fake_providers.server import Act, Endpoint
from tests.stories.processes import SECONDS, Installation, Serving, until

CHAT = {"model": "lab/chat", "messages": [{"role": "user", "content": "one two three"}], "max_tokens": 20}
IMAGE = {"model": "image-1", "prompt": "a pear", "size": "64x64"}


def send(served: Serving, path: str, body: Any) -> socket.socket:
    """Send a call on a connection of its own."""
    data = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nhost: test\r\nauthorization: Bearer {served.key}\r\ncontent-length: {len(data)}"
    connection = socket.create_connection(("127.0.0.1", int(served.url.rsplit(":", 1)[1])), timeout=SECONDS)
    connection.sendall(head.encode() + b"\r\n\r\n" + data)
    return connection


def received(connection: socket.socket, until_bytes: bytes = b"") -> bytes:
    """Return what arrives up to these bytes, or up to the end."""
    data = b""
    while chunk := connection.recv(65536):
        data += chunk
        if until_bytes and until_bytes in data:
            break
    return data


def test_running_calls_are_told_that_the_gateway_stops_and_cost_nothing(
    story: Installation, lab: ScriptedProvider
) -> None:
    chats = lab.chats
    with story.serving(PENSTOCK_DRAIN_SECONDS="0.3") as served:
        credit = served.call("GET", "/v1/balance").json["available"]["amount"]
        with ExitStack() as connections:

            def start(endpoint: Endpoint, fault: Act, path: str, body: Any) -> socket.socket:
                """Send a call, and wait until the provider has received it."""
                endpoint.next(fault)
                count = len(endpoint)
                connection = connections.enter_context(closing(send(served, path, body)))
                until(lambda: len(endpoint) > count)
                return connection

            stream = {**CHAT, "stream": True}
            streamed = start(chats, faults.stalled_stream(), "/compat/v1/chat/completions", stream)
            start(chats, faults.long_stream(), "/compat/v1/chat/completions", stream)  # of which nothing is read
            plain = start(chats, faults.stalled, "/compat/v1/chat/completions", CHAT)
            image = start(lab.images, faults.stalled, "/compat/v1/images/generations", IMAGE)
            received(streamed, b"data: ")
            assert served.stop() == 0
            stream_end = received(streamed)
            assert b'data: {"error":{"message":"The gateway was stopped' in stream_end
            assert b'"code":"UNAVAILABLE"' in stream_end
            assert stream_end.endswith(b"0\r\n\r\n"), "the stream has an end"
            assert b"[DONE]" not in stream_end
            response = received(plain)
            assert response.startswith(b"HTTP/1.1 503 ")
            assert b"x-should-retry: false" in response
            assert b'"code":"UNAVAILABLE"' in response
            response = received(image)
            assert response.startswith(b"HTTP/1.1 504 ")
            assert b"its result will be at /compat/v1/images/req_" in response
    chats.always(faults.ok)
    with story.serving() as served:

        def all_ended() -> bool:
            found = served.call("GET", "/v1/requests").json["data"]
            return all(request["status"] not in ("pending", "processing") for request in found)

        until(all_ended)
        requests = served.call("GET", "/v1/requests").json["data"]
        assert [request["cost"] for request in requests] == [0] * 4
        chat_ends = [(request["status"], request["error_code"]) for request in requests if request["modality"] is None]
        assert chat_ends == [("cancelled", "UNAVAILABLE")] * 3
        assert served.call("GET", "/v1/balance").json["available"]["amount"] == credit
    audit = story.penstock("audit")
    assert audit.status == 0, audit.err
