"""Seedance videos, as tasks."""

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from hashlib import sha256
from typing import Any

from penstock.providers.bytedance.errors import error_kind
from penstock.providers.convert import data_uri, each_image
from penstock.providers.reported import number_at
from penstock.providers.spec import (
    File,
    Model,
    Operation,
    Price,
    Reply,
    Result,
    Source,
    Status,
    complete_table,
    converted,
    duration,
    fixed,
    frame,
    passthrough,
    price_list,
    renamed,
)
from penstock.values import FIRST_FRAME, InputFile

STATUS: dict[str, Status] = {
    "queued": "queued",
    "running": "in_progress",
    "succeeded": "completed",
    "failed": "failed",
    "expired": "failed",
    "cancelled": "cancelled",
}
# Dollars per million tokens.
RATES: Mapping[str, Mapping[str, str]] = {
    "dreamina-seedance-2-5-260628": {"720p": "10.7", "480p": "10.7", "1080p": "11.7"},
    "dreamina-seedance-2-0-260128": {"720p": "7", "480p": "7", "1080p": "7.7", "4k": "4"},
    "dreamina-seedance-2-0-fast-260128": {"720p": "5.6", "480p": "5.6"},
    "dreamina-seedance-2-0-mini-260615": {"720p": "3.5", "480p": "3.5"},
}
# The largest frame of each resolution, in pixels; the aspect ratios of one resolution differ by about a hundredth.
MAX_AREAS = {"480p": 992 * 432, "720p": 1112 * 834, "1080p": 2206 * 946, "4k": 4412 * 1892}
FRAMES_PER_SECOND = 24
PIXELS_PER_TOKEN = 1024


def read_task(reply: Reply) -> Result:
    """Read a new task, which has only an id, or the state of a task."""
    task = reply.json
    if "status" not in task:
        return Result(status="queued", ref={"id": task["id"]}, upstream_id=task["id"])
    url = (task.get("content") or {}).get("video_url")
    error = task.get("error") or {}
    return Result(
        status=STATUS[task["status"]],
        ref={"id": task["id"]},
        upstream_id=task["id"],
        files=(File(url=url, content_type="video/mp4"),) if url else (),
        cost_usd=cost_usd(task),
        failure_kind=error_kind(error) or "broken",
        message=error.get("message"),
    )


def cost_usd(task: Mapping[str, Any]) -> str | None:
    """The cost from the tokens that a finished task reports; the price rows below are an estimate."""
    rate = RATES.get(str(task.get("model")), {}).get(str(task.get("resolution")))
    tokens = number_at(task, "usage", "completion_tokens")
    return f"{Decimal(rate) * tokens / 1_000_000:f}" if rate and tokens else None


def build_content(fields: dict[str, Any]) -> dict[str, Any]:
    """Put the prompt and the images into one list. A video that begins with an image has the image's aspect ratio."""
    content = fields["content"]
    images = content.get("images", [])
    ratio = {"ratio": "adaptive"} if any(image["role"] == FIRST_FRAME for image in images) else {}
    return {**fields, "content": [{"type": "text", "text": content["text"]}, *images], **ratio}


def image_object(image: InputFile) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": data_uri(image)}, "role": image.role}


def user_hash(user: str) -> str:
    return sha256(user.encode()).hexdigest()


def estimated_prices(rates: Mapping[str, str]) -> tuple[Price, ...]:
    """Dollars per second and per video, for the largest frame of each resolution. A video has one frame at its end."""
    usd_per_frame = {
        resolution: MAX_AREAS[resolution] * Decimal(rate) / PIXELS_PER_TOKEN / 1_000_000
        for resolution, rate in rates.items()
    }
    default, *others = (
        price(f"{FRAMES_PER_SECOND * usd:.5f}", each_usd=f"{usd:.5f}", resolution=resolution)
        for resolution, usd in usd_per_frame.items()
    )
    return (*others, replace(default, when={}))


def video_model(name: str, upstream: str, max_seconds: int, max_prompt: int = 4096) -> Model:
    op = Operation(
        task="video",
        send="POST /contents/generations/tasks",
        poll="GET /contents/generations/tasks/{id}",
        cancel="DELETE /contents/generations/tasks/{id}",
        read=read_task,
        adjust_body=build_content,
        poll_seconds=10.0,
        priced_extras=frozenset({"draft"}),
        params=complete_table(
            "video",
            renamed("prompt", to="content.text", required=True, max_length=max_prompt),
            duration(*range(4, max_seconds + 1), default=5),
            frame("16:9 9:16 1:1 4:3 3:4 21:9", *RATES[upstream], to=("ratio", "resolution")),
            fixed("watermark", False),
            converted("input_reference", to="content.images", convert=each_image(image_object), max_items=9),
            converted("user", to="safety_identifier", convert=user_hash),
            passthrough("generate_audio", one_of=(True, False)),
            passthrough("seed", low=-1, high=2**32 - 1),
        ),
    )
    return Model(id=name, upstream=upstream, op=op, prices=estimated_prices(RATES[upstream]))


price = price_list(Source("docs.byteplus.com/en/docs/ModelArk/1544106", "2026-09-22"))
MODELS = (
    video_model("seedance-2.5", "dreamina-seedance-2-5-260628", 30, max_prompt=10_000),
    video_model("seedance-2", "dreamina-seedance-2-0-260128", 15),
    video_model("seedance-2-fast", "dreamina-seedance-2-0-fast-260128", 15),
    video_model("seedance-2-mini", "dreamina-seedance-2-0-mini-260615", 15),
)
