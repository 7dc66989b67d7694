"""A transcript is passed on while the provider makes it, and each end of it is settled."""

import asyncio

import pytest

from penstock.errors import OutputRefused, Problem, UpstreamError
from tests.fake_providers import faults
from tests.fake_providers.listening import TEXT
from tests.fake_providers.server import Act, FakeCall, event_bytes
from tests.gateway import Installation, sqlite_only
from tests.unit.chat.chat_calls import last_record
from tests.unit.transcription.listen_calls import decoded, listen, stored, text_of
from tests.unit.transcription.stream_calls import (
    COST,
    DELTA,
    DONE,
    MODEL,
    body_of,
    chunks,
    events_in,
    hanging_up,
    heard,
    sending,
    vendor,
)

pytestmark = sqlite_only


async def test_the_first_words_are_passed_on_before_the_provider_has_sent_the_rest(installation: Installation) -> None:
    is_read = asyncio.Event()

    async def rest(call: FakeCall) -> None:
        await is_read.wait()
        await call.exchange.more(event_bytes(DONE))
        await call.exchange.end()

    async with vendor(installation) as (running, vendors):
        vendors.next("transcribe", sending(DELTA, then=rest))
        response = await heard(running)
        first = await anext(aiter(chunks(response)))
        is_read.set()
        assert events_in(first) == [{"type": "transcript.text.delta", "delta": "The"}]
        (done,) = events_in(await body_of(response))
        assert done == {"type": "transcript.text.done", "text": "The", "usage": {"type": "duration", "seconds": 2.0}}


@pytest.mark.parametrize(
    "act",
    [
        sending(DELTA, then=hanging_up),
        sending(DELTA),
        sending(DELTA, b'{"type":"error","error":{"message":"overloaded"}}'),
        sending(DELTA, b"{"),
        sending(DELTA, b'{"type":"transcript.text.delta","delta":7}'),
    ],
    ids=["cut", "without an end", "an error", "no JSON", "no text"],
)
async def test_a_stream_that_breaks_off_says_so_and_costs_nothing(installation: Installation, act: Act) -> None:
    async with vendor(installation) as (running, vendors):
        available, _ = await running.money()
        vendors.next("transcribe", act)
        seen = b""
        response = await heard(running)
        try:
            async for chunk in chunks(response):
                seen += chunk
        except UpstreamError:
            seen += b'data: {"type":"closed"}'
        assert [event["type"] for event in events_in(seen)] == ["transcript.text.delta", "error", "closed"]
        record = await last_record(running)
        assert (record["status"], record["cost"]) == ("upstream_failure", 0)
        assert await running.money() == (available, 0)


@pytest.mark.parametrize("act", [faults.busy(1), faults.raw(b"<html>", "text/html"), sending(b"{}")])
async def test_a_failure_before_the_first_word_is_an_error_response(installation: Installation, act: Act) -> None:
    async with vendor(installation) as (running, vendors):
        available, _ = await running.money()
        vendors.next("transcribe", act)
        with pytest.raises(Problem):
            await body_of(await heard(running))
        assert (await last_record(running))["status"] == "upstream_failure"
        assert await running.money() == (available, 0)


async def test_who_leaves_pays_for_the_sound_that_was_sent(installation: Installation) -> None:
    async with vendor(installation) as (running, vendors):
        available, _ = await running.money()
        vendors.next("transcribe", sending(DELTA, then=lambda call: call.exchange.wait_until_gone()))
        response = await heard(running)
        await anext(aiter(chunks(response)))
        await chunks(response).aclose()
        record = await last_record(running)
        assert (record["status"], record["cost"]) == ("cancelled", COST)
        assert await running.money() == (available - COST, 0)


async def test_guards_read_a_whole_transcript_before_the_caller(installation: Installation) -> None:
    rules = {"when": "output", "rules": {"words": ["brown fox"]}}
    async with vendor(installation, guards={"words": rules}) as (running, vendors):
        with pytest.raises(OutputRefused):
            await heard(running)
        (request,) = vendors.received("transcribe")
        assert "stream" not in request.fields


async def test_a_recording_is_made_of_a_whole_transcript(installation: Installation) -> None:
    async with vendor(installation) as (running, vendors):
        await heard(running, headers={"x-service-replay": "record"})
        (request,) = vendors.received("transcribe")
        assert "stream" not in request.fields
        replayed = await heard(running, headers={"x-service-replay": "replay-or-error"})
        assert text_of(replayed).count("transcript.text.delta") == 1


async def test_the_events_are_stored_as_the_settings_say(installation: Installation) -> None:
    async with vendor(installation, payloads="all") as (running, _):
        response = await heard(running)
        body = await body_of(response)
        record = await last_record(running)
        assert (await stored(running, record["id"]))["response"] == body.decode()


async def test_a_call_without_a_stream_is_answered_whole(installation: Installation) -> None:
    async with vendor(installation) as (running, vendors):
        assert decoded(await listen(running, model=MODEL))["text"] == TEXT
        (request,) = vendors.received("transcribe")
        assert "stream" not in request.fields
