"""What a provider streams becomes one transcript, whatever form its answer has."""

import json

import pytest

from penstock.transcription.sound import PartLimits
from tests import sounds
from tests.fake_providers import faults
from tests.fake_providers.listening import TEXT
from tests.gateway import Installation, sqlite_only
from tests.unit.chat.chat_calls import last_record
from tests.unit.transcription.listen_calls import listen
from tests.unit.transcription.stream_calls import COST, STREAM, body_of, events_in, heard, sending, vendor

pytestmark = sqlite_only


async def test_a_vendor_that_does_not_stream_after_all_is_read_whole(installation: Installation) -> None:
    async with vendor(installation) as (running, vendors):
        vendors.next("transcribe", faults.raw(json.dumps({"text": TEXT}).encode()))
        delta, done = events_in(await body_of(await heard(running)))
        assert (delta["delta"], done["text"]) == (TEXT, TEXT)
        assert (await last_record(running))["cost"] == COST


async def test_a_silent_sound_is_an_empty_transcript(installation: Installation) -> None:
    async with vendor(installation) as (running, vendors):
        vendors.next("transcribe", sending(b'{"type":"transcript.text.done","text":""}'))
        (done,) = events_in(await body_of(await heard(running)))
        assert done["text"] == ""
        assert (await last_record(running))["status"] == "completed"


async def test_parts_of_a_long_sound_are_one_stream(
    installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.transcription.planned.ANY_PART", PartLimits(24 * 1024**2, 30.0))
    async with vendor(installation) as (running, vendors):
        fields = (STREAM, ("response_format", "diarized_json"))
        response = await listen(running, *fields, model="gpt-4o-transcribe-diarize", file=sounds.encoded("flac", 50.0))
        events = events_in(await body_of(response))
        assert len(vendors.received("transcribe")) == 2
        segments = [event for event in events if event["type"] == "transcript.text.segment"]
        assert [segment["id"] for segment in segments] == ["seg_0", "seg_1", "seg_2", "seg_3"]
        starts = [segment["start"] for segment in segments]
        assert starts == sorted(starts)
        assert segments[-1]["end"] == pytest.approx(50, abs=2)
        said = "".join(event["delta"] for event in events if event["type"] == "transcript.text.delta")
        assert said == events[-1]["text"] == f"{TEXT} {TEXT}"
