"""Make HTTP calls over new connections, with control of what is sent, how quickly, and from which loopback address."""

import asyncio
from collections.abc import Iterable, Mapping
from contextlib import suppress

_WRITE_BYTES = 256 * 1024


def head(method: str, path: str, key: str, length: int | None, headers: Mapping[str, str] | None = None) -> bytes:
    """The head of a request; `length` None leaves out the Content-Length."""
    lines = {"host": "127.0.0.1", "connection": "close", "content-type": "application/json", **(headers or {})}
    if key:
        lines["authorization"] = f"Bearer {key}"
    if length is not None and (length or method == "POST"):
        lines["content-length"] = str(length)
    text = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    return f"{method} {path} HTTP/1.1\r\n{text}\r\n".encode()


async def call(
    port: int,
    method: str,
    path: str,
    key: str,
    body: bytes | Iterable[bytes] = b"",
    *,
    headers: Mapping[str, str] | None = None,
    address: str = "127.0.0.1",
) -> tuple[int, bytes]:
    """Make a call and return the status and the body of its response.

    A body of several pieces is sent piece by piece. A response that comes before the whole body was sent counts; a
    connection that is closed without a response raises EOFError.
    """
    pieces = _pieces(body) if isinstance(body, bytes) else list(body)
    reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(address, 0))
    try:
        with suppress(ConnectionError):  # refused in the middle: the response tells why
            writer.write(head(method, path, key, sum(map(len, pieces)), headers))
            for piece in pieces:
                if writer.is_closing():
                    break
                writer.write(piece)
                await writer.drain()
        received = await reader.read()
    finally:
        writer.close()
    if not received:
        raise EOFError("the connection was closed without a response")
    first, _, rest = received.partition(b"\r\n\r\n")
    return int(first[9:12]), rest


def _pieces(body: bytes) -> list[bytes]:
    return [body[start : start + _WRITE_BYTES] for start in range(0, len(body), _WRITE_BYTES)]
