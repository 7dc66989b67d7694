"""The work of a job that speaks into a file: its progress, and what it has cost when it is interrupted."""

import asyncio
from typing import Any

import pytest

from penstock.accounts.prices import Line
from penstock.schema import Request
from penstock.speech.file import SpeechFile
from penstock.upstream.failures import AttemptFailed
from tests.fake_providers import faults
from tests.gateway import OpenGateway, RunningGateway, sqlite_only

TEXT = "This sentence has some words. " * 200  # two parts
VALUES = {"input": TEXT, "voice": "alloy", "response_format": "pcm"}


def speech_file(running: RunningGateway, **values: Any) -> SpeechFile:
    (candidate,) = running.gateway.routing.route("lab/voice", ("speech",), running.caller.org_id).candidates
    request = Request(task="speech", model="lab/voice", values={**VALUES, **values})
    return SpeechFile(running.gateway, candidate, request, "med_1", running.caller.org_id)


async def no_progress(_: float) -> None:
    pass


def characters(lines: tuple[Line, ...]) -> int:
    return int(sum(line.quantity for line in lines))


@sqlite_only
async def test_progress_is_that_of_the_parts_of_the_text(open_gateway: OpenGateway) -> None:
    seen: list[float] = []

    async def note(progress: float) -> None:
        seen.append(progress)

    async with open_gateway() as running:
        maker = speech_file(running)
        assert maker.lines == ()
        stored = await maker.make(note)
        assert (seen[0], seen[-2:]) == (0, [0.5, 1])
        assert characters(maker.lines) == len(TEXT)
        assert stored.output.seconds == pytest.approx(len(TEXT) / 15, rel=0.01)
        assert stored.output.voice == "alloy"
        assert running.scratch == [], "the temporary file is deleted"


@sqlite_only
async def test_what_was_begun_is_what_an_interruption_costs(open_gateway: OpenGateway) -> None:
    gate = faults.Gate()
    async with open_gateway() as running:
        running.lab.speeches.next(gate)
        maker = speech_file(running)
        making = asyncio.ensure_future(maker.make(no_progress))
        await running.lab.speeches.reached(1)
        making.cancel()
        with pytest.raises(asyncio.CancelledError):
            await making
        gate.open()
        first = running.lab.speeches.received[0].fields["input"]
        assert characters(maker.lines) == len(first) < len(TEXT)
        assert running.scratch == []


@sqlite_only
async def test_a_provider_that_sends_no_sound_has_failed(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        running.lab.speeches.next(faults.raw(b"", "audio/pcm"))
        with pytest.raises(AttemptFailed, match="sent no sound") as caught:
            await speech_file(running, input="Hello.").make(no_progress)
        assert caught.value.failure.allows_failover, "nothing was delivered yet"
