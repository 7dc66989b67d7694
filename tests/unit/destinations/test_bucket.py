"""Files in buckets: a real server of S3, and servers that refuse, lie or may not be reached."""

import hashlib
from base64 import b64encode
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager

import pytest

from penstock.clock import Clock
from penstock.destinations.bucket import BucketClient, BucketFailed, File
from penstock.destinations.places import Place, read_place
from penstock.destinations.signature import Keys
from penstock.media.bucket import Bucket
from penstock.net.checked_urls import NO_EXCEPTIONS, EgressRules
from penstock.net.errors import UNREACHABLE
from penstock.values import OrgId
from tests.http_client import LOOPBACK, FakeResolver, open_client, responding
from tests.s3_server import BUCKET, KEY_ID, SECRET, S3Server
from tests.tcp_server import Connection, Script, serve

ORG = OrgId("org_1")
KEYS = Keys(KEY_ID, SECRET)
CONTENT = b"0123456789" * 100_000


def file(content: bytes = CONTENT, *, size_bytes: int | None = None) -> File:
    async def read() -> AsyncGenerator[bytes]:
        for start in range(0, len(content), 100_000):
            yield content[start : start + 100_000]

    sha256 = hashlib.sha256(content).digest()
    return File(read, len(content) if size_bytes is None else size_bytes, sha256, "image/png")


@asynccontextmanager
async def buckets(egress: EgressRules = LOOPBACK) -> AsyncIterator[BucketClient]:
    async with open_client() as client:
        yield BucketClient(client, egress, Clock())


def place_on(s3: S3Server) -> Place:
    return read_place(s3.new_url(), "us-east-1", s3.endpoint, LOOPBACK)


async def put(script: Script, size_bytes: int | None = None) -> tuple[str | None, list[bytes]]:
    """Put a file into a bucket that does what the script says; return the ETag and the requests."""
    async with serve(script) as server, buckets() as client:
        place = Place("bucket", "folder", "us-east-1", server.url)
        return await client.put(place, "a/1.png", file(size_bytes=size_bytes), KEYS, ORG), server.requests


# ----------------------------------------------------------------------------------------------------- a real server


async def test_a_file_is_written_once_however_often_it_is_put(s3: S3Server) -> None:
    place = place_on(s3)
    async with buckets() as client:
        etags = [await client.put(place, "a=b/1.png", file(), KEYS, ORG) for _ in range(2)]
    assert etags[0] == etags[1] is not None
    folder = Bucket(f"s3://{BUCKET}/{place.prefix}", s3.options)
    assert [stored.key for stored in await folder.list_files()] == ["a=b/1.png"]
    assert b"".join([part async for part in folder.read("a=b/1.png", 0, len(CONTENT))]) == CONTENT


async def test_a_bucket_is_probed_and_left_as_it_was(s3: S3Server) -> None:
    place = place_on(s3)
    async with buckets() as client:
        assert await client.probe(place, KEYS, ORG) == (True, True)
    assert await Bucket(f"s3://{BUCKET}/{place.prefix}", s3.options).list_files() == []


async def test_wrong_keys_and_missing_buckets_are_named(s3: S3Server) -> None:
    place = place_on(s3)
    async with buckets() as client:
        with pytest.raises(BucketFailed, match="403"):
            await client.put(place, "1.png", file(), Keys(KEY_ID, "wrong"), ORG)
        with pytest.raises(BucketFailed, match=r"404 \(NoSuchBucket\)"):
            await client.put(Place("missing", "", "us-east-1", s3.endpoint), "1.png", file(), KEYS, ORG)


# --------------------------------------------------------------------------------------------------- other servers


async def test_the_store_is_told_the_sha256_and_not_to_replace_a_file() -> None:
    etag, [request] = await put(responding(b"", 'etag: "abc"'))
    assert etag == "abc"
    head, _, body = request.partition(b"\r\n\r\n")
    assert body == CONTENT
    checksum = b64encode(hashlib.sha256(CONTENT).digest())
    assert {b"if-none-match: *", b"x-amz-checksum-sha256: " + checksum} <= set(head.split(b"\r\n"))
    assert SECRET.encode() not in request


@pytest.mark.parametrize("status", [400, 403, 404, 409, 429, 500, 503])
async def test_refusals_may_pass_and_show_only_their_code(status: int) -> None:
    body = b"<Error><Code>SlowDown</Code><Message>of the server</Message></Error>"
    with pytest.raises(BucketFailed) as failure:
        await put(responding(body, status=status))
    assert failure.value.may_pass
    assert str(failure.value) == f"the bucket answered with status {status} (SlowDown)"


async def test_redirects_are_not_followed() -> None:
    with pytest.raises(BucketFailed, match="status 307"):
        await put(responding(b"", "location: http://127.0.0.1:1/", status=307))


async def test_a_store_that_has_computed_another_sha256_is_not_believed() -> None:
    wrong = b64encode(hashlib.sha256(b"other").digest()).decode()
    with pytest.raises(BucketFailed, match="another SHA-256") as failure:
        await put(responding(b"", f"x-amz-checksum-sha256: {wrong}"))
    assert failure.value.may_pass


def taken(*headers: str, status: int = 200) -> Script:
    """A bucket that has a file at this path already; what it says of it."""

    async def script(connection: Connection) -> None:
        while True:
            if (await connection.read_request()).startswith(b"PUT"):
                await connection.respond(b"<Code>PreconditionFailed</Code>", status=412)
            else:
                lines = "".join(f"{line}\r\n" for line in headers)
                await connection.send(f"HTTP/1.1 {status} X\r\n{lines}\r\n".encode())

    return script


async def test_a_file_that_is_there_already_is_compared() -> None:
    same = f"content-length: {len(CONTENT)}"
    assert (await put(taken(same, 'etag: "abc"')))[0] == "abc"
    assert (await put(taken("content-length: 0", status=403)))[0] is None, "the keys may only write"
    with pytest.raises(BucketFailed) as failure:
        await put(taken("content-length: 17"))
    assert not failure.value.may_pass
    with pytest.raises(BucketFailed, match="SHA-256"):
        await put(taken(same, "x-amz-checksum-sha256: b3RoZXI="))


async def test_a_store_without_conditions_is_asked_without() -> None:
    async def script(connection: Connection) -> None:
        while True:
            has_condition = b"if-none-match" in await connection.read_request()
            await connection.respond(
                b"<Code>NotImplemented</Code>" if has_condition else b"", status=501 if has_condition else 200
            )

    assert len((await put(script))[1]) == 2


@pytest.mark.parametrize("size_bytes", [len(CONTENT) - 1, len(CONTENT) + 1])
async def test_a_file_of_another_length_is_not_taken_for_complete(size_bytes: int) -> None:
    with pytest.raises(BucketFailed, match=UNREACHABLE):
        await put(responding(), size_bytes=size_bytes)


async def test_buckets_in_the_gateways_network_cannot_be_told_from_silence() -> None:
    """An address and a name that lead inside, and a closed port, have one message."""
    messages = set()
    async with serve(responding()) as server, open_client(resolver=FakeResolver(["127.0.0.1"])) as client:
        for endpoint, egress in (
            (server.url, NO_EXCEPTIONS),
            ("https://bucket.example.com:8443", NO_EXCEPTIONS),
            ("http://127.0.0.1:1", LOOPBACK),
        ):
            with pytest.raises(BucketFailed) as failure:
                await BucketClient(client, egress, Clock()).probe(Place("b", "", "us-east-1", endpoint), KEYS, ORG)
            messages.add(str(failure.value))
        assert messages == {UNREACHABLE}
        assert server.requests == []
