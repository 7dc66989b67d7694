"""WaveSpeed: models of many providers behind one queue; each model has a path and fields of its own."""

from dataclasses import replace
from operator import attrgetter
from typing import Any

from penstock.providers.convert import (
    both,
    closest_short_side,
    data_uri,
    each_image,
    first_and_last,
    first_image,
    pixels,
    plain_base64,
    size_text,
)
from penstock.providers.spec import (
    ALWAYS_SOUND,
    COMFY,
    FailureKind,
    File,
    Model,
    Operation,
    Param,
    Price,
    Provider,
    Reply,
    Result,
    Source,
    Status,
    Task,
    bearer,
    complete_table,
    converted,
    duration,
    emulated,
    fixed,
    frame,
    ignored,
    input_video,
    passthrough,
    price_list,
    refused,
)
from penstock.values import EDIT_VIDEO

STATUS: dict[str, Status] = {
    "created": "queued",
    "processing": "in_progress",
    "completed": "completed",
    "failed": "failed",
    "timeout": "failed",
    "deleted": "failed",
    "cancelled": "cancelled",
}
# From wavespeed.ai/docs/error-codes; a job that failed has one of them.
FAILURE_KINDS: dict[int, FailureKind] = {1200: "refused", 1400: "rejected", 1401: "rejected", 1402: "rejected"}


def read_prediction(reply: Reply) -> Result:
    job = reply.json["data"]
    return Result(
        status=STATUS[job["status"]],
        ref={"id": job["id"]},
        upstream_id=job["id"],
        files=tuple(File(url=url) for url in job.get("outputs") or ()),
        failure_kind=FAILURE_KINDS.get(job.get("code") or 0, "broken"),
        message=job.get("error"),
    )


def error_message(reply: Reply) -> str | None:
    return str(reply.json["message"])


def model(name: str, path: str, task: Task, rows: tuple[Param, ...], *prices: Price) -> Model:
    poll_seconds = 5.0 if task == "video" else 1.0
    op = replace(JOB, task=task, params=complete_table(task, *rows, *OTHER_WAYS), poll_seconds=poll_seconds)
    return Model(id=name, upstream=path, op=op, prices=prices, priority=20)


def image_models(name: str, paths: tuple[str, str], most: int, rows: tuple[Param, ...], *prices: Price) -> list[Model]:
    """A model with a path that makes images and one that edits up to so many of them."""
    images = converted("images", to="images", convert=each_image(data_uri), required=True, max_items=most)
    made, edited = paths
    return [
        model(name, made, "image", (PROMPT, *rows), *prices),
        model(name, edited, "edit", (PROMPT, images, *rows), *prices),
    ]


def with_target(fields: dict[str, Any]) -> dict[str, Any]:
    """An upscaler makes an image of 2K, 4K or 8K, whatever the factor is; callers may say which."""
    return {"target_resolution": "4k", **fields}


def upscale_model(name: str, path: str, price: Price) -> Model:
    rows = (
        converted("images", to="image", convert=first_image(data_uri), required=True, max_items=1),
        passthrough("target_resolution", one_of=("2k", "4k", "8k")),
        PNG,
        *ignored("scale_factor"),
    )
    made = model(name, path, "upscale", rows, price)
    return replace(made, op=replace(made.op, adjust_body=with_target))


