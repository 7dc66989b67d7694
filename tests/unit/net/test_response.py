"""Response headers and bodies are read within limits, compressed or not."""

import asyncio
import gzip
import random
import zlib
from typing import Self

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.net.errors import MaybeSent, ResponseTooLarge
from penstock.net.response import DECOMPRESSED_BYTES, BodyDecoder, Headers, OpenResponse
from tests.http_client import client_and_server, post_request
from tests.tcp_server import Connection, Script, chunk, response_head

MIB = 2**20

# --------------------------------------------------------------------------------------------------------- compression


def respond_once(body: bytes, *headers: str) -> Script:
    async def script(connection: Connection) -> None:
        await connection.read_request()
        await connection.respond(body, *headers)

    return script


async def send_and_read(body: bytes, *headers: str, max_bytes: int = 64 * MIB) -> bytes | bytearray:
    async with client_and_server(respond_once(body, *headers)) as (client, server):
        return (await client.send(post_request(server), timeout_seconds=20, max_bytes=max_bytes)).body


@pytest.mark.parametrize("encoding", ["gzip", "GZIP", "x-gzip", "deflate"])
@pytest.mark.parametrize("size", [0, 10, 1_000_000])
async def test_a_compressed_response_is_decompressed(encoding: str, size: int) -> None:
    body = random.randbytes(size // 2) + bytes(size - size // 2)
    packed = zlib.compress(body) if encoding == "deflate" else gzip.compress(body)
    assert await send_and_read(packed, f"content-encoding: {encoding}") == body


async def test_the_encoding_identity_means_uncompressed() -> None:
    assert await send_and_read(b"plain", "content-encoding: Identity") == b"plain"


@pytest.mark.parametrize("encoding", ["br", "zstd", "gzip, br", "nonsense"])
async def test_unsupported_encodings_are_errors(encoding: str) -> None:
    with pytest.raises(MaybeSent, match="compressed"):
        await send_and_read(b"whatever", f"content-encoding: {encoding}")


@pytest.mark.parametrize(
    "body",
    [
        b"not compressed at all",
        gzip.compress(b"x" * 100_000)[:-9],
        gzip.compress(random.randbytes(200_000))[:150_000],
        gzip.compress(b"x" * 1000)[:-4] + b"\0\0\0\0",
        gzip.compress(b"x" * 1000) + b"trailing",
    ],
    ids=["plain", "no end", "half", "checksum", "trailing bytes"],
)
async def test_damaged_compressed_data_is_an_error(body: bytes) -> None:
    with pytest.raises(MaybeSent, match="compressed"):
        await send_and_read(body, "content-encoding: gzip")


async def test_a_decompression_bomb_stops_at_the_limit() -> None:
    bomb = gzip.compress(bytes(16 * MIB)) * 64  # 64 members, 1 GiB in all
    assert len(bomb) < 2 * MIB
    async with client_and_server(respond_once(bomb, "content-encoding: gzip")) as (client, server):
        before = psutil.Process().memory_info().rss
        with pytest.raises(ResponseTooLarge):
            await client.send(post_request(server), timeout_seconds=20, max_bytes=16 * MIB)
        assert psutil.Process().memory_info().rss - before < 64 * MIB


class OnePiece(OpenResponse):
    """A response with the whole body in one chunk."""

    def __init__(self, body: bytes, headers: Headers) -> None:
        self._begin(200, headers)
        self._chunks = [body]

    async def __aenter__(self) -> Self:
        return self

    async def aclose(self) -> None:
        pass

    async def _read_chunk(self) -> bytes | None:
        return self._chunks.pop() if self._chunks else None


async def test_other_tasks_run_while_a_small_piece_becomes_a_large_one() -> None:
    turns = 0

    async def count_turns() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    counting = asyncio.create_task(count_turns())
    response = OnePiece(gzip.compress(bytes(20 * MIB)), Headers({"content-encoding": "gzip"}))
    assert len(await response.read(32 * MIB)) == 20 * MIB
    counting.cancel()
    await asyncio.gather(counting, return_exceptions=True)
    assert turns >= 20, "one for each megabyte"


@pytest.mark.parametrize("step", [1000, DECOMPRESSED_BYTES])
def test_a_body_of_empty_members_stops_after_a_few_of_them(step: int) -> None:
    empty = gzip.compress(b"")
    members = empty * 100_000
    decoder = BodyDecoder("gzip", "", MIB)
    pieces = (members[start : start + step] for start in range(0, len(members), step))
    with pytest.raises(MaybeSent, match="too many members"):
        [list(decoder.feed(piece)) for piece in pieces]
    assert decoder._members == 17
    decoder = BodyDecoder("gzip", "", MIB)
    list(decoder.feed(empty * 16))
    decoder.finish()


def test_the_limit_counts_compressed_bytes_too() -> None:
    """A long header is no contents: without this it could go on for ever."""
    decoder = BodyDecoder("gzip", "", 1000)
    assert list(decoder.feed(b"\x1f\x8b\x08\x08" + bytes(6))) == [b""]
    name = b"n" * 1000  # of a file; it would end with a zero
    with pytest.raises(ResponseTooLarge):
        [list(decoder.feed(name)) for _ in range(100)]


async def test_the_limit_counts_decompressed_bytes() -> None:
    assert await send_and_read(gzip.compress(b"x" * 1000), "content-encoding: gzip", max_bytes=1000) == b"x" * 1000
    with pytest.raises(ResponseTooLarge):
        await send_and_read(gzip.compress(b"x" * 1001), "content-encoding: gzip", max_bytes=1000)


async def test_a_chunked_response_can_be_compressed() -> None:
    body = random.randbytes(100_000)
    packed = gzip.compress(body)

    async def script(connection: Connection) -> None:
        await connection.read_request()
        await connection.send(response_head("transfer-encoding: chunked", "content-encoding: gzip"))
        for start in range(0, len(packed), 999):
            await connection.send(chunk(packed[start : start + 999]))
        await connection.send(chunk(b""))

    async with client_and_server(script) as (client, server):
        assert (await client.send(post_request(server), timeout_seconds=5)).body == body


@given(
    st.lists(st.binary(max_size=300).map(lambda data: data * 700), max_size=3),
    st.integers(1, 50_000),
)
def test_the_result_does_not_depend_on_how_the_data_is_split(members: list[bytes], step: int) -> None:
    packed = b"".join(map(gzip.compress, members or [b""]))
    decoder = BodyDecoder("gzip", "", 10 * MIB)
    pieces = [out for start in range(0, len(packed), step) for out in decoder.feed(packed[start : start + step])]
    decoder.finish()
    assert b"".join(pieces) == b"".join(members)
    assert max(map(len, pieces), default=0) <= DECOMPRESSED_BYTES


def test_a_content_length_over_the_limit_is_an_error_at_once() -> None:
    with pytest.raises(ResponseTooLarge):
        BodyDecoder("", "1001", 1000)
    BodyDecoder("", "1000", 1000)
    BodyDecoder("", "nonsense", 1000)


# -------------------------------------------------------------------------------------------------------------- headers


async def test_header_names_are_lower_case_and_the_first_value_counts() -> None:
    async with client_and_server(respond_once(b"ok", "X-Odd: caf\xe9", "X-Even: a", "x-even: b")) as (client, server):
        headers = (await client.send(post_request(server), timeout_seconds=5)).headers
    assert headers == {"content-length": "2", "x-even": "a"}
    assert headers.get("x-odd") is None
    assert ("x-even" in headers, len(headers)) == (True, 2)
    assert repr(headers) == "Headers(['content-length', 'x-even'])"


@pytest.mark.parametrize(
    ("found", "encoding"),
    [
        ({}, ""),
        ({"content-encoding": "identity"}, ""),
        ({"content-encoding": "Br"}, "br"),
        ({"content-encoding": ""}, ""),
    ],
)
def test_the_encoding_is_lower_case_and_empty_for_identity(found: dict[str, str], encoding: str) -> None:
    assert Headers(found).encoding == encoding


async def test_an_encoding_that_is_not_text_is_an_error() -> None:
    with pytest.raises(MaybeSent, match="compressed"):
        await send_and_read(b"whatever", "content-encoding: gz\xefp")


async def test_other_tasks_run_between_the_pieces_of_a_stream() -> None:
    """A piece that has arrived may have thousands of events."""

    async def script(connection: Connection) -> None:
        await connection.read_request()
        await connection.send(response_head("transfer-encoding: chunked") + chunk(b":\n\n" * 60_000) + b"0\r\n\r\n")
        await connection.wait_closed()

    turns = 0

    async def count_turns() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    counting = asyncio.create_task(count_turns())
    pieces = []
    async with client_and_server(script) as (client, server):
        request = post_request(server)
        async with client.stream(request, read_timeout_seconds=60, timeout_seconds=60) as stream:
            before = turns
            async for piece in stream:
                pieces.append(piece)
            assert turns - before >= len(pieces) // 2
    counting.cancel()
    assert sum(map(len, pieces)) == 180_000
    assert max(map(len, pieces)) <= 16 * 1024
