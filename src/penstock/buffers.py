"""Collect bytes whose number is known without holding them twice."""

from io import BytesIO


def sized_buffer(size_bytes: int) -> BytesIO:
    """An empty buffer that has room for so many bytes.

    One that grows while it is filled is moved again and again, and what it leaves behind stays with the process. The
    room is zeroed memory from the system, which no byte is written to until the buffer is filled.
    """
    return BytesIO(bytes(size_bytes))


def filled_part(buffer: BytesIO) -> bytes:
    """What was written to a buffer, without a copy."""
    buffer.truncate()
    return buffer.getvalue()
