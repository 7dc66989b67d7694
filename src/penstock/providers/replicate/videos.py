"""Videos on Replicate; each model takes text and images with one endpoint."""

from collections.abc import Sequence
from typing import Any

from penstock.providers.convert import first_and_last, first_image
from penstock.providers.replicate.predictions import PROMPT, model, other_price, uploaded_url
from penstock.providers.spec import NEVER_SOUND, converted, duration, frame, passthrough
from penstock.values import InputFile


def images_and_ratio(images: Sequence[InputFile]) -> tuple[str, str | None, str]:
    """The first image, the last image or None, and the aspect ratio that is closer to that of the first."""
    return *first_and_last(uploaded_url)(images), "9:16" if images[0].height > images[0].width else "16:9"


def sound_by_default(fields: dict[str, Any]) -> dict[str, Any]:
    """Ask for sound unless the caller says otherwise, as Google's own service does."""
    return {"input": {"generate_audio": True, **fields}}


VEO = (
    PROMPT,
    passthrough("negative_prompt"),
    passthrough("seed"),
    duration(4, 6, 8, default=8),
    frame("16:9 9:16", "720p", "1080p"),
    passthrough("generate_audio", one_of=(True, False)),
    converted(
        "input_reference",
        to=("image", "last_frame", "aspect_ratio"),
        convert=images_and_ratio,
        max_items=2,
    ),
)
SEEDANCE = (
    PROMPT,
    passthrough("seed"),
    duration(*range(3, 13), default=5),
    passthrough("camera_fixed", one_of=(True, False)),
    NEVER_SOUND,
    frame("16:9 9:16 1:1 4:3 3:4 21:9 9:21", "720p", "480p", "1080p"),
    converted(
        "input_reference",
        to=("image", "last_frame_image"),
        convert=first_and_last(uploaded_url),
        max_items=2,
    ),
)
HAILUO = (
    PROMPT,
    duration(6, 10, default=6),
    frame("", "768p", "1080p"),
    NEVER_SOUND,
    converted("input_reference", to="first_frame_image", convert=first_image(uploaded_url), max_items=1),
)

MODELS = (
    model(
        "veo-3.1",
        "google/veo-3.1",
        "video",
        VEO,
        other_price("0.20", generate_audio=False),
        other_price("0.40"),
        adjust_body=sound_by_default,
    ),
    model(
        "veo-3.1-fast",
        "google/veo-3.1-fast",
        "video",
        VEO,
        other_price("0.10", generate_audio=False),
        other_price("0.15"),
        adjust_body=sound_by_default,
    ),
    model(
        "seedance-1-pro",
        "bytedance/seedance-1-pro",
        "video",
        SEEDANCE,
        other_price("0.03", resolution="480p"),
        other_price("0.15", resolution="1080p"),
        other_price("0.06"),
    ),
    model(
        "hailuo-2.3",
        "minimax/hailuo-2.3",
        "video",
        HAILUO,
        other_price("0.49", "call", resolution="1080p"),
        other_price("0.56", "call", duration=10),
        other_price("0.28", "call"),
    ),
)
