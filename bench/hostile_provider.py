"""A provider for bench/neighbours.py: it answers normally, or as badly as the name of the model says.

    python -m bench.hostile_provider PORT

The models are in `MODELS`. `GET /files/NAME` serves what an input image or an output can be fetched from, `/hooks/NAME`
receives webhooks and answers as badly as the name says.
"""

import asyncio
import base64
import gzip
import io
import json
import random
import re
import sys
from collections.abc import Callable, Iterator
from functools import cache

import uvloop
from PIL import Image

_MIB = 2**20
_HEADER = b"HTTP/1.1 200 OK\r\ncontent-type: %b\r\n%b\r\n"
_CHUNKED = b"transfer-encoding: chunked\r\n"

# ---------------------------------------------------------------------------------------------------------------- files


@cache
def small_png() -> bytes:
    return _png(Image.new("RGB", (64, 64), "teal"))


@cache
def noisy_png(side: int = 2500) -> bytes:
    """A PNG of about 19 MB, nearly the largest that the gateway accepts: noise cannot be compressed."""
    return _png(Image.frombytes("RGB", (side, side), random.Random(7).randbytes(3 * side * side)))


@cache
def wide_png(side: int = 6300) -> bytes:
    """A PNG of a few kilobytes and forty megapixels."""
    return _png(Image.new("RGB", (side, side), "teal"))


@cache
def progressive_jpeg(side: int = 6300) -> bytes:
    """A JPEG of a few hundred kilobytes with many passes over forty megapixels."""
    file = io.BytesIO()
    Image.new("RGB", (side, side), "teal").save(file, "JPEG", progressive=True, quality=1)
    return file.getvalue()


def _png(image: Image.Image) -> bytes:
    file = io.BytesIO()
    image.save(file, "PNG", compress_level=1)
    return file.getvalue()


@cache
def bomb() -> bytes:
    """A megabyte of gzip that becomes a gigabyte."""
    return gzip.compress(bytes(_MIB), 9) * 1024


