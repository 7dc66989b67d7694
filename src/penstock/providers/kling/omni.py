"""Kling's omni models, which take frames or references in one list of images."""

from collections.abc import Sequence
from dataclasses import replace

from penstock.providers.convert import plain_base64
from penstock.providers.kling.videos import (
    FIVE_OR_TEN,
    MAX_IMAGE_BYTES,
    PROMPT,
    SOUND,
    TEXT_TO_VIDEO,
    THREE_TO_FIFTEEN,
    price,
)
from penstock.providers.spec import Model, Param, Price, complete_table, converted, fixed, frame
from penstock.values import InputImage


def image_list(images: Sequence[InputImage]) -> list[dict[str, str]]:
    """One or two images are the first and the last frame; more are references."""
    roles = ("first_frame", "end_frame") if len(images) <= 2 else ("",) * len(images)
    return [
        {"image_url": plain_base64(image), **({"type": role} if role else {})}
        for image, role in zip(images, roles, strict=False)
    ]


OMNI = replace(TEXT_TO_VIDEO, send="POST /v1/videos/omni-video", poll="GET /v1/videos/omni-video/{id}")
IMAGES = converted("input_reference", to="image_list", convert=image_list, max_items=7, max_bytes=MAX_IMAGE_BYTES)


def omni_model(name: str, upstream: str, mode: str, seconds: Param, *rows: Param, prices: tuple[Price, ...]) -> Model:
    """A model in one of its modes: `std` makes 720p, `pro` 1080p."""
    shared = (PROMPT, seconds, fixed("mode", mode), frame("16:9 9:16 1:1"), IMAGES, *rows)
    return Model(
        id=name,
        upstream=upstream,
        op=replace(OMNI, params=complete_table("video", *shared)),
        prices=prices,
    )


MODELS = (
    omni_model("kling-o1", "kling-video-o1", "std", FIVE_OR_TEN, prices=(price("0.084"),)),
    omni_model("kling-o1-pro", "kling-video-o1", "pro", FIVE_OR_TEN, prices=(price("0.112"),)),
    omni_model(
        "kling-3-omni",
        "kling-v3-omni",
        "std",
        THREE_TO_FIFTEEN,
        SOUND,
        prices=(price("0.112", sound="on"), price("0.084")),
    ),
    omni_model(
        "kling-3-omni-pro",
        "kling-v3-omni",
        "pro",
        THREE_TO_FIFTEEN,
        SOUND,
        prices=(price("0.14", sound="on"), price("0.112")),
    ),
)
