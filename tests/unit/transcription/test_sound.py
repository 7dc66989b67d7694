"""The sound of a call, read and measured."""

import pytest

from penstock.errors import InvalidRequest
from penstock.fields import UploadedFile
from penstock.transcription import sound
from penstock.transcription.sound import ANY_PART, PartLimits, prepare_sound
from tests import sounds
from tests.gateway import Installation, OpenGateway, sqlite_only
from tests.unit.chat.chat_calls import last_record
from tests.unit.transcription.listen_calls import listen
from tests.unit.transcription.stream_calls import vendor
from tests.unit.transcription.tables import request


@sqlite_only
async def test_a_sound_is_measured_and_cut(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        asked = request(source=UploadedFile(sounds.wav(2.0)))
        prepared = await prepare_sound(running.gateway, running.call(), asked, PartLimits(2**20, 1))
        assert prepared.seconds == 2.0
        assert sum(part.seconds for part in prepared.parts) == pytest.approx(2.0)
        assert prepared.parts[0].file.content_type == "audio/flac"
        assert [part.start for part in prepared.parts] == sorted(part.start for part in prepared.parts)
        again = await prepare_sound(running.gateway, running.call(), asked, PartLimits(2**20, 60))
        assert again.sha256 == prepared.sha256, "the digest is that of the sound, however it is cut"


@sqlite_only
async def test_without_the_library_the_message_says_what_to_install(
    open_gateway: OpenGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sound, "has_extra", lambda name: False)
    async with open_gateway() as running:
        with pytest.raises(InvalidRequest, match=r"pip install '\.\[media\]'"):
            await prepare_sound(running.gateway, running.call(), request(), ANY_PART)


@sqlite_only
@pytest.mark.parametrize("in_a_job", [False, True])
async def test_a_file_is_sent_as_it_came_if_the_caller_asks(installation: Installation, in_a_job: bool) -> None:
    file = sounds.encoded("mp3", 3.0)
    asked = (("original", "true"), ("response_format", "json"))
    headers = {"prefer": "respond-async"} if in_a_job else {}
    async with vendor(installation) as (running, vendors):
        vendors.takes_any_file = True
        response = await listen(running, *asked, model="gpt-4o-transcribe", file=file, headers=headers)
        if in_a_job:
            await running.wait_for_request(response.json["id"])
        (request,) = vendors.received("transcribe")
        assert request.fields["file"] == file
        assert (await last_record(running))["cost"] > 0


@sqlite_only
async def test_a_file_that_would_have_to_be_cut_is_not_sent_as_it_came(
    installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.transcription.planned.ANY_PART", PartLimits(24 * 1024**2, 2.0))
    async with vendor(installation) as (running, vendors):
        with pytest.raises(InvalidRequest) as refusal:
            await listen(running, ("original", "true"), model="gpt-4o-transcribe", file=sounds.encoded("mp3", 5.0))
        assert refusal.value.param == "original"
        with pytest.raises(InvalidRequest) as refusal:
            await listen(running, ("original", "true"), model="gpt-transcribe")
        assert refusal.value.param == "original"
        assert vendors.received("transcribe") == []
