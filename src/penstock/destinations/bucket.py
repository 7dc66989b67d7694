"""Write files into a bucket of an organization by the protocol of S3, within the egress rules."""

import hashlib
import os
import re
from base64 import b64encode
from collections.abc import AsyncGenerator, Callable
from http import HTTPStatus
from typing import NamedTuple

from penstock.clock import Clock
from penstock.destinations.places import Place
from penstock.destinations.signature import EMPTY_SHA256, Keys, signed_headers
from penstock.errors import NotFound
from penstock.long_bodies.long_body import StreamedBody
from penstock.net.checked_urls import EgressRules
from penstock.net.client import HttpClient
from penstock.net.errors import UNREACHABLE, MaybeSent, NotSent
from penstock.providers.exchange import HttpRequest, Reply
from penstock.values import OrgId, new_id

_SECONDS = 20.0
_MOST_SECONDS = 3600.0
_BYTES_A_SECOND = 200_000  # as slow a bucket may take a file
_CODE = re.compile(rb"<Code>([A-Za-z0-9]{1,64})</Code>")
_PROBE = ".penstock-check-"
_UNCONDITIONAL = (HTTPStatus.NOT_IMPLEMENTED, HTTPStatus.BAD_REQUEST)

ReadChunks = Callable[[], AsyncGenerator[bytes]]


class BucketFailed(Exception):
    """A file is not in the bucket. The message says why, and can be shown; it may be another one later."""

    def __init__(self, message: str, *, may_pass: bool = True) -> None:
        super().__init__(message)
        self.may_pass = may_pass


class File(NamedTuple):
    """A file that is to be written."""

    read: ReadChunks
    size_bytes: int
    sha256: bytes
    content_type: str


class Probe(NamedTuple):
    """What a bucket allows: a file was written; it may also have been read and deleted."""

    can_read: bool
    can_delete: bool


class BucketClient:
    """Sends requests to buckets. A store is told the SHA-256 of each file, and refuses one that arrives damaged."""

    def __init__(self, client: HttpClient, egress: EgressRules, clock: Clock) -> None:
        self._client = client
        self._egress = egress
        self._clock = clock

    async def put(self, place: Place, path: str, file: File, keys: Keys, org_id: OrgId) -> str | None:
        """Write a file, unless it is there already; return its ETag if the store tells it. Raises BucketFailed."""
        reply = await self._put(place, path, file, keys, org_id, {"if-none-match": "*"})
        if reply.status in _UNCONDITIONAL and _code(reply) in ("NotImplemented", "InvalidArgument"):
            reply = await self._put(place, path, file, keys, org_id, {})
        if reply.status == HTTPStatus.PRECONDITION_FAILED:
            return await self._same_file(place, path, file, keys, org_id)
        _check(reply)
        _compare(reply, file)
        return _etag(reply)

    async def _put(
        self, place: Place, path: str, file: File, keys: Keys, org_id: OrgId, headers: dict[str, str]
    ) -> Reply:
        headers = {
            **headers,
            "content-type": file.content_type,
            "x-amz-checksum-sha256": b64encode(file.sha256).decode(),
        }
        seconds = min(_MOST_SECONDS, _SECONDS + file.size_bytes / _BYTES_A_SECOND)
        body = StreamedBody(file.read(), file.size_bytes)
        return await self._send("PUT", place, path, keys, org_id, headers, body, file.sha256.hex(), seconds)

    async def _same_file(self, place: Place, path: str, file: File, keys: Keys, org_id: OrgId) -> str | None:
        """The ETag of a file that an earlier try has written. Raises BucketFailed if it is another file."""
        reply = await self._send("HEAD", place, path, keys, org_id, {"x-amz-checksum-mode": "ENABLED"})
        if reply.status == HTTPStatus.FORBIDDEN:  # the keys may only write; the path has the id of the request in it
            return None
        _check(reply)
        _compare(reply, file)
        if reply.headers.get("content-length", str(file.size_bytes)) != str(file.size_bytes):
            raise BucketFailed("the bucket has another file at this path", may_pass=False)
        return _etag(reply)

    async def probe(self, place: Place, keys: Keys, org_id: OrgId) -> Probe:
        """Write a small file, read it and delete it. Raises BucketFailed if it cannot be written or comes back
        changed.
        """
        content = os.urandom(32)
        path = f"{_PROBE}{new_id('chk', self._clock.now_ms())}"

        async def read() -> AsyncGenerator[bytes]:
            yield content

        file = File(read, len(content), hashlib.sha256(content).digest(), "application/octet-stream")
        await self.put(place, path, file, keys, org_id)
        found = await self._send("GET", place, path, keys, org_id, {})
        deleted = await self._send("DELETE", place, path, keys, org_id, {})
        if found.status == HTTPStatus.OK and bytes(found.body) != content:
            raise BucketFailed("the bucket returned another file than it was sent")
        return Probe(found.status == HTTPStatus.OK, 200 <= deleted.status < 300)

    async def _send(
        self,
        method: str,
        place: Place,
        path: str,
        keys: Keys,
        org_id: OrgId,
        headers: dict[str, str],
        body: bytes | StreamedBody = b"",
        sha256: str = EMPTY_SHA256,
        seconds: float = _SECONDS,
    ) -> Reply:
        url = place.request_url(path)
        signed = signed_headers(method, url, headers, sha256, keys, place.region, self._clock.now_ms())
        try:
            return await self._client.send_guarded(
                HttpRequest(method, url, signed, body), timeout_seconds=seconds, egress=self._egress, share=org_id
            )
        except NotFound:
            raise BucketFailed("the file is not in the gateway's storage any more", may_pass=False) from None
        except (NotSent, MaybeSent, TimeoutError):
            # One message for all: others would tell what there is in the gateway's network.
            raise BucketFailed(UNREACHABLE) from None


def _check(reply: Reply) -> None:
    if not 200 <= reply.status < 300:
        code = _code(reply)
        raise BucketFailed(f"the bucket answered with status {reply.status}{f' ({code})' if code else ''}")


def _compare(reply: Reply, file: File) -> None:
    """Compare the SHA-256 that the store has computed, if it tells it."""
    found = reply.headers.get("x-amz-checksum-sha256")
    if found is not None and found != b64encode(file.sha256).decode():
        raise BucketFailed("the bucket has a file with another SHA-256")


def _code(reply: Reply) -> str:
    match = _CODE.search(bytes(reply.body))
    return match[1].decode() if match else ""


def _etag(reply: Reply) -> str | None:
    etag = reply.headers.get("etag", "").strip('"')
    return etag if etag and etag.isprintable() and len(etag) <= 128 else None
