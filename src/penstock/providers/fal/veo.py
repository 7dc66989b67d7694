"""Veo on fal: an endpoint each for text, for a first frame, for both frames, and for reference images."""

from dataclasses import replace

from penstock.providers.convert import with_unit
from penstock.providers.fal.queue import PROMPT, model, stored_price
from penstock.providers.fal.references import references
from penstock.providers.fal.videos import (
    NEGATIVE_PROMPT,
    ONE_IMAGE,
    SEED,
    SOUND,
    both_frames,
    first_and_last_images,
    video_models,
)
from penstock.providers.spec import duration

FRAMES = both_frames("16:9 9:16", "720p", "1080p", "4k")
SECONDS = with_unit("s")
ROWS = (duration(4, 6, 8, convert=SECONDS, default=8), NEGATIVE_PROMPT, SOUND, SEED)
BOTH = replace(first_and_last_images("first_frame_url", "last_frame_url"), min_items=2)
BOTH_ROWS = (PROMPT, FRAMES[1], BOTH, *ROWS)
REFERENCE_ROWS = (PROMPT, FRAMES[0], references("image_urls", 3), duration(8, convert=SECONDS, default=8), SOUND)
PRICES = (
    stored_price("0.40", generate_audio=False, resolution="4k"),
    stored_price("0.20", generate_audio=False),
    stored_price("0.60", resolution="4k"),
    stored_price("0.40"),
)
FAST_PRICES = (
    stored_price("0.30", generate_audio=False, resolution="4k"),
    stored_price("0.10", generate_audio=False),
    stored_price("0.35", resolution="4k"),
    stored_price("0.15"),
)
MODELS = (
    *video_models("veo-3.1", "fal-ai/veo3.1", FRAMES, ROWS, ONE_IMAGE, *PRICES),
    model("veo-3.1", "fal-ai/veo3.1/first-last-frame-to-video", "video", BOTH_ROWS, PRICES),
    model("veo-3.1", "fal-ai/veo3.1/reference-to-video", "video", REFERENCE_ROWS, PRICES),
    *video_models("veo-3.1-fast", "fal-ai/veo3.1/fast", FRAMES, ROWS, ONE_IMAGE, *FAST_PRICES),
    model("veo-3.1-fast", "fal-ai/veo3.1/fast/first-last-frame-to-video", "video", BOTH_ROWS, FAST_PRICES),
)
