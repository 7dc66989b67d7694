"""Kling's omni models, which take frames or references in one list of images, or a video to edit."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from penstock.providers.convert import file_url, plain_base64
from penstock.providers.kling.videos import (
    FIVE_OR_TEN,
    MAX_IMAGE_BYTES,
    OWN_ID,
    PROMPT,
    SOUND,
    TEXT_TO_VIDEO,
    THREE_TO_FIFTEEN,
    price,
)
from penstock.providers.spec import (
    NEVER_SOUND,
    Model,
    Param,
    Price,
    complete_table,
    converted,
    fixed,
    frame,
    input_video,
)
from penstock.values import EDIT_VIDEO, FIRST_FRAME, LAST_FRAME, InputFile


def image_list(images: Sequence[InputFile]) -> list[dict[str, object]]:
    """The frames with their type; references have none."""
    types = {FIRST_FRAME: {"type": "first_frame"}, LAST_FRAME: {"type": "end_frame"}}
    return [{"image_url": plain_base64(image), **types.get(image.role, {})} for image in images]


def video_list(video: InputFile) -> list[dict[str, object]]:
    """The video that is edited. Its sound is kept: the models make none for it."""
    return [{"video_url": file_url(video), "refer_type": "base", "keep_original_sound": "yes"}]


def keep_shape_of_video(fields: dict[str, Any]) -> dict[str, Any]:
    """An edited video has the length and the shape of the input, and takes neither field."""
    if "video_list" not in fields:
        return fields
    return {name: value for name, value in fields.items() if name not in ("duration", "aspect_ratio")}


OMNI = replace(
    TEXT_TO_VIDEO,
    send="POST /v1/videos/omni-video",
    poll="GET /v1/videos/omni-video/{id}",
    adjust_body=keep_shape_of_video,
)
IMAGES = converted("input_reference", to="image_list", convert=image_list, max_items=7, max_bytes=MAX_IMAGE_BYTES)
VIDEO = input_video(
    EDIT_VIDEO,
    to="video_list",
    convert=video_list,
    min_seconds=3,
    max_seconds=10,
    max_bytes=200 * 10**6,
    by_url=True,
    required=False,
)


def omni_model(name: str, upstream: str, mode: str, seconds: Param, *rows: Param, prices: tuple[Price, ...]) -> Model:
    """A model in one of its modes: `std` makes 720p, `pro` 1080p. The first price is that of edits."""
    shared = (PROMPT, seconds, fixed("mode", mode), OWN_ID, frame("16:9 9:16 1:1"), IMAGES, VIDEO, *rows)
    return Model(
        id=name,
        upstream=upstream,
        op=replace(OMNI, params=complete_table("video", *shared)),
        prices=(replace(prices[0], when={"input_video": True}), *prices[1:]),
    )


O1 = (FIVE_OR_TEN, NEVER_SOUND)
MODELS = (
    omni_model("kling-o1", "kling-video-o1", "std", *O1, prices=(price("0.126"), price("0.084"))),
    omni_model("kling-o1-pro", "kling-video-o1", "pro", *O1, prices=(price("0.168"), price("0.112"))),
    omni_model(
        "kling-3-omni",
        "kling-v3-omni",
        "std",
        THREE_TO_FIFTEEN,
        *SOUND,
        prices=(price("0.126"), price("0.112", sound="on"), price("0.084")),
    ),
    omni_model(
        "kling-3-omni-pro",
        "kling-v3-omni",
        "pro",
        THREE_TO_FIFTEEN,
        *SOUND,
        prices=(price("0.168"), price("0.14", sound="on"), price("0.112")),
    ),
)
