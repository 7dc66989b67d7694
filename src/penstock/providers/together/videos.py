"""Seedance and Wan videos, as jobs of version 2 of the API; a finished job may say what it cost."""

import re
from collections.abc import Sequence
from typing import Any

from penstock.providers.convert import number_text, plain_base64
from penstock.providers.reported import number_at
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
from penstock.values import FIRST_FRAME, LAST_FRAME, InputFile

REFUSAL = re.compile(r"nsfw|flagged|safety|moderat|content policy", re.IGNORECASE)
STATUS: dict[str, Status] = {
    "queued": "queued",
    "in_progress": "in_progress",
    "completed": "completed",
    "failed": "failed",
    "cancelled": "cancelled",
}
FRAMES = {FIRST_FRAME: "first", LAST_FRAME: "last"}


def read_job(reply: Reply) -> Result:
    job = reply.json
    outputs = job.get("outputs") or {}
    url = outputs.get("video_url")
    cost = number_at(outputs, "cost")
    error = job.get("error") or {}
    words = f"{error.get('code')} {error.get('message')}"
    return Result(
        status=STATUS[job["status"]],
        ref={"id": job["id"]},
        upstream_id=job["id"],
        files=(File(url=url, content_type="video/mp4"),) if url else (),
        cost_usd=f"{cost:f}" if cost else None,
        failure_kind="refused" if REFUSAL.search(words) else "broken",
        message=error.get("message"),
    )


def media_object(images: Sequence[InputFile]) -> dict[str, Any]:
    """Images to begin and end with, or references; no model takes both."""
    if images[0].role in FRAMES:
        frames = [{"input_image": plain_base64(image), "frame": FRAMES[image.role]} for image in images]
        return {"frame_images": frames}
    return {"reference_images": [plain_base64(image) for image in images]}


def video_model(
    name: str, upstream: str, seconds: range, *rows: Param, prices: tuple[Price, ...], max_prompt: int
) -> Model:
    op = Operation(
        task="video",
        send="POST /v2/videos",
        poll="GET /v2/videos/{id}",
        read=read_job,
        poll_seconds=10.0,
        priced_extras=frozenset({"media", "settings"}),
        params=complete_table(
            "video",
            passthrough("prompt", required=True, max_length=max_prompt),
            duration(*seconds, to="seconds", convert=number_text, default=5),
            ALWAYS_SOUND,
            *rows,
        ),
    )
    return Model(id=name, upstream=upstream, op=op, prices=prices, priority=10)


def images(most: int) -> Param:
    return converted("input_reference", to="media", convert=media_object, max_items=most)


price = price_list(Source("a copy of docs.together.ai/docs/seedance2.5-quickstart", "2026-09-13"))
price_2 = price_list(
    Source("what others read in Together's changelog and list of models", "2026-09-13", is_second_hand=True)
)
wan_price = price_list(Source("what public clients of Together record", "2026-11-16", is_second_hand=True))
MODELS = (
    # It takes no aspect ratio.
    video_model(
        "seedance-2.5",
        "ByteDance/Seedance-2.5",
        range(4, 31),
        frame("", "720p", "480p"),
        images(30),
        prices=(price("0.115", resolution="480p"), price("0.249")),
        max_prompt=10_000,
    ),
    # The price of 480p is not known.
    video_model(
        "seedance-2",
        "ByteDance/Seedance-2.0",
        range(4, 16),
        frame("16:9 9:16 1:1 4:3 3:4 21:9", "720p", "1080p", "4k", to=("ratio", "resolution")),
        images(9),
        prices=(price_2("0.40", resolution="1080p"), price_2("0.836", resolution="4k"), price_2("0.16")),
        max_prompt=4000,
    ),
    # The price of 1080P is not known. Its model for images takes no file of more than 60 KB, so it is left out.
    video_model(
        "wan-2.7",
        "Wan-AI/wan2.7-t2v",
        range(2, 16),
        frame("16:9 9:16 1:1 4:3 3:4", "720P", to=("ratio", "resolution")),
        passthrough("negative_prompt"),
        passthrough("seed"),
        prices=(wan_price("0.10"),),
        max_prompt=32_000,
    ),
)