@cache
def empty_members() -> bytes:
    """Sixteen megabytes of gzip that become nothing."""
    return gzip.compress(b"", 9) * (16 * _MIB // 20)


# -------------------------------------------------------------------------------------------------------------- answers


def _whole(body: bytes, content_type: bytes = b"application/json", more: bytes = b"") -> Iterator[bytes]:
    yield _HEADER % (content_type, b"content-length: %d\r\n" % len(body) + more)
    yield body


def _crumbs(content_type: bytes = b"application/json", size: int = 24_000_000) -> Iterator[bytes]:
    """A body in chunks of one byte."""
    yield _HEADER % (content_type, _CHUNKED)
    for _ in range(size // 10_000):
        yield b"1\r\n \r\n" * 10_000
    yield b"0\r\n\r\n"


def _image(data: bytes) -> bytes:
    return b'{"created":1794709785,"data":[{"b64_json":"%b"}]}' % base64.b64encode(data)


def _image_at(name: str) -> bytes:
    url = f"http://127.0.0.1:{_port()}/files/{name}"
    return json.dumps({"created": 1794709785, "data": [{"url": url}]}).encode()


@cache
def _values() -> bytes:
    return b'{"data":[' + b"0," * (15 * _MIB) + b"0]}"


@cache
def _noisy_image() -> bytes:
    return _image(noisy_png())


@cache
def _large_chat() -> bytes:
    return _chat("hello " * (5 * _MIB))


@cache
def _large_event() -> bytes:
    return _event("hello " * 150_000)


def _chat(text: str) -> bytes:
    message = {"role": "assistant", "content": text}
    usage = {"prompt_tokens": 9, "completion_tokens": 9, "total_tokens": 18}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return json.dumps({"id": "c", "object": "chat.completion", "choices": [choice], "usage": usage}).encode()


def _events(event: bytes, count: int) -> Iterator[bytes]:
    yield _HEADER % (b"text/event-stream", _CHUNKED)
    together = max(1, 65536 // len(event))
    chunk = event * together
    for _ in range(max(1, count // together)):
        yield b"%x\r\n%b\r\n" % (len(chunk), chunk)
    yield b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n"


def _event(text: str) -> bytes:
    choice = {"index": 0, "delta": {"content": text}, "finish_reason": None}
    chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
    return b"data: " + json.dumps(chunk).encode() + b"\n\n"


def _comments() -> Iterator[bytes]:
    yield _HEADER % (b"text/event-stream", _CHUNKED)
    for _ in range(200):
        yield b"1fff8\r\n" + b":\n\n" * (0x1FFF8 // 3) + b":" * (0x1FFF8 % 3) + b"\r\n"
    yield from (b"%x\r\n%b\r\n" % (len(event), event) for event in (_event("a"), b"data: [DONE]\n\n", b""))


def _unended_line() -> Iterator[bytes]:
    yield _HEADER % (b"text/event-stream", _CHUNKED)
    for _ in range(1024):
        yield b"10000\r\n" + b"a" * 65536 + b"\r\n"


Answer = Callable[[], Iterator[bytes]]
_GZIP = b"content-encoding: gzip\r\n"

# By the model's name: its task, and what is answered.
MODELS: dict[str, tuple[str, Answer]] = {
    "image-small": ("image", lambda: _whole(_image(small_png()))),
    "edit-small": ("edit", lambda: _whole(_image(small_png()))),
    "image-refused": ("image", lambda: iter([b"HTTP/1.1 400 No\r\ncontent-length: 2\r\n\r\n{}"])),
    "image-bomb": ("image", lambda: _whole(bomb(), more=_GZIP)),
    "image-members": ("image", lambda: _whole(empty_members(), more=_GZIP)),
    "image-at-bomb": ("image", lambda: _whole(_image_at("bomb"))),
    "image-at-members": ("image", lambda: _whole(_image_at("members"))),
    "image-values": ("image", lambda: _whole(_values())),
    "image-crumbs": ("image", _crumbs),
    "image-noisy": ("image", lambda: _whole(_noisy_image())),
    "image-wide": ("image", lambda: _whole(_image(wide_png()))),
    "listen-small": ("transcription", lambda: _whole(b'{"text":"hello","usage":{"type":"duration","seconds":1}}')),
    "chat-small": ("chat", lambda: _whole(_chat("hello"))),
    "chat-large": ("chat", lambda: _whole(_large_chat())),
    "chat-crumbs": ("chat", lambda: _events(_event("a"), 40_000)),
    "chat-comments": ("chat", _comments),
    "chat-large-events": ("chat", lambda: _events(_large_event(), 24)),
    "chat-unended-line": ("chat", _unended_line),
}
FILES: dict[str, Answer] = {
    "bomb": lambda: _whole(bomb(), b"image/png", _GZIP),
    "members": lambda: _whole(empty_members(), b"image/png", _GZIP),
    "crumbs": lambda: _crumbs(b"image/png"),
    "noisy": lambda: _whole(noisy_png(), b"image/png"),
    "wide": lambda: _whole(wide_png(), b"image/png"),
}


def _endless() -> Iterator[bytes]:
    yield _HEADER % (b"text/plain", _CHUNKED)
    while True:
        yield b"10000\r\n" + b"a" * 65536 + b"\r\n"


HOOKS: dict[str, Answer] = {
    "endless": _endless,
    "redirect": lambda: iter([b"HTTP/1.1 307 Go\r\nlocation: /hooks/redirect\r\ncontent-length: 0\r\n\r\n"]),
    "large-head": lambda: iter([b"HTTP/1.1 200 OK\r\n" + b"x: " + b"a" * (4 * _MIB)]),
}
_SILENT = b"/hooks/silent"
_MODEL = re.compile(rb'"model" ?: ?"([a-z-]{3,40})"|name="model"\r\n\r\n([a-z-]{3,40})\r\n')


def _answer(method: bytes, path: bytes, body: bytes) -> Iterator[bytes]:
    if path.startswith(b"/files/"):
        return FILES[path.rpartition(b"/")[2].decode()]()
    if path.startswith(b"/hooks/"):
        return HOOKS[path.rpartition(b"/")[2].decode()]()
    if b"/videos" in path:  # accepted, and never finished
        return _whole(b'{"id":"v","object":"video","status":"in_progress","progress":1}')
    # The model is at the start or at the end; nobody searches through megabytes for it.
    found = _MODEL.search(body[:4096]) or _MODEL.search(body[-4096:])
    name = (found[1] or found[2]).decode() if found else "image-small"
    return MODELS[name][1]()


async def _serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            method, path, _ = head.split(b" ", 2)
            length = re.search(rb"\r\ncontent-length: *([0-9]+)", head, re.IGNORECASE)
            body = await reader.readexactly(int(length[1])) if length else b""
            if path == _SILENT:
                await asyncio.sleep(3600)
            for piece in _answer(method, path, body):
                writer.write(piece)
                await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


def _port() -> int:
    return int(sys.argv[1])


async def main() -> None:
    # Made before anybody asks for them: the neighbour's own calls would wait for them.
    for make in (small_png, wide_png, bomb, empty_members, _values, _noisy_image, _large_chat, _large_event):
        make()
    server = await asyncio.start_server(_serve, "127.0.0.1", _port(), limit=64 * _MIB)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(main())
