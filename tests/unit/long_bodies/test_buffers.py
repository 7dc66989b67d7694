"""Buffers for bytes that arrive in pieces."""

import os
import sys
import tracemalloc
from pathlib import Path

import pytest

from penstock.long_bodies.buffers import GrowingBuffer


@pytest.mark.parametrize("stated", [0, 1, 3, 100])
def test_the_filled_part_is_what_was_written(stated: int) -> None:
    buffer = GrowingBuffer(stated)
    assert buffer.finish() == b""
    buffer = GrowingBuffer(stated)
    for piece in (b"ab", b"", bytearray(b"c"), memoryview(b"de")):
        buffer.write(piece)
    assert buffer.finish() == b"abcde"


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_memory_is_touched_only_when_it_is_filled() -> None:
    """To write zeros to a new buffer would take a step of many milliseconds."""

    def resident_bytes() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    before = resident_bytes()
    buffer = GrowingBuffer(256 * 2**20)
    assert resident_bytes() - before < 64 * 2**20
    buffer.write(b"a")
    assert buffer.finish() == b"a"


def test_a_buffer_of_the_right_size_holds_its_bytes_once() -> None:
    tracemalloc.start()
    try:
        buffer = GrowingBuffer(1_000_000)
        for _ in range(1000):
            buffer.write(bytes(1000))
        assert len(buffer.finish()) == 1_000_000
        assert tracemalloc.get_traced_memory()[1] < 1_100_000
    finally:
        tracemalloc.stop()
