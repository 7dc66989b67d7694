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
def slow_png() -> bytes:
    """Noise with a noisy alpha channel: several seconds of work to turn into WebP."""
    noise = random.Random(1).randbytes(4 * 2000 * 2000)
    buffer = io.BytesIO()
    Image.frombytes("RGBA", (2000, 2000), noise).save(buffer, "PNG", compress_level=0)
    return buffer.getvalue()
