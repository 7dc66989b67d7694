"""Files of sounds from providers: checked, converted, measured and stored; and those that are no sound."""

from typing import Any

import pytest

from penstock.media.provider_files import UnusableFile
from penstock.providers.spec import File
from penstock.schema import Request, StoredOutput
from penstock.sound.formats import FILE_FORMATS, SoundFormat, content_type
from tests import sounds
from tests.gateway import OpenGateway, RunningGateway, sqlite_only


def asked(output_format: str) -> Request:
    return Request(task="sound", model="lab/sound", values={"output_format": output_format})


async def store(running: RunningGateway, data: Any, output_format: str = "mp3") -> StoredOutput:
    transfer = running.gateway.media_transfer
    origin: Any = None
    return await transfer.store_output(
        "med_1", File(data=data), None, asked(output_format), origin, for_org=running.caller.org_id
    )


async def stored_bytes(running: RunningGateway) -> bytes:
    return b"".join([chunk async for chunk in running.storage.read("med_1", 0, 10**8)])


@sqlite_only
@pytest.mark.parametrize("wanted", FILE_FORMATS)
async def test_a_file_is_stored_in_the_format_that_the_caller_wants(
    open_gateway: OpenGateway, wanted: SoundFormat
) -> None:
    async with open_gateway() as running:
        for made in ("mp3", wanted):
            stored = await store(running, sounds.encoded(made, 0.5), wanted)
            assert stored.output.content_type == content_type(wanted)
            assert stored.output.seconds == pytest.approx(0.5, abs=0.1)


@sqlite_only
async def test_a_file_in_the_right_format_is_stored_as_it_came(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        for data in (sounds.encoded("mp3", 0.4), sounds.encoded("opus", 0.4)):
            made = "mp3" if data[:3] == b"ID3" else "opus"
            stored = await store(running, data, made)
            assert stored.output.size_bytes == len(data)


@sqlite_only
async def test_the_sizes_of_a_streamed_file_are_made_true_and_true_ones_stay(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        streamed = sounds.encoded("wav", 0.2)
        assert streamed[4:8] == b"\xff\xff\xff\xff"
        stored = await store(running, streamed, "wav")
        assert stored.output.seconds == pytest.approx(0.2)
        whole = sounds.wav(0.2) + b"LIST\x04\x00\x00\x00abcd"
        stored = await store(running, whole, "wav")
        assert stored.output.size_bytes == len(whole)


@sqlite_only
@pytest.mark.parametrize("data", [b"<html>", b"{}", b"ID3" + bytes(2000), b"RIFF\x24\0\0\0WAVEfmt ", b"\xff\xd8\xff"])
async def test_what_is_not_sound_is_not_stored(open_gateway: OpenGateway, data: bytes) -> None:
    async with open_gateway() as running:
        with pytest.raises(UnusableFile):
            await store(running, data)


@sqlite_only
async def test_an_empty_sound_is_not_stored(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        for wanted in ("wav", "mp3"):
            with pytest.raises(UnusableFile, match=r"empty|decoded"):
                await store(running, sounds.wav(0), wanted)


@sqlite_only
async def test_without_the_library_only_the_right_format_is_stored(
    open_gateway: OpenGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_gateway() as running:
        monkeypatch.setattr("penstock.media.sound_outputs.has_extra", lambda name: False)
        stored = await store(running, sounds.encoded("mp3", 0.4), "mp3")
        assert stored.output.seconds is None
        with pytest.raises(UnusableFile, match="cannot convert"):
            await store(running, sounds.encoded("mp3", 0.4), "flac")
