"""Paint a picture from the words of a prompt: always the same one for the same words, seed and size."""

from __future__ import annotations

from PIL import Image, ImageEnhance

from penstock.atelier.renderers import canvas, scene
from penstock.atelier.renderers.canvas import Size
from penstock.atelier.renderers.enlarge import scale
from penstock.imaging import convert

SHORTEST, LONGEST = 16, 4096
COMFORTABLE = 160  # smaller pictures are painted at this size and reduced, or nothing would be seen in them
SPACIOUS = 2560  # larger ones are painted at this size and enlarged, or their many layers would not fit in memory


def paint(
    prompt: str, width: int, height: int, seed: int = 0, negative: str = "", style: str = "vivid"
) -> convert.ImageFile:
    """A PNG of exactly this size."""
    return convert.encode(picture(prompt, width, height, seed, negative, style), "png")


def picture(
    prompt: str, width: int, height: int, seed: int = 0, negative: str = "", style: str = "vivid"
) -> Image.Image:
    check_size(width, height)
    painted = canvas.flatten(scene.compose(prompt, negative, _painted_size(width, height), seed))
    if style == "natural":
        painted = ImageEnhance.Color(painted).enhance(0.8)
    return canvas.finish(scale(painted, (width, height)), canvas.dice(prompt, seed, "grain"))


def check_size(width: int, height: int) -> None:
    if not (SHORTEST <= width <= LONGEST and SHORTEST <= height <= LONGEST):
        raise convert.BadImage(f"Width and height must be from {SHORTEST} to {LONGEST}.")


def _painted_size(width: int, height: int) -> Size:
    factor = min(max(1.0, COMFORTABLE / min(width, height)), SPACIOUS / max(width, height))
    return max(1, round(width * factor)), max(1, round(height * factor))
