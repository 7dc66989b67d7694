"""What comes piece by piece is passed on, and the call is settled however it ends."""

from collections.abc import AsyncGenerator
from typing import Any

import pytest

from penstock.chat.passed_on import PassedOn, nothing_came
from penstock.chat.pricing import Bill
from penstock.chat.reserved import ReservedCall, reserve
from penstock.chat.stream import CallerTooSlow, ProviderTooSlow, StreamBroken, WaitingTimes
from penstock.errors import Cancelled, Problem, UpstreamError, UpstreamTimeout
from penstock.schema import Request
from penstock.upstream.candidate import Candidate
from penstock.upstream.watch import AttemptWatch
from penstock.values import Nanos
from tests.gateway import OpenGateway, RunningGateway, sqlite_only
from tests.unit.chat.chat_calls import last_record

pytestmark = sqlite_only
COST = Nanos(3_000_000)


class Plain:
    def part(self, piece: bytes) -> bytes:
        return piece

    def fail(self, problem: Problem) -> bytes:
        return b"!"


def candidate_of(running: RunningGateway) -> Candidate:
    return running.gateway.catalog.find("lab/chat", ("chat",)).candidates[0]


async def passed_on(running: RunningGateway) -> PassedOn[bytes]:
    gateway = running.gateway
    request = Request(task="speech", model="lab/chat", values={})
    reservation = await reserve(gateway, running.call({}), request, Nanos(5_000_000), "speech")
    candidate = candidate_of(running)

    def bill(*, is_whole: bool) -> Bill:
        return Bill({}, (), COST)

    return PassedOn[bytes](
        ReservedCall(gateway, reservation),
        candidate,
        AttemptWatch(gateway.metrics, gateway.clock, candidate, "speech"),
        WaitingTimes(gateway.clock, 60),
        Plain(),
        bill,
        lambda bill: b".",
        "sound",
    )


async def pieces(*found: bytes, then: Exception | None = None) -> AsyncGenerator[bytes, None]:
    for piece in found:
        yield piece
    if then:
        raise then


async def read(chunks: AsyncGenerator[bytes, None]) -> tuple[bytes, Problem | None]:
    """The bytes that came, and the problem by which they ended."""
    seen = b""
    try:
        async for chunk in chunks:
            assert chunk, "an empty chunk would end the response"
            seen += chunk
    except Problem as problem:
        return seen, problem
    return seen, None


async def test_pieces_are_passed_on_and_charged(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        available, _ = await running.money()
        call = await passed_on(running)
        assert await read(call.chunks(pieces(b"b", b"", b"c"), b"a")) == (b"abc.", None)
        record = await last_record(running)
        assert (record["status"], record["cost"], record["response_bytes"]) == ("completed", COST, 4)
        assert await running.money() == (available - COST, 0)


@pytest.mark.parametrize(
    ("error", "problem", "says"),
    [
        (StreamBroken("sent a malformed event"), UpstreamError, "sent a malformed event"),
        (ProviderTooSlow(), UpstreamTimeout, "60 seconds"),
    ],
)
async def test_what_the_provider_breaks_off_costs_nothing(
    open_gateway: OpenGateway, error: Exception, problem: type[Problem], says: str
) -> None:
    async with open_gateway() as running:
        available, _ = await running.money()
        call = await passed_on(running)
        seen, raised = await read(call.chunks(pieces(b"b", then=error), b"a"))
        assert seen == b"ab!"
        assert isinstance(raised, problem)
        assert says in raised.message
        record = await last_record(running)
        assert (record["status"], record["cost"]) == ("upstream_failure", 0)
        assert await running.money() == (available, 0)


async def test_a_caller_who_reads_too_slowly_pays(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        call = await passed_on(running)
        _, raised = await read(call.chunks(pieces(then=CallerTooSlow()), b"a"))
        assert isinstance(raised, Cancelled)
        record = await last_record(running)
        assert (record["status"], record["cost"]) == ("cancelled", COST)


async def test_a_caller_who_leaves_pays_and_the_provider_is_left(open_gateway: OpenGateway) -> None:
    is_closed: list[bool] = []

    async def endless() -> AsyncGenerator[bytes, None]:
        try:
            while True:
                yield b"x"
        finally:
            is_closed.append(True)

    async with open_gateway() as running:
        call = await passed_on(running)
        source = endless()
        chunks = call.chunks(source, await anext(source))
        await anext(chunks)
        await chunks.aclose()
        assert is_closed
        record = await last_record(running)
        assert (record["status"], record["cost"]) == ("cancelled", COST)


async def test_the_reason_for_nothing_is_that_of_the_provider(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        candidate = candidate_of(running)
        name = candidate.provider.name
        reported: Any = StreamBroken("reported an error", b'{"error": {"message": "overloaded", "code": 503}}')
        assert nothing_came(candidate, reported, "sound").status == 503
        assert nothing_came(candidate, StopAsyncIteration(), "sound").message == f"{name} did not send any sound."
        broken = nothing_came(candidate, StreamBroken("sent an event that is too long"), "sound")
        assert broken.message == f"{name} sent an event that is too long."
