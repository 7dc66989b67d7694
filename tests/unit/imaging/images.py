"""Images for the tests of child processes."""

import io
import random
from functools import cache

from PIL import Image


def png(width: int = 40, height: int = 30, colour: str = "teal") -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (width, height), colour).save(buffer, "PNG")
    return buffer.getvalue()


@cache
def slow_png(side: int = 2000) -> bytes:
    """Noise with a noisy alpha channel: the larger it is, the more seconds it takes to turn it into WebP."""
    noise = random.Random(1).randbytes(4 * side * side)
    buffer = io.BytesIO()
    Image.frombytes("RGBA", (side, side), noise).save(buffer, "PNG", compress_level=0)
    return buffer.getvalue()
