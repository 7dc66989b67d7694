"""DashScope: Alibaba's Wan and HappyHorse videos; newer ones take a list of images, older ones a field for each."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from penstock.providers.convert import closest_label, data_uri, file_url, first_image
from penstock.providers.dashscope_errors import code_kind, error_message, failure_kind
from penstock.providers.reported import value_at
from penstock.providers.spec import (
    ALWAYS_SOUND,
    COMFY,
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
    bearer,
    complete_table,
    converted,
    duration,
    frame,
    ignored,
    input_video,
    price_list,
    renamed,
)
from penstock.values import EDIT_VIDEO, InputFile

# UNKNOWN is left out on purpose: a task that is not found may have been made. It is polled until its time is up.
STATUS: dict[str, Status] = {
    "PENDING": "queued",
    "SUSPENDED": "queued",
    "RUNNING": "in_progress",
    "SUCCEEDED": "completed",
    "FAILED": "failed",
    "CANCELED": "cancelled",
}


def read_submission(reply: Reply) -> Result:
    """Read a new task, or a refusal, which may have status 200."""
    response = reply.json
    if "output" not in response and response.get("code"):
        kind = code_kind(response["code"]) or "broken"
        return Result(status="failed", failure_kind=kind, message=response.get("message"))
    return read_task(reply)


def read_task(reply: Reply) -> Result:
    """Read a task. A reply without one raises KeyError: it counts as malformed, and is asked again."""
    task = reply.json["output"]
    url = task.get("video_url")
    seconds = value_at(reply.json, "usage", "duration")
    return Result(
        status=STATUS[task["task_status"]],
        ref={"id": task["task_id"]},
        upstream_id=task["task_id"],
        files=(File(url=url, content_type="video/mp4", revised_prompt=task.get("actual_prompt")),) if url else (),
        failure_kind=code_kind(task.get("code") or "") or "broken",
        message=task.get("message"),
        usage={} if seconds is None else {"second": seconds},
    )


def build_body(fields: dict[str, Any]) -> dict[str, Any]:
    """Put the fields where DashScope expects them; fields without a row are parameters."""
    inputs = fields.pop("input")
    parameters = fields.pop("parameters")
    return {"input": inputs, "parameters": {**fields, **parameters}}


def media_list(images: Sequence[InputFile]) -> list[dict[str, object]]:
    return [{"type": image.role, "url": data_uri(image)} for image in images]


VIDEO = Operation(
    task="video",
    send="POST /api/v1/services/aigc/video-generation/video-synthesis",
    poll="GET /api/v1/tasks/{id}",
    cancel="POST /api/v1/tasks/{id}/cancel",
    read=read_submission,
    read_poll=read_task,
    adjust_body=build_body,
    params=(),
    poll_seconds=15.0,
)
RATIOS = "16:9 9:16 1:1 4:3 3:4"
SIZES_720P = ("1280x720", "720x1280", "960x960", "1088x832", "832x1088")
SIZES_1080P = ("1920x1080", "1080x1920", "1440x1440", "1632x1248", "1248x1632")
SIZE_LABELS = {size: size.replace("x", "*") for size in SIZES_720P + SIZES_1080P}
SIZE = converted("frame", to="parameters.size", convert=closest_label(SIZE_LABELS), default="16:9")
NEGATIVE_PROMPT = renamed("negative_prompt", to="input.negative_prompt", max_length=500)
MAX_IMAGE_BYTES = 10_000_000
FIRST_IMAGE = converted(
    "input_reference",
    to="input.img_url",
    convert=first_image(data_uri),
    required=True,
    max_items=1,
    max_bytes=MAX_IMAGE_BYTES,
)
# The edited video has the length and the shape of the input.
SOURCE_VIDEO = input_video(
    EDIT_VIDEO,
    to="input.media",
    convert=lambda video: [{"type": "video", "url": file_url(video)}],
    min_seconds=2,
    max_seconds=10,
    max_bytes=100 * 10**6,
    by_url=True,
)


def wan_duration(*seconds: int) -> Param:
    return duration(*seconds, to="parameters.duration", default=5)


def wan_frame(ratios: str, *resolutions: str, **shape: Any) -> Param:
    return frame(ratios, *resolutions, to=("parameters.ratio", "parameters.resolution"), **shape)


def images_row(max_images: int, *, required: bool = True) -> Param:
    return converted(
        "input_reference",
        to="input.media",
        convert=media_list,
        required=required,
        max_items=max_images,
        max_bytes=MAX_IMAGE_BYTES,
    )


def prices_by_resolution(usd: str, others: dict[str, str]) -> tuple[Price, ...]:  # dollars per second
    return (*(price(other, **{"parameters.resolution": name}) for name, other in others.items()), price(usd))


def wan(name: str, upstream: str, max_prompt: int, prices: tuple[Price, ...], *rows: Param) -> Model:
    prompt = renamed("prompt", to="input.prompt", required=True, max_length=max_prompt)
    seed = renamed("seed", to="parameters.seed", low=0, high=2**31 - 1)
    sound = () if any(row.name == "generate_audio" for row in rows) else (ALWAYS_SOUND,)
    op = replace(VIDEO, params=complete_table("video", prompt, seed, *sound, *rows))
    return Model(id=name, upstream=upstream, op=op, prices=prices, shutdown_date=SHUTDOWN_DATES.get(name, ""))


def happy_horse(version: str, usd: str, usd_1080p: str) -> tuple[Model, Model]:
    """HappyHorse, for text and for a first image. Lists with lower prices have Beijing's, from 0.9 yuan a second."""
    name = f"happyhorse-{version}"
    prices = (comfy_price(usd_1080p, **{"parameters.resolution": "1080P"}), comfy_price(usd))
    seconds = wan_duration(*range(3, 16))
    text = wan(name, f"{name}-t2v", 5000, prices, wan_frame(RATIOS, "720P", "1080P"), seconds)
    image = wan(name, f"{name}-i2v", 5000, prices, wan_frame("", "720P", "1080P"), images_row(1), seconds)
    return text, image


