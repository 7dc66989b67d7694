"""Draw an image from the words of a prompt: always the same one for the same words, seed and size."""

from __future__ import annotations

from penstock.imaging import convert
from penstock_atelier.renderers import canvas, scene
from penstock_atelier.renderers.canvas import Size
from penstock_atelier.renderers.enlarge import scale

MIN_SIDE = 16
MAX_SIDE = 4096
SMALLEST_DRAWN = 160  # smaller images are drawn at this size and reduced, or nothing would be seen in them
LARGEST_DRAWN = 2560  # larger images are drawn at this size and enlarged, or their many layers would not fit in memory


def draw_image(prompt: str, width: int, height: int, seed: int) -> convert.ImageFile:
    """A PNG of exactly this size. Raises BadImage for a size outside the limits."""
    check_size(width, height)
    drawn = canvas.flatten(scene.compose(prompt, _drawing_size(width, height), seed))
    image = canvas.finish(scale(drawn, (width, height)), canvas.seeded_rng(prompt, seed, "grain"))
    return convert.encode(image, "png")


def check_size(width: int, height: int) -> None:
    """Raise BadImage unless both sides are within the limits."""
    if not (MIN_SIDE <= width <= MAX_SIDE and MIN_SIDE <= height <= MAX_SIDE):
        raise convert.BadImage(f"Width and height must be from {MIN_SIDE} to {MAX_SIDE}.")


def _drawing_size(width: int, height: int) -> Size:
    """The size at which an image is drawn before it is scaled, in the same shape."""
    factor = min(max(1.0, SMALLEST_DRAWN / min(width, height)), LARGEST_DRAWN / max(width, height))
    return max(1, round(width * factor)), max(1, round(height * factor))
