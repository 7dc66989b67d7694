"""Broken, lying and hostile sound files cost at most the child process that reads them, and no neighbour waits."""

import asyncio
import random
from contextlib import suppress
from typing import Any

import pytest

from penstock.imaging.workers import WorkerPool, WorkFailed
from penstock.sound.formats import FILE_FORMATS, SoundFormat
from penstock.values import OrgId
from tests import sounds

ORG = OrgId("org_1")
FILES_OF_A_CASE = 40
_LONGEST = 40  # how many times as long as the whole file a damaged one may claim to be


def damaged_files(output_format: SoundFormat, seed: int) -> list[bytes]:
    """Files with up to forty bytes changed, cut out, repeated or put to the highest value, mostly in their headers."""
    chance = random.Random(f"{output_format}{seed}")
    whole = sounds.encoded(output_format, 0.6)
    files = []
    for _ in range(FILES_OF_A_CASE):
        data = bytearray(whole[: chance.randint(len(whole) // 3, len(whole))])
        for _ in range(chance.randint(1, 40)):
            at = chance.randrange(min(len(data) - 8, 200 if chance.random() < 0.6 else len(data) - 8))
            match chance.randrange(4):
                case 0:
                    data[at] = chance.randrange(256)
                case 1:
                    data[at : at + 4] = b"\xff\xff\xff\x7f"
                case 2:
                    del data[at : at + chance.randint(1, 8)]
                case _:
                    data[at:at] = data[at : at + chance.randint(1, 8)]
        files.append(bytes(data))
    return files


async def unless_refused(pool: WorkerPool, task: str, data: bytes, **extra: Any) -> dict[str, Any] | None:
    """What the task returns; None if it refuses the file. Any other failure is raised."""
    try:
        return await pool.run(task, for_org=ORG, data=data, **extra)
    except WorkFailed as problem:
        if problem.kind == "refused":
            return None
        raise


@pytest.mark.sweep(25)
@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("output_format", FILE_FORMATS)
async def test_damaged_files_are_read_or_refused_by_a_child_that_survives(
    output_format: SoundFormat, seed: int
) -> None:
    """Two thousand in all."""
    async with WorkerPool(2) as pool:
        await pool.run("sound.measure", for_org=ORG, data=sounds.encoded(output_format, 0.6))
        for data in damaged_files(output_format, seed):
            made = await unless_refused(pool, "sound.remake", data, target="wav")
            if made is not None:
                assert made["seconds"] <= 0.6 * _LONGEST, "samples that are there, not those that a header claims"
                assert len(made["data"]) < 20_000_000


async def test_a_file_that_takes_long_holds_up_no_other() -> None:
    async with WorkerPool(2) as pool:
        slow = asyncio.ensure_future(
            pool.run("sound.remake", for_org=ORG, data=sounds.encoded("flac", 120.0), target="mp3")
        )
        for _ in range(5):
            found = await pool.run("sound.measure", for_org=OrgId("org_2"), data=sounds.encoded("mp3", 0.2))
            assert found["seconds"] == pytest.approx(0.2, abs=0.1)
        slow.cancel()
        with suppress(asyncio.CancelledError):
            await slow


LISTS = {
    "ffconcat": b"ffconcat version 1.0\nfile /etc/hostname\n",
    "hls": b"#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\nfile:///etc/hostname\n#EXT-X-ENDLIST\n",
    "wave that is a list": b"RIFF\x24\0\0\0WAVEffconcat version 1.0\nfile /etc/hostname\n",
    "id3 before a list": b"ID3\x03\0\0\0\0\0\x0affconcat version 1.0\nfile /etc/hostname\n",
    "ogg that is a list": b"OggSffconcat version 1.0\nfile /etc/hostname\n",
}


@pytest.mark.parametrize("name", list(LISTS))
async def test_a_list_of_files_is_refused_whatever_it_begins_with(name: str) -> None:
    async with WorkerPool(2) as pool:
        for task in ("sound.remake", "sound.measure"):
            extra: dict[str, Any] = {"target": "mp3"} if task == "sound.remake" else {}
            found = await unless_refused(pool, task, LISTS[name], **extra)
            assert found is None or found["seconds"] == 0
