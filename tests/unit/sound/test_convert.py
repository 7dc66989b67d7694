"""Sounds are converted while they arrive, in a child process."""

import asyncio
from typing import Any

import pytest

from penstock.imaging.workers import WorkerPool, WorkFailed
from penstock.sound.formats import SOUND_FORMATS, SoundFormat
from penstock.values import OrgId
from tests import sounds


async def convert(*files: bytes, **arguments: Any) -> tuple[bytes, dict[str, Any]]:
    """The result of the task for these files, written in small pieces while the result is read."""
    arguments = {"source": "pcm", "source_rate": 24000, "rate": 24000, "speed": 1.0, **arguments}
    async with WorkerPool(2) as pool, pool.stream("sound.convert", for_org=OrgId("org"), **arguments) as child:

        async def feed() -> None:
            for file in files:
                for start in range(0, len(file), 3001):
                    await child.write(file[start : start + 3001])
                await child.end_file()
            await child.end()

        feeding = asyncio.create_task(feed())
        try:
            made = [piece async for piece in pieces(child)]
        finally:
            feeding.cancel()
            await asyncio.gather(feeding, return_exceptions=True)
        assert child.done is not None
        return b"".join(made), child.done.result


async def pieces(child: Any) -> Any:
    while data := await child.read():
        yield data


@pytest.mark.parametrize("target", SOUND_FORMATS)
async def test_each_format_is_made_of_samples(target: SoundFormat) -> None:
    made, result = await convert(sounds.tone(2), target=target)
    found = "pcm" if target == "pcm" else None
    assert sounds.container_of(made) == target
    assert sounds.seconds_of(made, found) == pytest.approx(2, abs=0.15)
    assert result["samples"] == 48000


@pytest.mark.parametrize("speed", [0.25, 0.7, 1.9, 4.0])
async def test_speed_changes_the_length_and_not_the_pitch(speed: float) -> None:
    made, _ = await convert(sounds.encoded("mp3", 4.0), source="mp3", target="pcm", speed=speed)
    assert sounds.seconds_of(made, "pcm") == pytest.approx(4 / speed, rel=0.03)
    assert sounds.hertz_of(made, "pcm") == pytest.approx(220, rel=0.01)


async def test_several_files_become_one_sound() -> None:
    parts = [sounds.encoded("mp3", length) for length in (1.0, 2.0, 0.5)]
    made, _ = await convert(*parts, source="mp3", target="opus")
    assert sounds.seconds_of(made) == pytest.approx(3.5, abs=0.3)


async def test_rates_are_changed() -> None:
    made, result = await convert(sounds.tone(1, 8000), source_rate=8000, target="wav", rate=44100)
    assert (sounds.decoded(made)[1], result["rate"]) == (44100, 44100)
    assert sounds.hertz_of(made) == pytest.approx(220, rel=0.01)


@pytest.mark.parametrize(
    ("source", "data"), [("mp3", b"not a sound" * 500), ("flac", b"fLaC" + bytes(500)), ("pcm", b"")]
)
async def test_what_cannot_be_decoded_is_refused(source: str, data: bytes) -> None:
    with pytest.raises(WorkFailed) as failure:
        await convert(data, source=source, target="mp3")
    assert failure.value.kind == "refused"
