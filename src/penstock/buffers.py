"""Collect bytes whose number is known without holding them twice."""

from io import BytesIO


def sized_buffer(size_bytes: int) -> BytesIO:
    """An empty buffer that has room for so many bytes.

    One that grows while it is filled is moved again and again, and what it leaves behind stays with the process.
    """
    buffer = BytesIO()
    if size_bytes > 0:
        buffer.seek(size_bytes - 1)
        buffer.write(b"\0")
        buffer.seek(0)
    return buffer


def filled_part(buffer: BytesIO) -> bytes:
    """What was written to a buffer, without a copy."""
    buffer.truncate()
    return buffer.getvalue()
