"""A prompt becomes a PNG of exactly the asked size, always the same one."""

from __future__ import annotations

import hashlib
import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some
from PIL import Image

from penstock.imaging.convert import BadImage
from penstock_atelier.renderers import sketch
from tests.atelier.drawings import check_each, draw


def test_a_png_of_exactly_this_size() -> None:
    def check(size: tuple[int, int]) -> None:
        drawn = sketch.draw_image("a lake in the mountains", *size, seed=0)
        with Image.open(io.BytesIO(drawn.data)) as image:
            assert (image.format, image.size, image.mode) == ("PNG", size, "RGB")
        assert (drawn.width, drawn.height, drawn.content_type) == (*size, "image/png")

    check_each([(16, 16), (16, 700), (256, 256), (640, 360), (300, 17)], check)


def test_the_same_words_and_seed_give_the_same_bytes() -> None:
    def digest(prompt: str, seed: int) -> str:
        return hashlib.sha256(sketch.draw_image(prompt, 120, 80, seed).data).hexdigest()

    assert digest("a fox", 7) == digest("a fox", 7)
    assert len({digest("a fox", 7), digest("a fox", 8), digest("a cat", 7)}) == 3


def test_colour_words_change_the_colours() -> None:
    def mean(prompt: str) -> tuple[int, ...]:
        return tuple(draw(prompt, 96, 96, 3).resize((1, 1), Image.Resampling.BOX).tobytes())

    red = mean("red mountains")
    green = mean("green mountains")
    assert red[0] - red[1] > green[0] - green[1] + 30


def test_large_images_are_drawn_smaller_and_enlarged() -> None:
    assert sketch._drawing_size(4096, 4096) == (2560, 2560)
    assert sketch._drawing_size(1024, 1024) == (1024, 1024)
    assert sketch._drawing_size(16, 32) == (160, 320)


@pytest.mark.parametrize("size", [(15, 100), (100, 4097), (0, 0)])
def test_other_sizes_are_refused(size: tuple[int, int]) -> None:
    with pytest.raises(BadImage, match="16 to 4096"):
        sketch.draw_image("x", *size, seed=0)


@settings(max_examples=25, deadline=None)
@given(some.text(max_size=60), some.integers(-(2**63), 2**63))
def test_any_text_and_seed_can_be_drawn(prompt: str, seed: int) -> None:
    assert sketch.draw_image(prompt, 48, 32, seed).width == 48
