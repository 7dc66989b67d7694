"""Paint a picture from the words of a prompt: always the same one for the same words, seed and size."""

from __future__ import annotations

from PIL import Image, ImageEnhance

from penstock import pictures
from penstock.studio import canvas, scene
from penstock.studio.canvas import Size

SHORTEST, LONGEST = 16, 4096
COMFORTABLE = 160  # smaller pictures are painted at this size and reduced, or nothing would be seen in them


def paint(
    prompt: str, width: int, height: int, seed: int = 0, negative: str = "", style: str = "vivid"
) -> pictures.Picture:
    """A PNG of exactly this size."""
    return pictures.encode(picture(prompt, width, height, seed, negative, style), "png")


def picture(
    prompt: str, width: int, height: int, seed: int = 0, negative: str = "", style: str = "vivid"
) -> Image.Image:
    check_size(width, height)
    size = _painted_size(width, height)
    painted = canvas.flatten(scene.compose(prompt, negative, size, seed))
    if style == "natural":
        painted = ImageEnhance.Color(painted).enhance(0.8)
    finished = canvas.finish(painted, canvas.dice(prompt, seed, "grain"))
    return finished if size == (width, height) else finished.resize((width, height), Image.Resampling.LANCZOS)


def check_size(width: int, height: int) -> None:
    if not (SHORTEST <= width <= LONGEST and SHORTEST <= height <= LONGEST):
        raise pictures.BadPicture(f"Width and height must be from {SHORTEST} to {LONGEST}.")


def _painted_size(width: int, height: int) -> Size:
    factor = min(COMFORTABLE / min(width, height), LONGEST / max(width, height))
    return (width, height) if factor <= 1 else (round(width * factor), round(height * factor))
