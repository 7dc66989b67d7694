"""Calls of speech with replay headers."""

import pytest

from penstock.errors import RecordingNotFound
from tests import sounds
from tests.gateway import OpenGateway, sqlite_only
from tests.unit.chat.chat_calls import last_record
from tests.unit.speech.speech_calls import sound_of, speak


@sqlite_only
async def test_a_mock_is_spoken_by_the_built_in_voice_for_nothing(open_gateway: OpenGateway) -> None:
    async with open_gateway(disabled_providers=()) as running:
        response = await speak(running, headers={"x-service-replay": "mock"}, voice="verse", response_format="wav")
        assert response.headers["x-service-replay-status"] == "mocked"
        assert sounds.seconds_of(await sound_of(response)) > 1
        assert len(running.lab.speeches) == 0
        record = await last_record(running)
        assert (record["status"], record["cost"], record["provider"]) == ("completed", 0, "atelier")


@sqlite_only
async def test_what_needs_a_recording_is_not_found_and_other_modes_are_live(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        with pytest.raises(RecordingNotFound):
            await speak(running, headers={"x-service-replay": "replay-or-error"})
        response = await speak(running, headers={"x-service-replay": "replay-or-live"})
        assert response.headers["x-service-replay-status"] == "live"
        await sound_of(response)
