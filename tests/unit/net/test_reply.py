"""Bodies read within limits, and failures sorted by what they prove."""

import errno
import gzip
import os
import random
import zlib

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyreqwest import exceptions
from pyreqwest.exceptions import PyreqwestError
from pyreqwest.http import HeaderMap

from penstock.net.reply import STEP_BYTES, Headers, Intake, NotSent, TooLarge, Unknown, outcome
from tests.http_client import SECRET, against, everything_told, post
from tests.tcp_server import Peer, Script, chunk, head

MIB = 2**20

# ------------------------------------------------------------------------------------------------------------ outcomes

QUOTED = f"error sending request for url (http://x.example/timeout timed out client error (Connect)?key={SECRET})"


def failed(kind: str, *causes: str) -> PyreqwestError:
    problem = getattr(exceptions, kind)("what it says", {"causes": [{"message": cause} for cause in causes] or None})
    assert isinstance(problem, PyreqwestError)
    return problem


@pytest.mark.parametrize(
    "problem",
    [
        failed("ConnectError", QUOTED, "client error (Connect)", "tcp connect error", "refused (os error 111)"),
        failed("ConnectError", QUOTED, "client error (Connect)", "dns error", "failed to lookup address information"),
        failed("ConnectTimeoutError", QUOTED, "client error (Connect)", "operation timed out"),
        failed("ConnectError", QUOTED, "client error (Connect)", "invalid peer certificate: UnknownIssuer"),
        failed("PoolTimeoutError", "deadline has elapsed"),
        failed("BuilderError", QUOTED, "URL scheme is not allowed"),
    ],
    ids=str,
)  # fmt: skip
def test_only_a_connection_that_never_was_proves_that_nothing_was_sent(problem: PyreqwestError) -> None:
    result = outcome(problem)
    assert isinstance(result, NotSent)
    assert not result.local
    assert SECRET not in everything_told(result)


@pytest.mark.parametrize(
    ("problem", "timeout"),
    [
        (failed("ConnectTimeoutError", QUOTED, "operation timed out"), True),
        (failed("ReadTimeoutError", "error decoding response body", "operation timed out"), True),
        (
            failed("ConnectError", QUOTED, "client error (SendRequest)", "connection error", "reset (os error 104)"),
            False,
        ),
        (failed("ConnectTimeoutError", QUOTED, "client error (SendRequest)", "connection closed"), False),
        (failed("ConnectTimeoutError", QUOTED), False),
        (failed("ConnectError", QUOTED, f"about client error (Connect) {1}"), False),
        (failed("BodyDecodeError", "error decoding response body", "end of file before message length reached"), False),
        (failed("ClientClosedError"), False),
        (failed("RequestPanicError", "panicked"), False),
        (PyreqwestError("anything else"), False),
    ],
    ids=str,
)
def test_everything_else_leaves_the_outcome_unknown(problem: PyreqwestError, timeout: bool) -> None:
    result = outcome(problem)
    assert isinstance(result, Unknown)
    assert result.timeout == timeout
    assert SECRET not in everything_told(result)


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE])
def test_what_this_machine_lacks_is_not_the_other_sides_fault(number: int) -> None:
    reason = f"{os.strerror(number)} (os error {number})"
    result = outcome(failed("ConnectError", QUOTED, "client error (Connect)", "tcp open error", reason))
    assert isinstance(result, NotSent)
    assert result.local


# --------------------------------------------------------------------------------------------------------- compression


def replying(body: bytes, *headers: str) -> Script:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.reply(body, *headers)

    return script


async def sent(body: bytes, *headers: str, most_bytes: int = 64 * MIB) -> bytes:
    async with against(replying(body, *headers)) as (sender, server):
        return (await sender.send(post(server), total_seconds=20, most_bytes=most_bytes)).body


