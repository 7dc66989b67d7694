"""Penstock's own HTTP server and sender with nothing in between: what a gateway costs before its work begins.

python -m bench.forwarder PORT URL
"""

import sys
import tempfile
from pathlib import Path
from typing import Any

import msgspec
import uvloop

from penstock.api.server import serve
from penstock.net.client import HttpClient
from penstock.providers.spec import HttpRequest
from penstock.settings import Settings


class Forwarder:
    """Sends a body on under another model's name, and the answer back."""

    draining = False

    def __init__(self, wire: HttpClient, url: str) -> None:
        self._wire, self._url = wire, url

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        body = msgspec.json.decode((await receive())["body"])
        headers = {"authorization": "Bearer x", "content-type": "application/json"}
        outgoing = HttpRequest("POST", self._url, headers, msgspec.json.encode({**body, "model": "gpt-x"}))
        if body.get("stream"):
            await self._pass_on(outgoing, send)
            return
        reply = await self._wire.send(outgoing, timeout_seconds=60)
        length = (b"content-length", b"%d" % len(reply.body))
        await send({"type": "http.response.start", "status": reply.status, "headers": [length]})
        await send({"type": "http.response.body", "body": reply.body})

    async def _pass_on(self, outgoing: HttpRequest, send: Any) -> None:
        async with self._wire.stream(outgoing, read_timeout_seconds=60, timeout_seconds=60) as reply:
            await send({"type": "http.response.start", "status": reply.status, "headers": []})
            async for chunk in reply:
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body", "body": b""})


async def main(port: int, url: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        await serve(Forwarder(HttpClient(), url), Settings(data=Path(folder), port=port), lambda: None)


if __name__ == "__main__":
    uvloop.run(main(int(sys.argv[1]), sys.argv[2]))
