"""How long the built-in renderers take on one core, in processor time."""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from penstock.atelier.renderers import clip, enlarge, retouch, sketch

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


def timed(label: str, started: float, note: str = "") -> None:
    print(f"    {label:36} {time.process_time() - started:6.2f} s  {note}")


def main(seconds: float) -> None:
    print("sketch, 1024 x 1024, PNG included:")
    for prompt in PROMPTS:
        started = time.process_time()
        drawn = sketch.draw_image(prompt, 1024, 1024, 3)
        timed(prompt, started, f"{len(drawn.data) / 1e6:.1f} MB")
    print("retouch and enlarge, 1024 x 1024:")
    source = sketch.draw_image(PROMPTS[0], 1024, 1024, 3).data
    for prompt in ("warmer", "pencil sketch", "watercolour", "add a moon and a boat"):
        started = time.process_time()
        retouch.edit_image([source], prompt, None, 1024, 1024, seed=0)
        timed(prompt, started)
    started = time.process_time()
    enlarge.enlarge_image(source, 2)
    timed("twice as large", started)
    print(f"video, {seconds:g} s of 1280 x 720 at 24 frames a second:")
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "video.mp4")
        for prompt in PROMPTS:
            started = time.process_time()
            video = clip.render_video(path, prompt, None, seconds, 1280, 720, 3, lambda fraction: None)
            timed(prompt, started, f"{video.bytes / 1e6:.1f} MB")
        started = time.process_time()
        video = clip.render_video(path, "", source, seconds, 1280, 720, 0, lambda fraction: None)
        timed("over an image", started, f"{video.bytes / 1e6:.1f} MB")


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 5)
