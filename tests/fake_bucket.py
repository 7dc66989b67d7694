"""A bucket in memory that speaks as much of S3 as deliveries need, and can be told to fail."""

import hashlib
from base64 import b64decode, b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.gateway import RunningGateway
from tests.tcp_server import Connection, TcpServer, serve

KEYS = {"access_key_id": "AKIACANARYCANARY0000", "secret_access_key": "canary-of-the-secret"}


@dataclass(slots=True)
class FakeBucket:
    """What is in it, and what happens next."""

    files: dict[str, bytes] = field(default_factory=dict)
    written: list[str] = field(default_factory=list)  # the paths of all files that were sent, also again
    refusals: list[int] = field(default_factory=list)  # statuses for the next files; the last one is repeated
    server: TcpServer | None = None

    async def answer(self, connection: Connection) -> None:
        while True:
            head, _, body = (await connection.read_request()).partition(b"\r\n\r\n")
            start, *lines = head.decode().split("\r\n")
            method, path, _ = start.split()
            headers = dict(line.lower().split(": ", 1) for line in lines)
            headers["x-amz-checksum-sha256"] = next(
                (line.split(": ")[1] for line in lines if line.lower().startswith("x-amz-checksum-sha256")), ""
            )
            await connection.send(self._response(method, path, headers, body))

    def _response(self, method: str, path: str, headers: dict[str, str], body: bytes) -> bytes:
        if method == "PUT":
            return self._put(path, headers, body)
        data = self.files.get(path)
        if method == "DELETE":
            self.files.pop(path, None)
            return _response(204)
        if data is None:
            return _response(404)
        return _response(200, b"" if method == "HEAD" else data, length=len(data), etag=_etag(data), checksum=data)

    def _put(self, path: str, headers: dict[str, str], body: bytes) -> bytes:
        self.written.append(path)
        if self.refusals:
            status = self.refusals.pop(0) if len(self.refusals) > 1 else self.refusals[0]
            if status != 200:
                return _response(status, b"<Error><Code>Refused</Code></Error>")
        if b64decode(headers["x-amz-checksum-sha256"]) != hashlib.sha256(body).digest():
            return _response(400, b"<Error><Code>BadDigest</Code></Error>")
        if "if-none-match" in headers and path in self.files:
            return _response(412, b"<Error><Code>PreconditionFailed</Code></Error>")
        self.files[path] = body
        return _response(200, etag=_etag(body), checksum=body)

    async def add_to(self, running: RunningGateway, **options: Any) -> str:
        """Make it a destination of the caller's organization; return the id."""
        assert self.server is not None
        fields = {"url": "s3://media/out", "endpoint": self.server.url, **KEYS, **options}
        added = await running.gateway.destinations.add(running.caller.org_id, fields)
        self.written.clear()
        return str(added["id"])


def _etag(data: bytes) -> str:
    return hashlib.md5(data, usedforsecurity=False).hexdigest()


def _response(
    status: int, body: bytes = b"", *, length: int | None = None, etag: str = "", checksum: bytes = b""
) -> bytes:
    lines = [f"HTTP/1.1 {status} X", f"content-length: {len(body) if length is None else length}"]
    if etag:
        lines += [f'etag: "{etag}"', f"x-amz-checksum-sha256: {b64encode(hashlib.sha256(checksum).digest()).decode()}"]
    if status == 204:
        lines.pop(1)
    return "\r\n".join([*lines, "", ""]).encode() + body


@asynccontextmanager
async def fake_bucket() -> AsyncIterator[FakeBucket]:
    bucket = FakeBucket()
    async with serve(bucket.answer) as server:
        bucket.server = server
        yield bucket
