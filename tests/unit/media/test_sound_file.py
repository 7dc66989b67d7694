"""Sounds that are collected while they are made, in memory and in a temporary file."""

import hashlib
from pathlib import Path

import pytest

from penstock.event_loop import LONG_FILE_BYTES
from penstock.media.sound_file import SoundFile
from penstock.sound import wave


@pytest.mark.parametrize("size", [4800, 2 * LONG_FILE_BYTES])
async def test_a_wav_file_says_its_true_sizes_and_its_length(tmp_path: Path, size: int) -> None:
    with SoundFile(tmp_path) as file:
        file.write(wave.header(24_000))
        for _ in range(size // 800):
            file.write(b"\1\0" * 400)
        samples = size // 800 * 800
        digest, data = await file.finish_sound("audio/wav")
        found = data.read_bytes() if isinstance(data, Path) else data
        assert found[:44] == wave.header(24_000, samples)
        assert len(found) == file.size_bytes == samples + 44
        assert digest == hashlib.sha256(found).digest()
        assert await file.raw_seconds("audio/wav") == pytest.approx(samples / 48_000)
        assert isinstance(data, Path) == (size > LONG_FILE_BYTES)
    assert list(tmp_path.iterdir()) == []


async def test_the_length_of_plain_samples_follows_from_their_rate(tmp_path: Path) -> None:
    with SoundFile(tmp_path) as file:
        file.write(b"\0" * 32_000)
        assert await file.raw_seconds("audio/pcm;rate=16000;channels=1") == 1
        assert await file.raw_seconds("audio/mpeg") is None
        assert (await file.finish_sound("audio/mpeg"))[1] == b"\0" * 32_000
