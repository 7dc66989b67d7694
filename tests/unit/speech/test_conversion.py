"""Which sounds are passed on, which get another header, and which are converted."""

import asyncio
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.chat.stream import StreamBroken
from penstock.errors import Unavailable
from penstock.imaging.workers import WorkerPool, WorkFailed
from penstock.providers.speech import named_formats
from penstock.sound.formats import SoundFormat
from penstock.speech.conversion import caller_sound
from penstock.speech.plan import make_plan
from penstock.values import OrgId
from tests import sounds
from tests.unit.speech.tables import model, request


class NoPool:
    """Fails the test if a child process is asked for."""

    def stream(self, *_: Any, **__: Any) -> Any:
        raise AssertionError("needs no codec")


async def converted(pieces: list[bytes], pool: Any = None, formats: str = "pcm wav mp3", **changes: Any) -> bytes:
    spoken = model(formats=named_formats("response_format", formats))
    asked = request(**changes)
    plan = make_plan(spoken, asked)

    async def source() -> AsyncIterator[bytes]:
        for piece in pieces:
            yield piece

    gateway: Any = SimpleNamespace(sound_pool=pool or NoPool())
    sound = caller_sound(gateway, plan, asked, source(), OrgId("org"))
    return b"".join([data async for data in sound])


async def test_the_asked_format_is_passed_on_unopened() -> None:
    sound = sounds.encoded("mp3", 1.0)
    assert await converted([sound[:5], sound[5:], b""]) == sound


async def test_samples_get_a_header_and_lose_it_without_a_codec() -> None:
    samples = sounds.tone(0.5)
    with_header = await converted([samples[:7], samples[7:], b""], formats="pcm", output_format="wav")
    assert sounds.decoded(with_header)[0].tobytes() == samples
    assert await converted([with_header[:30], with_header[30:], b""], formats="wav", output_format="pcm") == samples


async def test_the_parts_of_a_long_text_get_one_header() -> None:
    part = sounds.wav(0.2)
    made = await converted([part, b"", part, b""], formats="wav", output_format="wav", text="word " * 1500)
    assert sounds.decoded(made)[0].tobytes() == sounds.tone(0.2) * 2


async def test_a_wav_file_with_another_rate_is_resampled_for_pcm() -> None:
    async with WorkerPool(2) as pool:
        made = await converted([sounds.wav(1.0, 48000), b""], pool, formats="wav", output_format="pcm")
    assert sounds.seconds_of(made, "pcm") == pytest.approx(1, rel=0.02)
    assert sounds.hertz_of(made, "pcm") == pytest.approx(220, rel=0.01)


@pytest.mark.parametrize(("provided", "wanted"), [("wav", "mp3"), ("mp3", "opus"), ("aac", "flac")])
async def test_a_converted_sound_begins_before_much_of_it_has_come(provided: SoundFormat, wanted: SoundFormat) -> None:
    sound = sounds.encoded(provided, 8.0)
    is_heard = asyncio.Event()

    async def source() -> AsyncIterator[bytes]:
        yield sound[:12_288]
        await is_heard.wait()
        yield sound[12_288:]
        yield b""

    asked = request(output_format=wanted)
    plan = make_plan(model(formats=named_formats("response_format", provided)), asked)
    made = b""
    async with WorkerPool(2) as pool, asyncio.timeout(60):
        gateway: Any = SimpleNamespace(sound_pool=pool)
        async for data in caller_sound(gateway, plan, asked, source(), OrgId("org")):
            is_heard.set()
            made += data
    assert sounds.seconds_of(made) == pytest.approx(8, abs=0.2)


@pytest.mark.parametrize("pieces", [[], [b""], [b"no sound at all", b""], [b"ab", b""]])
async def test_what_is_no_sound_is_refused(pieces: list[bytes]) -> None:
    with pytest.raises(StreamBroken):
        await converted(pieces, formats="mp3")


async def test_a_sound_that_cannot_be_decoded_is_the_providers_failure() -> None:
    async with WorkerPool(2) as pool:
        with pytest.raises(StreamBroken, match="decoded"):
            await converted([b"fLaC" + bytes(4000), b""], pool, formats="flac", output_format="mp3")


async def test_what_the_provider_breaks_off_stays_its_failure_while_it_is_converted() -> None:
    async def source() -> AsyncIterator[bytes]:
        yield sounds.encoded("flac", 1.0)[:3000]
        raise StreamBroken("went away")

    asked = request(output_format="mp3")
    plan = make_plan(model(formats=named_formats("response_format", "flac")), asked)
    async with WorkerPool(2) as pool:
        gateway: Any = SimpleNamespace(sound_pool=pool)
        with pytest.raises(StreamBroken, match="went away"):
            [data async for data in caller_sound(gateway, plan, asked, source(), OrgId("org"))]


async def test_a_caller_who_finds_no_free_child_is_asked_to_come_again() -> None:
    class BusyPool:
        def stream(self, *_: Any, **__: Any) -> Any:
            raise WorkFailed("busy", "All are busy.")

    with pytest.raises(Unavailable) as problem:
        await converted([sounds.tone(1), b""], BusyPool(), formats="pcm", output_format="mp3")
    assert problem.value.should_retry