JOB = Operation(
    task="image",
    send="POST /api/v3/{model}",
    poll="GET /api/v3/predictions/{id}/result",
    read=read_prediction,
    model_field=None,
    params=(),
)
OTHER_WAYS = refused("enable_sync_mode", "enable_base64_output")  # of delivery, which are not read here
PROMPT = passthrough("prompt", required=True)
RATIOS = "1:1 3:2 2:3 3:4 4:3 4:5 5:4 9:16 16:9 21:9"
PNG = fixed("output_format", "png")
ULTIMATE_PATH = "wavespeed-ai/ultimate-image-upscaler"
SEEDREAM_PATHS = ("bytedance/seedream-v4.5", "bytedance/seedream-v4.5/edit")
SEEDREAM_SIZE = size_text(pixels(min_side=1024, max_side=4096, min_area=2560 * 1440), "*")
SEEDREAM = (converted("frame", to="size", convert=SEEDREAM_SIZE),)
BANANA_2 = (frame(f"{RATIOS} 1:4 4:1 1:8 8:1", "1k", "2k", "4k"), PNG)
BANANA_PRO = (frame(RATIOS, "1k", "2k", "4k"), PNG)
FRAMES = converted(
    "input_reference", to=("image", "last_image"), convert=first_and_last(data_uri), required=True, max_items=2
)
VEO_TEXT = (
    PROMPT,
    passthrough("negative_prompt"),
    duration(4, 6, 8, default=8),
    frame("16:9 9:16", "1080p", "720p"),
    passthrough("generate_audio", one_of=(True, False)),
)
VEO_IMAGE = (*VEO_TEXT, FRAMES)
KLING_4 = (PROMPT, duration(*range(3, 31), default=5), ALWAYS_SOUND)
KLING_4_TEXT = (*KLING_4, frame("16:9 9:16 1:1 21:9", "720p", "1080p"))
KLING_4_IMAGE = (*KLING_4, frame("", "720p", "1080p", to=("resolution",)), FRAMES)  # it has the shape of the image
FLASH_VSR_SIDES = {"720p": 720, "1080p": 1080, "2k": 1440, "4k": 2160}
FLASH_VSR_VIDEO = both(plain_base64, attrgetter("seconds"))
FLASH_VSR = (
    input_video(EDIT_VIDEO, to=("video", "duration"), convert=FLASH_VSR_VIDEO, max_seconds=600),
    emulated("scale_factor", low=1, default=2),
    converted("frame", to="target_resolution", convert=closest_short_side(FLASH_VSR_SIDES)),
    *ignored("prompt", "seconds"),
)

price = price_list(Source("WaveSpeed's own skills for agents on GitHub", "2026-11-15"))
comfy_price = price_list(COMFY)
kling_price = price_list(Source("copies of the models' pages in wavespeed.ai/docs", "2026-11-16"))
KLING_4_PRICES = (kling_price("0.235", resolution="1080p"), kling_price("0.157"))
VEO_PRICES = (price("0.80", "call", generate_audio=False), price("1.20", "call"))
PROVIDER = Provider(
    slug="wavespeed",
    name="WaveSpeed",
    docs="https://wavespeed.ai/docs",
    base_url="https://api.wavespeed.ai",
    key_env="WAVESPEED_API_KEY",
    auth=bearer,
    error_message=error_message,
    models=(
        *image_models("seedream-4.5", SEEDREAM_PATHS, 10, SEEDREAM, price("0.04", "image")),
        *image_models(
            "nano-banana-2",
            ("google/nano-banana-2/text-to-image", "google/nano-banana-2/edit"),
            14,
            BANANA_2,
            price("0.12", "image", resolution="2k"),
            price("0.16", "image", resolution="4k"),
            price("0.08", "image"),
        ),
        *image_models(
            "nano-banana-pro",
            ("google/nano-banana-pro/text-to-image", "google/nano-banana-pro/edit"),
            14,
            BANANA_PRO,
            price("0.24", "image", resolution="4k"),
            price("0.14", "image"),
        ),
        upscale_model("wavespeed/image-upscaler", "wavespeed-ai/image-upscaler", price("0.01", "image")),
        upscale_model("wavespeed/seedvr2-image", "wavespeed-ai/seedvr2/image", comfy_price("0.01", "image")),
        upscale_model("wavespeed/ultimate-image-upscaler", ULTIMATE_PATH, comfy_price("0.06", "image")),
        model(
            "wavespeed/flashvsr",
            "wavespeed-ai/flashvsr",
            "video",
            FLASH_VSR,
            comfy_price("0.012", target_resolution="720p"),
            comfy_price("0.024", target_resolution="2k"),
            comfy_price("0.032", target_resolution="4k"),
            comfy_price("0.018"),
        ),
        model("kling-4", "kwaivgi/kling-v4.0/text-to-video", "video", KLING_4_TEXT, *KLING_4_PRICES),
        model("kling-4", "kwaivgi/kling-v4.0/image-to-video", "video", KLING_4_IMAGE, *KLING_4_PRICES),
        model("veo-3.1-fast", "google/veo3.1-fast/text-to-video", "video", VEO_TEXT, *VEO_PRICES),
        model("veo-3.1-fast", "google/veo3.1-fast/image-to-video", "video", VEO_IMAGE, *VEO_PRICES),
    ),
)
