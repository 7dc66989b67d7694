"""A chat provider for the benchmarks, which responds to every request at once, whole or streamed.

python -m bench.chat_provider PORT [CHUNKS PAUSE_SECONDS]
"""

import asyncio
import sys

import uvloop

_HEAD = b'{"id":"chatcmpl-1","object":"chat.completion","created":1794709785,"model":"gpt-x",'
_BODY = (
    _HEAD + b'"choices":[{"index":0,"message":{"role":"assistant","content":"Hello! How can I help you today?"},'
    b'"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":9,"total_tokens":18}}'
)
_RESPONSE = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(_BODY) + _BODY
_STREAM_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


def _event(delta: bytes, finish: bytes = b"null") -> bytes:
    data = (
        b'data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1794709785,"model":"gpt-x",'
        b'"choices":[{"index":0,"delta":' + delta + b',"finish_reason":' + finish + b"}]}\n\n"
    )
    return b"%x\r\n%s\r\n" % (len(data), data)


class Provider(asyncio.Protocol):
    """One connection: reads requests by their Content-Length and responds to each."""

    transport: asyncio.Transport
    chunks = 10
    pause_seconds = 0.02

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport  # type: ignore[assignment]
        self.received = b""

    def data_received(self, data: bytes) -> None:
        self.received += data
        while (end := self.received.find(b"\r\n\r\n")) >= 0:
            head = self.received[:end].lower()
            position = head.find(b"content-length:")
            length = int(head[position + 15 :].split(b"\r\n")[0]) if position >= 0 else 0
            if len(self.received) < end + 4 + length:
                return
            body = self.received[end + 4 : end + 4 + length]
            self.received = self.received[end + 4 + length :]
            if b'"stream":true' in body.replace(b" ", b""):
                asyncio.get_running_loop().create_task(self.stream())
            else:
                self.transport.write(_RESPONSE)

    async def stream(self) -> None:
        self.transport.write(_STREAM_HEAD + _event(b'{"role":"assistant","content":""}'))
        for _ in range(self.chunks):
            await asyncio.sleep(self.pause_seconds)
            self.transport.write(_event(b'{"content":"hello "}'))
        self.transport.write(_event(b"{}", b'"stop"') + b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n")


async def main(port: int) -> None:
    server = await asyncio.get_running_loop().create_server(Provider, "127.0.0.1", port, backlog=4096)
    await server.serve_forever()


if __name__ == "__main__":
    if len(sys.argv) > 2:
        Provider.chunks = int(sys.argv[2])
        Provider.pause_seconds = float(sys.argv[3])
    uvloop.run(main(int(sys.argv[1])))