@pytest.mark.parametrize("encoding", ["gzip", "GZIP", "x-gzip", "deflate"])
@pytest.mark.parametrize("size", [0, 10, 1_000_000])
async def test_a_reply_compressed_against_our_wish_is_still_read(encoding: str, size: int) -> None:
    body = random.randbytes(size // 2) + bytes(size - size // 2)
    packed = zlib.compress(body) if encoding == "deflate" else gzip.compress(body)
    assert await sent(packed, f"content-encoding: {encoding}") == body


async def test_identity_is_no_compression() -> None:
    assert await sent(b"plain", "content-encoding: Identity") == b"plain"


@pytest.mark.parametrize("encoding", ["br", "zstd", "gzip, br", "nonsense"])
async def test_other_compressions_are_refused(encoding: str) -> None:
    with pytest.raises(Unknown, match="compressed"):
        await sent(b"whatever", f"content-encoding: {encoding}")


@pytest.mark.parametrize(
    "body",
    [
        b"not compressed at all",
        gzip.compress(b"x" * 100_000)[:-9],
        gzip.compress(random.randbytes(200_000))[:150_000],
        gzip.compress(b"x" * 1000)[:-4] + b"\0\0\0\0",
        gzip.compress(b"x" * 1000) + b"rubbish",
    ],
    ids=["plain", "no end", "half", "checksum", "rubbish after"],
)
async def test_damaged_compression_leaves_the_outcome_unknown(body: bytes) -> None:
    with pytest.raises(Unknown, match="compressed"):
        await sent(body, "content-encoding: gzip")


async def test_a_small_reply_that_inflates_without_end_stops_at_the_limit() -> None:
    bomb = gzip.compress(bytes(16 * MIB)) * 64  # members one after the other: 1 GiB
    assert len(bomb) < 2 * MIB
    async with against(replying(bomb, "content-encoding: gzip")) as (sender, server):
        before = psutil.Process().memory_info().rss
        with pytest.raises(TooLarge):
            await sender.send(post(server), total_seconds=20, most_bytes=16 * MIB)
        assert psutil.Process().memory_info().rss - before < 64 * MIB


async def test_the_limit_counts_what_comes_out() -> None:
    assert await sent(gzip.compress(b"x" * 1000), "content-encoding: gzip", most_bytes=1000) == b"x" * 1000
    with pytest.raises(TooLarge):
        await sent(gzip.compress(b"x" * 1001), "content-encoding: gzip", most_bytes=1000)


async def test_a_chunked_reply_may_be_compressed() -> None:
    body = random.randbytes(100_000)
    packed = gzip.compress(body)

    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(head("transfer-encoding: chunked", "content-encoding: gzip"))
        for start in range(0, len(packed), 999):
            await peer.send(chunk(packed[start : start + 999]))
        await peer.send(chunk(b""))

    async with against(script) as (sender, server):
        assert (await sender.send(post(server), total_seconds=5)).body == body


@given(
    st.lists(st.binary(max_size=300).map(lambda data: data * 700), max_size=3),
    st.integers(1, 50_000),
)
def test_however_members_and_pieces_fall_the_same_bytes_come_out(members: list[bytes], step: int) -> None:
    packed = b"".join(map(gzip.compress, members or [b""]))
    intake = Intake("gzip", "", 10 * MIB)
    pieces = [out for start in range(0, len(packed), step) for out in intake.take(packed[start : start + step])]
    intake.finish()
    assert b"".join(pieces) == b"".join(members)
    assert max(map(len, pieces), default=0) <= STEP_BYTES


def test_a_length_that_is_announced_too_large_is_believed() -> None:
    with pytest.raises(TooLarge):
        Intake("", "1001", 1000)
    Intake("", "1000", 1000)
    Intake("", "nonsense", 1000)


# -------------------------------------------------------------------------------------------------------------- headers


async def test_headers_of_a_reply() -> None:
    async with against(replying(b"ok", "X-Odd: caf\xe9", "X-Even: a", "x-even: b")) as (sender, server):
        headers = (await sender.send(post(server), total_seconds=5)).headers
    assert headers == {"content-length": "2", "x-even": "a"}
    assert headers.get("x-odd") is None
    assert ("x-even" in headers, len(headers)) == (True, 2)
    assert repr(headers) == "Headers(['content-length', 'x-even'])"


@pytest.mark.parametrize(
    ("found", "encoding"),
    [
        ({}, ""),
        ({"content-encoding": "identity"}, ""),
        ({"Content-Encoding": "Br"}, "br"),
        ({"content-encoding": ""}, ""),
    ],
)
def test_names_of_encodings(found: dict[str, str], encoding: str) -> None:
    assert Headers(HeaderMap(found)).encoding == encoding


async def test_an_encoding_that_is_no_text_is_refused() -> None:
    with pytest.raises(Unknown, match="compressed"):
        await sent(b"whatever", "content-encoding: gz\xefp")