SHUTDOWN_DATES = {"wan-2.6": "2026-10-14"}  # as docs.laozhang.ai says, which resells DashScope's models
comfy_price = price_list(COMFY)
price = price_list(Source("Alibaba's prices for Singapore, as others recorded them", "2026-11-15", is_second_hand=True))
PRICES_BY_SIZE = (*(price("0.15", **{"parameters.size": SIZE_LABELS[size]}) for size in SIZES_1080P), price("0.10"))
PRICES_2 = prices_by_resolution("0.10", {"1080P": "0.15"})
PRICES_2_EDIT = tuple(replace(row, ceiling="2") for row in PRICES_2)  # input and output are billed, and reported
PRICES_3 = prices_by_resolution("0.10", {"480P": "0.05", "1080P": "0.20"})
PRICES_3_PRIME = prices_by_resolution("0.14", {"480P": "0.068", "1080P": "0.28"})
FIXED_DURATIONS = (wan_duration(5, 10, 15), NEGATIVE_PROMPT)
ANY_DURATION = (wan_duration(*range(2, 16)), NEGATIVE_PROMPT)
EDIT = (wan_frame("", "720P", "1080P"), *ignored("seconds"), NEGATIVE_PROMPT, SOURCE_VIDEO)
WAN_3 = (
    wan_frame(RATIOS, "720P", "480P", "1080P", by_input="adaptive"),
    wan_duration(*range(2, 31)),
    images_row(10, required=False),
    renamed("generate_audio", to="parameters.audio", one_of=(True, False)),
)
PROVIDER = Provider(
    slug="dashscope",
    name="DashScope",
    docs="https://www.alibabacloud.com/help/en/model-studio",
    auth=bearer,
    # A key works in one region. Set `base_url` in `[providers.dashscope]` for other regions.
    base_url="https://dashscope-intl.aliyuncs.com",
    key_env="DASHSCOPE_API_KEY",
    error_message=error_message,
    failure_kind=failure_kind,
    headers={"x-dashscope-async": "enable"},
    models=(
        wan("wan-2.6", "wan2.6-t2v", 1500, PRICES_BY_SIZE, SIZE, *FIXED_DURATIONS),
        wan("wan-2.6", "wan2.6-i2v", 1500, PRICES_2, wan_frame("", "720P", "1080P"), FIRST_IMAGE, *ANY_DURATION),
        wan("wan-2.7", "wan2.7-t2v", 5000, PRICES_2, wan_frame(RATIOS, "720P", "1080P"), *ANY_DURATION),
        wan("wan-2.7", "wan2.7-i2v", 5000, PRICES_2, wan_frame("", "720P", "1080P"), images_row(2), *ANY_DURATION),
        wan("wan-2.7", "wan2.7-videoedit", 5000, PRICES_2_EDIT, *EDIT),
        *happy_horse("1.0", "0.14", "0.24"),
        *happy_horse("1.1", "0.14", "0.18"),
        wan("wan-3", "wan3.0-video", 20_000, PRICES_3, *WAN_3),
        wan("wan-3-prime", "wan3.0-video-prime", 20_000, PRICES_3_PRIME, *WAN_3),
    ),
)
