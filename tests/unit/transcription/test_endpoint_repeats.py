"""Calls that are sent again with their idempotency key."""

import asyncio

import pytest

from penstock.errors import IdempotencyCompleted, Problem, UnprocessableRequest
from penstock.schema import Response
from tests import sounds
from tests.fake_providers import faults
from tests.gateway import OpenGateway, RunningGateway, sqlite_only
from tests.unit.transcription.listen_calls import listen

KEY = ("idempotency_key", "k-1")


async def settled(running: RunningGateway, *fields: tuple[str, str]) -> Response:
    response = await listen(running, *fields)
    await running.gateway.chat_settlement.catch_up(running.caller.org_id)
    return response


@pytest.mark.parametrize("form", ["json", "srt", "vtt"])
async def test_a_repeated_call_gets_the_first_transcript(open_gateway: OpenGateway, form: str) -> None:
    async with open_gateway(payloads="all") as running:
        fields = (KEY, ("response_format", form))
        first = await settled(running, *fields)
        before = await running.money()
        again = await listen(running, *fields)
        assert (again.body, again.media_type) == (first.body, first.media_type)
        assert again.headers["idempotent-replayed"] == "true"
        assert len(running.lab.transcripts) == 1
        assert await running.money() == before


@sqlite_only
async def test_a_transcript_that_is_not_stored_is_not_made_again(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        await settled(running, KEY)
        with pytest.raises(IdempotencyCompleted):
            await listen(running, KEY)
        assert len(running.lab.transcripts) == 1


@sqlite_only
async def test_a_key_is_for_one_sound_and_one_form(open_gateway: OpenGateway) -> None:
    async with open_gateway(payloads="all") as running:
        await settled(running, KEY)
        with pytest.raises(UnprocessableRequest):
            await listen(running, KEY, file=sounds.wav(1.0))
        with pytest.raises(UnprocessableRequest):
            await listen(running, KEY, ("language", "en"))


@sqlite_only
async def test_a_call_that_failed_is_made_again(open_gateway: OpenGateway) -> None:
    async with open_gateway(payloads="all") as running:
        running.lab.transcripts.next(faults.error(500, "Oops."))
        with pytest.raises(Problem):
            await listen(running, KEY)
        assert (await settled(running, KEY)).status == 200
        assert {record["status"] for record in await running.records()} == {"upstream_failure", "completed"}


@sqlite_only
async def test_two_at_once_are_made_once(open_gateway: OpenGateway) -> None:
    async with open_gateway(payloads="all") as running:
        results = await asyncio.gather(*(listen(running, KEY) for _ in range(3)), return_exceptions=True)
        assert len(running.lab.transcripts) == 1
        assert sum(isinstance(result, Response) for result in results) >= 1
