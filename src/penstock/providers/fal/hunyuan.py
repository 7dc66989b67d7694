"""Tencent's HunyuanVideo 1.5 on fal, whose length is a number of frames."""

from penstock.providers.convert import on_off
from penstock.providers.fal.queue import other_price
from penstock.providers.fal.videos import NEGATIVE_PROMPT, ONE_IMAGE, SEED, video_models
from penstock.providers.spec import NEVER_SOUND, converted, duration, frame


def frames(seconds: float) -> int:
    """At 24 frames a second, and one more; 121 is the most."""
    return round(24 * seconds) + 1


RATIO = frame("16:9 9:16")
# fal bills 0.075 dollars a second. The length is sent as a number of frames, so each number has its price.
SHORT_USD = {1: "0.075", 2: "0.15", 3: "0.225", 4: "0.3"}
FIVE_SECONDS_USD = "0.375"
MODELS = video_models(
    "hunyuan-video-1.5",
    "fal-ai/hunyuan-video-v1.5/text-to-video",
    (RATIO, RATIO),
    (
        duration(*SHORT_USD, 5, to="num_frames", convert=frames, default=5),
        NEGATIVE_PROMPT,
        SEED,
        NEVER_SOUND,
        converted("prompt_enhancement", to="enable_prompt_expansion", convert=on_off(True, False)),
    ),
    ONE_IMAGE,
    *(other_price(usd, "call", num_frames=frames(seconds)) for seconds, usd in SHORT_USD.items()),
    other_price(FIVE_SECONDS_USD, "call"),
)
