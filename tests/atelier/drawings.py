"""What the tests of the renderers share: images from prompts, PNG data, and checks that are made for many words."""

import io
from collections.abc import Callable, Iterable
from typing import TypeVar

from PIL import Image

from penstock.imaging import convert
from penstock_atelier.renderers import sketch

Case = TypeVar("Case")


def draw(prompt: str, width: int, height: int, seed: int = 0) -> Image.Image:
    """The image of a prompt, decoded."""
    return open_image(sketch.draw_image(prompt, width, height, seed).data)


def png(image: Image.Image) -> bytes:
    return convert.encode(image, "png").data


def open_image(data: bytes) -> Image.Image:
    image = Image.open(io.BytesIO(data))
    image.load()
    return image


def check_each(cases: Iterable[Case], check: Callable[[Case], None]) -> None:
    """Make a check for every case, then fail with all cases that did not pass."""
    failures = []
    checked = 0
    for case in cases:
        checked += 1
        try:
            check(case)
        except AssertionError as problem:
            failures.append(f"{case!r}: {problem}")
    assert checked, "there was nothing to check"
    assert not failures, "\n".join(failures)
