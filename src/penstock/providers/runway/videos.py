"""Runway's own videos, Google's Veo videos, and Magnific's upscaler of videos."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from penstock.providers.convert import both, closest_label, closest_short_side, data_uri
from penstock.providers.runway.tasks import MAX_INPUT_BYTES, PROMPT, SEED, TASK, price, size_labels
from penstock.providers.spec import (
    COMFY,
    NEVER_SOUND,
    Model,
    Operation,
    Param,
    Price,
    complete_table,
    converted,
    duration,
    emulated,
    frame,
    ignored,
    input_video,
    passthrough,
    price_list,
    renamed,
)
from penstock.values import EDIT_VIDEO, Frame, InputFile


def frame_images(images: Sequence[InputFile]) -> list[dict[str, object]]:
    """The image that the video begins with, and the one that it ends with if there are two."""
    return [
        {"uri": data_uri(image), "position": position}
        for image, position in zip(images, ("first", "last"), strict=False)
    ]


def input_images(labels: Mapping[str, str], max_images: int) -> Param:
    """The row for input images; the first one also decides the size of the video."""
    pick = closest_label(dict(labels))

    def size_of_first(images: Sequence[InputFile]) -> str:
        return pick(Frame(images[0].width, images[0].height))

    return converted(
        "input_reference",
        to=("promptImage", "ratio"),
        convert=both(frame_images, size_of_first),
        required=True,
        max_items=max_images,
        max_bytes=MAX_INPUT_BYTES,
    )


def sound_by_default(fields: dict[str, Any]) -> dict[str, Any]:
    """Ask for sound unless the caller says otherwise, as Google's own service does."""
    return {"audio": True, **fields}


comfy_price = price_list(COMFY)
GEN_TEXT_SIZES = size_labels("1280x720 720x1280")
GEN_SIZES = size_labels("1280x720 720x1280 1104x832 832x1104 960x960 1584x672")
GEN_ROWS = (duration(*range(2, 11), default=5), NEVER_SOUND)
VEO_SIZES = size_labels("1280x720 720x1280 1920x1080 1080x1920")
VEO_ROWS = (
    duration(4, 6, 8, default=8),
    renamed("negative_prompt", to="negativePrompt"),
    renamed("generate_audio", to="audio", one_of=(True, False)),
    passthrough("audio", one_of=(True, False)),
)


def text_to_video(labels: Mapping[str, str], *rows: Param, **fields: Any) -> Operation:
    size = converted("frame", to="ratio", convert=closest_label(dict(labels)), default="16:9")
    return replace(TASK, params=complete_table("video", PROMPT, SEED, size, *rows), **fields)


def image_to_video(images: Param, *rows: Param, **fields: Any) -> Operation:
    params = complete_table("video", PROMPT, SEED, frame(), images, *rows)
    return replace(TASK, send="POST /image_to_video", params=params, **fields)


def veo_models(name: str, upstream: str, *prices: Price) -> tuple[Model, ...]:
    images = input_images(VEO_SIZES, 2)
    operations = (
        text_to_video(VEO_SIZES, *VEO_ROWS, adjust_body=sound_by_default),
        image_to_video(images, *VEO_ROWS, adjust_body=sound_by_default),
    )
    return tuple(Model(id=name, upstream=upstream, op=op, prices=prices, priority=20) for op in operations)


ALEPH = replace(
    TASK,
    send="POST /video_to_video",
    params=complete_table(
        "video",
        PROMPT,
        SEED,
        *ignored("seconds"),
        input_video(EDIT_VIDEO, to="videoUri", convert=data_uri, max_seconds=30, max_bytes=MAX_INPUT_BYTES),
    ),
)
UPSCALE = replace(
    TASK,
    send="POST /video_upscale",
    params=complete_table(
        "video",
        *ignored("prompt", "seconds"),
        input_video(EDIT_VIDEO, to="videoUri", convert=data_uri, max_bytes=MAX_INPUT_BYTES),
        emulated("scale_factor", low=1, default=2),
        converted(
            "frame",
            to="resolution",
            convert=closest_short_side({"720p": 720, "1k": 1080, "2k": 1440, "4k": 2160}),
        ),
        passthrough("creativity", low=0, high=100),
        passthrough("sharpen", low=0, high=100),
        passthrough("smartGrain", low=0, high=100),
        passthrough("flavor", one_of=("vivid", "natural")),
    ),
    priced_extras=frozenset({"fpsBoost"}),
)
GEN_IMAGE_TO_VIDEO = image_to_video(input_images(GEN_SIZES, 1), *GEN_ROWS)
GEN_45 = (text_to_video(GEN_TEXT_SIZES, *GEN_ROWS), GEN_IMAGE_TO_VIDEO)
MODELS = (
    *(Model(id="gen-4.5", upstream="gen4.5", op=op, prices=(price("0.12"),)) for op in GEN_45),
    Model(id="runway/gen4-turbo", upstream="gen4_turbo", op=GEN_IMAGE_TO_VIDEO, prices=(price("0.05"),)),
    Model(id="runway/aleph-2", upstream="aleph2", op=ALEPH, prices=(comfy_price("0.28"),)),
    Model(
        id="magnific/video-upscale",
        upstream="magnific_video_upscaler_creative",
        op=UPSCALE,
        prices=(
            price("0.012", "frame", resolution="4k"),
            price("0.009", "frame", resolution="2k"),
            price("0.007", "frame"),
        ),
    ),
    *veo_models("veo-3.1", "veo3.1", price("0.20", audio=False), price("0.40")),
    *veo_models("veo-3.1-fast", "veo3.1_fast", price("0.10", audio=False), price("0.15")),
)
