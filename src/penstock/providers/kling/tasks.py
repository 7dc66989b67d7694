"""Kling 3.0 Turbo and Kling 4, whose API has other paths and shapes than that of Kling's older models."""

from dataclasses import replace
from typing import Any

from penstock.providers.convert import first_and_last, first_image, plain_base64
from penstock.providers.kling.videos import FAILURE_KINDS, REFUSAL, STATUS, price
from penstock.providers.spec import (
    ALWAYS_SOUND,
    File,
    Model,
    Operation,
    Param,
    Price,
    Reply,
    Result,
    Source,
    complete_table,
    converted,
    duration,
    frame,
    passthrough,
    price_list,
)


def read_task(reply: Reply) -> Result:
    """Read a new task, or the list that a query about one task returns."""
    response = reply.json
    if response["code"] != 0:
        kind = FAILURE_KINDS.get(response["code"], "broken")
        return Result(status="failed", failure_kind=kind, message=response.get("message"))
    task = response["data"][0] if isinstance(response["data"], list) else response["data"]
    message = str(task.get("message") or "")
    videos = [output for output in task.get("outputs") or () if output.get("type") == "video"]
    return Result(
        status=STATUS[task["status"]],
        ref={"id": task["id"]},
        upstream_id=task["id"],
        files=tuple(File(url=video["url"], content_type="video/mp4") for video in videos if video.get("url")),
        failure_kind="refused" if REFUSAL.search(message) else "broken",
        message=message,
    )


def with_contents(fields: dict[str, Any]) -> dict[str, Any]:
    """The prompt and the frames as a list of contents."""
    prompt = {"type": "prompt", "text": fields.pop("prompt")}
    frames = [{"type": name, "url": fields.pop(name)} for name in ("first_frame", "last_frame") if name in fields]
    return {**fields, "contents": [prompt, *frames]}


def text_to_video(max_prompt: int, seconds: range, ratios: str) -> Operation:
    return Operation(
        task="video",
        send="POST /text-to-video/{model}",
        poll="GET /tasks?task_ids={id}",
        read=read_task,
        model_field=None,
        callback_field="options.callback_url",
        params=complete_table(
            "video",
            passthrough("prompt", required=True, max_length=max_prompt),
            duration(*seconds, to="settings.duration", default=5),
            frame(ratios, "720p", "1080p", to=("settings.aspect_ratio", "settings.resolution")),
            ALWAYS_SOUND,
        ),
    )


def image_to_video(max_prompt: int, seconds: range, images: Param) -> Operation:
    """The video has the aspect ratio of the image that it begins with."""
    return replace(
        text_to_video(max_prompt, seconds, ""),
        send="POST /image-to-video/{model}",
        adjust_body=with_contents,
        params=complete_table(
            "video",
            passthrough("prompt", required=True, max_length=max_prompt),
            duration(*seconds, to="settings.duration", default=5),
            frame("", "720p", "1080p", to=("settings.resolution",)),
            images,
            ALWAYS_SOUND,
        ),
    )


def video_models(
    name: str, upstream: str, operations: tuple[Operation, ...], *prices: Price, priority: int = 0
) -> tuple[Model, ...]:
    return tuple(Model(id=name, upstream=upstream, op=op, prices=prices, priority=priority) for op in operations)


FIRST_FRAME = converted(
    "input_reference",
    to="first_frame",
    convert=first_image(plain_base64),
    required=True,
    max_items=1,
    max_bytes=50_000_000,
)
BOTH_FRAMES = replace(FIRST_FRAME, to=("first_frame", "last_frame"), convert=first_and_last(plain_base64), max_items=2)
TURBO = range(3, 16)
KLING_4 = range(3, 31)
KLING_4_PROMPT = 11_000  # for all languages; English texts may have 26,000 characters
resellers_price = price_list(Source("the price at fal and at WaveSpeed", "2026-11-18", is_second_hand=True))
MODELS = (
    *video_models(
        "kling-3-turbo",
        "kling-3.0-turbo",
        (text_to_video(3072, TURBO, "16:9 9:16 1:1"), image_to_video(2500, TURBO, FIRST_FRAME)),
        price("0.14", **{"settings.resolution": "1080p"}),
        price("0.112"),
    ),
    # Comfy's router describes the fields for images. Those for text, and the paths, were not found: they are those of
    # the other model with this API. So it is tried after fal and WaveSpeed.
    *video_models(
        "kling-4",
        "kling-4.0",
        (
            text_to_video(KLING_4_PROMPT, KLING_4, "16:9 9:16 1:1 21:9"),
            image_to_video(KLING_4_PROMPT, KLING_4, BOTH_FRAMES),
        ),
        resellers_price("0.235", **{"settings.resolution": "1080p"}),
        resellers_price("0.157"),
        priority=30,
    ),
)
