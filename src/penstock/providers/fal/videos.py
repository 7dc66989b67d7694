"""Videos on fal; each model has an endpoint for text and one for images."""

from typing import Any

from penstock.providers.convert import data_uri, first_and_last, first_image, number_text
from penstock.providers.fal.queue import PROMPT, litellm_price, model, other_price, stored_price
from penstock.providers.spec import (
    ALWAYS_SOUND,
    NEVER_SOUND,
    Model,
    Param,
    Price,
    converted,
    duration,
    frame,
    passthrough,
    renamed,
)

Frames = tuple[Param, Param]  # for text, and for images, where the image decides the aspect ratio


def video_models(
    name: str, text_path: str, frames: Frames, rows: tuple[Param, ...], images: Param, *prices: Price, **fields: Any
) -> tuple[Model, Model]:
    text_frame, image_frame = frames
    image_path = text_path.removesuffix("/text-to-video") + "/image-to-video"
    return (
        model(name, text_path, "video", (PROMPT, text_frame, *rows), prices, **fields),
        model(name, image_path, "video", (PROMPT, image_frame, images, *rows), prices, **fields),
    )


def both_frames(ratios: str, *resolutions: str) -> Frames:
    return frame(ratios, *resolutions), frame("", *resolutions)


def first_and_last_images(first: str, last: str) -> Param:
    return converted("input_reference", to=(first, last), convert=first_and_last(data_uri), required=True, max_items=2)


def duration_text(*seconds: float, default: float) -> Param:
    """The row for `seconds`, for models that take it as text."""
    return duration(*seconds, convert=number_text, default=default)


def silent_by_default(fields: dict[str, Any]) -> dict[str, Any]:
    """Ask for a video without sound unless the caller wants sound, which costs half as much again or more."""
    return {"generate_audio": False, **fields}


NEGATIVE_PROMPT = passthrough("negative_prompt")
SEED = passthrough("seed")
SOUND = passthrough("generate_audio", one_of=(True, False))
ONE_IMAGE = converted("input_reference", to="image_url", convert=first_image(data_uri), required=True, max_items=1)
START_AND_END = first_and_last_images("start_image_url", "end_image_url")
IMAGE_AND_END = first_and_last_images("image_url", "end_image_url")
IMAGE_AND_TAIL = first_and_last_images("image_url", "tail_image_url")

KLING_FRAMES = both_frames("16:9 9:16 1:1")
KLING_4_FRAMES = both_frames("16:9 9:16 1:1 21:9", "720p", "1080p")
WAN_FRAMES = both_frames("16:9 9:16 1:1 4:3 3:4", "720p", "1080p")
SEEDANCE_FRAMES = both_frames("16:9 9:16 1:1 4:3 3:4 21:9", "720p", "480p", "1080p", "4k")
VIDU_FRAMES = both_frames("16:9 9:16 1:1 4:3 3:4", "720p", "540p", "1080p")
GROK_FRAMES = both_frames("16:9 9:16 1:1 4:3 3:4 3:2 2:3", "720p", "480p")
NO_FRAMES = (frame(), frame())
KLING_3_ROWS = (duration_text(*range(3, 16), default=5), NEGATIVE_PROMPT, SOUND)

MODELS = (
    *video_models(
        "kling-2.5-turbo",
        "fal-ai/kling-video/v2.5-turbo/pro/text-to-video",
        KLING_FRAMES,
        (duration_text(5, 10, default=5), NEGATIVE_PROMPT, NEVER_SOUND),
        IMAGE_AND_TAIL,
        stored_price("0.07"),
    ),
    *video_models(
        "kling-2.6",
        "fal-ai/kling-video/v2.6/pro/text-to-video",
        KLING_FRAMES,
        (duration_text(5, 10, default=5), NEGATIVE_PROMPT, SOUND),
        START_AND_END,
        stored_price("0.14", generate_audio=True),
        stored_price("0.07"),
        adjust_body=silent_by_default,
    ),
    *video_models(
        "kling-3",
        "fal-ai/kling-video/v3/standard/text-to-video",
        KLING_FRAMES,
        KLING_3_ROWS,
        START_AND_END,
        other_price("0.126", generate_audio=True),
        other_price("0.084"),
        adjust_body=silent_by_default,
    ),
    *video_models(
        "kling-3-pro",
        "fal-ai/kling-video/v3/pro/text-to-video",
        KLING_FRAMES,
        KLING_3_ROWS,
        START_AND_END,
        other_price("0.168", generate_audio=True),
        other_price("0.112"),
        adjust_body=silent_by_default,
    ),
    *video_models(
        "kling-4",
        "kling/v4/text-to-video",
        KLING_4_FRAMES,
        (duration(*range(3, 31), default=5), ALWAYS_SOUND),
        START_AND_END,
        stored_price("0.235", resolution="1080p"),
        stored_price("0.157"),
    ),
    *video_models(
        "wan-2.6",
        "wan/v2.6/text-to-video",
        WAN_FRAMES,
        (duration_text(5, 10, 15, default=5), NEGATIVE_PROMPT, SEED, ALWAYS_SOUND),
        ONE_IMAGE,
        stored_price("0.15", resolution="1080p"),
        stored_price("0.10"),
    ),
    *video_models(
        "wan-2.7",
        "fal-ai/wan/v2.7/text-to-video",
        WAN_FRAMES,
        (duration(*range(2, 16), default=5), NEGATIVE_PROMPT, SEED, ALWAYS_SOUND),
        IMAGE_AND_END,
        stored_price("0.15", resolution="1080p"),
        stored_price("0.10"),
    ),
    *video_models(
        "seedance-2",
        "bytedance/seedance-2.0/text-to-video",
        SEEDANCE_FRAMES,
        (duration_text(*range(4, 16), default=5), renamed("user", to="end_user_id"), SOUND, SEED),
        IMAGE_AND_END,
        litellm_price("0.1346", resolution="480p"),
        litellm_price("0.682", resolution="1080p"),
        litellm_price("1.5552", resolution="4k"),
        litellm_price("0.3034"),
    ),
    *video_models(
        "hailuo-2.3",
        "fal-ai/minimax/hailuo-2.3/standard/text-to-video",
        NO_FRAMES,
        (duration_text(6, 10, default=6), NEVER_SOUND),
        ONE_IMAGE,
        other_price("0.56", "call", duration="10"),
        other_price("0.28", "call"),
    ),
    *video_models(
        "vidu-q3",
        "fal-ai/vidu/q3/text-to-video",
        VIDU_FRAMES,
        (duration(*range(1, 17), default=5), renamed("generate_audio", to="audio", one_of=(True, False)), SEED),
        IMAGE_AND_END,
        stored_price("0.07", resolution="540p"),
        stored_price("0.154"),
    ),
    *video_models(
        "grok-imagine-video",
        "xai/grok-imagine-video/text-to-video",
        GROK_FRAMES,
        (duration(*range(1, 16), default=6), ALWAYS_SOUND),
        ONE_IMAGE,
        stored_price("0.05", input_usd="0.002", resolution="480p"),
        stored_price("0.07", input_usd="0.002"),
    ),
)
