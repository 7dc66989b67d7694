"""Measure how much processor time the renderers of the built-in provider take.

python -m bench.atelier [--seconds 5] [--short]
"""

import argparse
import time
from collections.abc import Iterator
from contextlib import contextmanager

from penstock_atelier.renderers import clip, enlarge, retouch, sketch

PROMPTS = (
    "mountains over a lake at sunset",
    "city skyline at night",
    "a fox in a snowy forest",
    "underwater reef with fish",
    "a vase of flowers and two lemons",
    "flow",
    "bauhaus",
    "strata",
)
EDITS = ("warmer", "pencil sketch", "watercolour", "add a moon and a boat")


@contextmanager
def timed(label: str) -> Iterator[list[int]]:
    """Print the processor time of the block, and the size in bytes that it appended to the list."""
    sizes: list[int] = []
    started = time.process_time()
    yield sizes
    seconds = time.process_time() - started
    print(f"    {label:36} {seconds:6.2f} s  {f'{sizes[0] / 1e6:.1f} MB' if sizes else ''}", flush=True)


def render_video(prompt: str, source: bytes | None, seconds: float) -> int:
    """Render a video and return its size in bytes."""
    return len(clip.render_video(prompt, source, seconds, 1280, 720, 3, lambda fraction: None).data)


def main(seconds: float, short: bool) -> None:
    prompts = PROMPTS[:1] if short else PROMPTS
    print("sketch, 1024 x 1024, with the encoding as PNG:")
    for prompt in prompts:
        with timed(prompt) as sizes:
            sizes.append(len(sketch.draw_image(prompt, 1024, 1024, 3).data))
    source = sketch.draw_image(PROMPTS[0], 1024, 1024, 3).data
    print("retouch and enlarge, 1024 x 1024:")
    for prompt in EDITS[:1] if short else EDITS:
        with timed(prompt):
            retouch.edit_image([source], prompt, None, 1024, 1024, seed=0)
    with timed("enlarge by 2"):
        enlarge.enlarge_image(source, 2)
    print(f"video, {seconds:g} s of 1280 x 720 at 24 frames a second:")
    for prompt in prompts:
        with timed(prompt) as sizes:
            sizes.append(render_video(prompt, None, seconds))
    with timed("with an input image") as sizes:
        sizes.append(render_video("", source, seconds))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=5.0, help="length of each video")
    parser.add_argument("--short", action="store_true", help="one prompt of each kind, one second of video")
    options = parser.parse_args()
    main(1.0 if options.short else options.seconds, options.short)
