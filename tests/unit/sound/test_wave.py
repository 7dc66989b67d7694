"""Headers of WAV files, with and without a length, and those that lie."""

import io
import wave as standard

import pytest

from penstock.sound import wave
from tests import sounds


def test_pythons_own_reader_reads_a_file() -> None:
    samples = sounds.tone(0.1)
    with standard.open(io.BytesIO(wave.header(24000, len(samples)) + samples)) as file:
        assert (file.getframerate(), file.getnchannels(), file.getsampwidth()) == (24000, 1, 2)
        assert file.readframes(10**9) == samples


def test_a_stream_has_the_largest_sizes() -> None:
    assert wave.header(8000)[4:8] == wave.header(8000)[40:44] == b"\xff\xff\xff\xff"


def test_a_header_is_read_as_soon_as_it_is_complete() -> None:
    data = wave.header(16000)
    assert [wave.read_header(data[:size]) for size in (0, 11, 20, 43)] == [None] * 4
    found = wave.read_header(data)
    assert found == (16000, 1, 16, True, 44, wave.UNKNOWN_SIZE)
    assert found is not None
    assert found.is_plain


def test_other_chunks_are_skipped() -> None:
    data = wave.header(16000, 10)
    data = data[:12] + b"LIST\x05\x00\x00\x00abcde\x00" + data[12:]
    found = wave.read_header(data)
    assert found is not None
    assert (found.rate, found.data_start) == (16000, 58)


@pytest.mark.parametrize(
    "data",
    [
        b"RIFFxxxxAVI fmt ",
        b"RIFF" + bytes(4) + b"WAVEdata" + bytes(8),
        b"RIFF" + bytes(4) + b"WAVEfmt \x02\x00\x00\x00" + bytes(30),
        b"RIFF" + bytes(4) + b"WAVEjunk\xff\xff\xff\x7f" + bytes(8),
    ],
)
def test_what_is_no_wav_file_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"[a-z]"):
        wave.read_header(data)
