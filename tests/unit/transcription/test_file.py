"""The work of a job that writes a transcript: what it bills, and what it does without its sound."""

import pytest

from penstock.schema import Input, Request
from penstock.transcription.file import TranscriptFile
from penstock.upstream.failures import AttemptFailed
from penstock.values import InputFile
from tests import sounds
from tests.fake_providers import faults
from tests.gateway import OpenGateway, RunningGateway, sqlite_only


async def no_progress(progress: float) -> None:
    pass


async def stored_sound(running: RunningGateway) -> Input:
    """Two seconds, stored as a job's sound is."""
    file = InputFile(sounds.encoded("flac", 2.0), "audio/flac", 0, 0, "sound", seconds=2.0)
    ((stored, _),) = await running.gateway.media_transfer.store_inputs([file], running.clock.now_ms())
    return stored


def maker_of(running: RunningGateway, sound: Input) -> TranscriptFile:
    request = Request(task="transcription", model="lab/listen", values={}, inputs=(sound,))
    candidate = next(
        each for each in running.gateway.catalog.serving("lab/listen") if each.model.op.task == request.task
    )
    return TranscriptFile(running.gateway, candidate, request, "med_test00", running.caller.org_id)


@sqlite_only
async def test_it_bills_what_was_heard_and_nothing_that_was_refused(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        maker = maker_of(running, await stored_sound(running))
        assert not maker.lines
        running.lab.transcripts.next(faults.error(400, "no"))
        with pytest.raises(AttemptFailed):
            await maker.make(no_progress)
        assert not maker.lines
        stored = await maker.make(no_progress)
        assert stored.output.seconds == 2.0
        assert [(line.metric, float(line.quantity)) for line in maker.lines] == [("second", 2.0)]


@sqlite_only
async def test_a_sound_that_is_gone_is_not_sent(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        maker = maker_of(running, Input("sound", "med_gone00", "audio/flac", 0, 0, 100, 1.5))
        with pytest.raises(AttemptFailed, match="gone"):
            await maker.make(no_progress)
        assert running.lab.transcripts.received == []
        assert not maker.lines
