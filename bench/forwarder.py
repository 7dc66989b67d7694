"""A gateway that only forwards, made of Penstock's HTTP server and client, to measure what these two cost.

python -m bench.forwarder PORT URL
"""

import sys
import tempfile
from pathlib import Path
from typing import Any

import msgspec
import uvloop

from penstock.http_server.server import serve
from penstock.net.client import HttpClient
from penstock.providers.spec import HttpRequest
from penstock.settings import Settings


class Forwarder:
    """Forwards a body with another model name, and the response to it."""

    draining = False

    def __init__(self, client: HttpClient, url: str) -> None:
        self._client = client
        self._url = url

    def interrupt(self) -> None:
        """Calls may take until the server closes their connections."""

    def close(self) -> None:
        """Nothing is left to do after the last call."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        body = msgspec.json.decode((await receive())["body"])
        headers = {"authorization": "Bearer x", "content-type": "application/json"}
        request = HttpRequest("POST", self._url, headers, msgspec.json.encode({**body, "model": "gpt-x"}))
        if body.get("stream"):
            await self._forward_stream(request, send)
            return
        response = await self._client.send(request, timeout_seconds=60)
        length = (b"content-length", b"%d" % len(response.body))
        await send({"type": "http.response.start", "status": response.status, "headers": [length]})
        await send({"type": "http.response.body", "body": response.body})

    async def _forward_stream(self, request: HttpRequest, send: Any) -> None:
        async with self._client.stream(request, read_timeout_seconds=60, timeout_seconds=60) as response:
            await send({"type": "http.response.start", "status": response.status, "headers": []})
            async for chunk in response:
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body", "body": b""})


async def main(port: int, url: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        await serve(Forwarder(HttpClient(), url), Settings(data=Path(folder), port=port), lambda: None)


if __name__ == "__main__":
    uvloop.run(main(int(sys.argv[1]), sys.argv[2]))
