"""The sound of a call, read and measured."""

import pytest

from penstock.errors import InvalidRequest
from penstock.fields import UploadedFile
from penstock.transcription import sound
from penstock.transcription.sound import ANY_PART, PartLimits, prepare_sound
from tests import sounds
from tests.gateway import OpenGateway, sqlite_only
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
