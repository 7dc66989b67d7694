"""H3 videos over version 2 of MiniMax's API."""

from collections.abc import Sequence
from typing import Any

from penstock.providers.convert import both, closest, closest_short_side, data_uri
from penstock.providers.minimax.codes import code_kind, price
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
    Status,
    complete_table,
    converted,
    duration,
    frame,
    passthrough,
    price_list,
)
from penstock.values import InputFile

STATUS: dict[str, Status] = {
    "queued": "queued",
    "running": "in_progress",
    "succeeded": "completed",
    "failed": "failed",
    "expired": "failed",
    "cancelled": "cancelled",
}


def read_task(reply: Reply) -> Result:
    """Read a task. Its output URL works for a while; each poll returns a new one."""
    task = reply.json.get("task") or {"id": reply.json["task_id"], "status": "queued"}
    error = task.get("error") or {}
    url = (task.get("content") or {}).get("url")
    return Result(
        status=STATUS[task["status"]],
        ref={"id": task["id"]},
        upstream_id=task["id"],
        files=(File(url=url, content_type="video/mp4"),) if url else (),
        failure_kind=code_kind(error.get("code")),
        message=error.get("message"),
    )


def image_content(images: Sequence[InputFile]) -> list[dict[str, Any]]:
    return [{"type": "image_url", "image_url": {"url": data_uri(image)}, "role": image.role} for image in images]


def add_prompt(fields: dict[str, Any]) -> dict[str, Any]:
    """Put the prompt into the same list as the images."""
    text = {"type": "text", "text": fields.pop("prompt")}
    return {**fields, "content": [text, *fields.pop("content", ())]}


def video_model(
    name: str,
    upstream: str,
    frame_row: Param,
    *prices: Price,
    max_prompt: int,
    min_seconds: int,
    max_images: int,
) -> Model:
    """A model that takes up to `max_images` images; more would cost extra."""
    op = Operation(
        task="video",
        send="POST /v2/video_generation",
        poll="GET /v2/query/video_generation/{id}",
        cancel="DELETE /v2/video_generation/{id}",
        read=read_task,
        adjust_body=add_prompt,
        poll_seconds=10.0,
        priced_extras=frozenset({"content"}),
        params=complete_table(
            "video",
            passthrough("prompt", required=True, max_length=max_prompt),
            frame_row,
            duration(*range(min_seconds, 16), default=5),
            passthrough("seed", low=-1, high=2**32 - 1),
            ALWAYS_SOUND,
            converted("input_reference", to="content", convert=image_content, max_items=max_images),
        ),
    )
    return Model(id=name, upstream=upstream, op=op, prices=prices)


turbo_price = price_list(
    Source("half of the price of H3 Max, as resellers quote it", "2026-11-16", is_second_hand=True)
)
RATIOS = "16:9 9:16 1:1 4:3 3:4 21:9"
# Of a video 2K is 1440p here, so who asks for 1080p gets more, not less.
FRAME_2K = converted(
    "frame",
    to=("ratio", "resolution"),
    convert=both(closest(*RATIOS.split()), closest_short_side({"768P": 768, "2K": 1440}, "768P")),
    default="16:9",
)
MODELS = (
    video_model(
        "minimax/h3",
        "MiniMax-H3",
        FRAME_2K,
        price("0.13", resolution="2K"),
        price("0.08"),
        max_prompt=7000,
        min_seconds=4,
        max_images=5,
    ),
    video_model(
        "minimax/h3-max",
        "MiniMax-H3-Max",
        frame(RATIOS, "768P", "480P", to=("ratio", "resolution")),
        price("0.05", resolution="480P"),
        price("0.08"),
        max_prompt=50_000,
        min_seconds=5,
        max_images=2,
    ),
    video_model(
        "minimax/h3-max-turbo",
        "MiniMax-H3-Max-Turbo",
        frame(RATIOS, "768P", "480P", to=("ratio", "resolution")),
        turbo_price("0.025", resolution="480P"),
        turbo_price("0.04"),
        max_prompt=50_000,
        min_seconds=5,
        max_images=2,
    ),
)
