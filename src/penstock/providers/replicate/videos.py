"""Films on Replicate, by models that take words and pictures alike."""

from typing import Any

from penstock.providers.convert import first_and_last, first_image
from penstock.providers.replicate.predictions import PROMPT, left, model, usd
from penstock.providers.spec import converted, duration, passthrough, frame
from penstock.values import InputImage


def veo(found: list[InputImage]) -> tuple[str, str | None, str]:
    """A film that begins with a picture has its shape, as far as there is a choice."""
    return *first_and_last(left)(found), "9:16" if found[0].height > found[0].width else "16:9"


def loud(fields: dict[str, Any]) -> dict[str, Any]:
    """As Google's own service does it."""
    return {"input": {"generate_audio": True, **fields}}


VEO = (
    PROMPT,
    passthrough("negative_prompt"),
    duration(4, 6, 8, default=8),
    frame("16:9 9:16", "720p", "1080p"),
    passthrough("generate_audio", one_of=(True, False)),
    converted("input_reference", ("image", "last_frame", "aspect_ratio"), veo, max_items=2),
)
SEEDANCE = (
    PROMPT,
    duration(*range(2, 13), default=5),
    passthrough("camera_fixed", one_of=(True, False)),
    frame("16:9 9:16 1:1 4:3 3:4 21:9 9:21", "720p", "480p", "1080p"),
    converted("input_reference", ("image", "last_frame_image"), first_and_last(left), max_items=2),
)
HAILUO = (
    PROMPT,
    duration(6, 10, default=6),
    frame("", "768p", "1080p"),
    converted("input_reference", "first_frame_image", first_image(left), max_items=1),
)

MODELS = (
    model("veo-3.1", "google/veo-3.1", "video", VEO, usd("0.20", generate_audio=False), usd("0.40"), adjust_body=loud),
    model(
        "veo-3.1-fast",
        "google/veo-3.1-fast",
        "video",
        VEO,
        usd("0.10", generate_audio=False),
        usd("0.15"),
        adjust_body=loud,
    ),
    model(
        "seedance-1-pro",
        "bytedance/seedance-1-pro",
        "video",
        SEEDANCE,
        usd("0.03", resolution="480p"),
        usd("0.15", resolution="1080p"),
        usd("0.06"),
    ),
    model(
        "hailuo-2.3",
        "minimax/hailuo-2.3",
        "video",
        HAILUO,
        usd("0.49", "call", resolution="1080p"),
        usd("0.56", "call", duration=10),
        usd("0.28", "call"),
    ),
)
