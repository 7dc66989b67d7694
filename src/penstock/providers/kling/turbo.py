"""Kling 3.0 Turbo, whose API has other paths and shapes than Kling's older models."""

from dataclasses import replace
from typing import Any

from penstock.providers.convert import first_image, plain_base64
from penstock.providers.kling.videos import FAILURE_KINDS, REFUSAL, STATUS, price
from penstock.providers.spec import (
    ALWAYS_SOUND,
    File,
    Model,
    Operation,
    Reply,
    Result,
    complete_table,
    converted,
    duration,
    frame,
    passthrough,
)


def read_task(reply: Reply) -> Result:
    """Read a new task, or the list that a query about one task returns."""
    response = reply.json
    if response["code"] != 0:
        kind = FAILURE_KINDS.get(response["code"], "broken")
        return Result(status="failed", failure_kind=kind, message=response.get("message"))
    task = response["data"][0] if isinstance(response["data"], list) else response["data"]
    message = task.get("message") or ""
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
    """The prompt and the first frame as a list of contents."""
    prompt = {"type": "prompt", "text": fields.pop("prompt")}
    image = {"type": "first_frame", "url": fields.pop("first_frame")}
    return {**fields, "contents": [prompt, image]}


TEXT_TO_VIDEO = Operation(
    task="video",
    send="POST /text-to-video/{model}",
    poll="GET /tasks?task_ids={id}",
    read=read_task,
    model_field=None,
    callback_field="options.callback_url",
    params=complete_table(
        "video",
        passthrough("prompt", required=True, max_length=3072),
        duration(*range(3, 16), to="settings.duration", default=5),
        frame("16:9 9:16 1:1", "720p", "1080p", to=("settings.aspect_ratio", "settings.resolution")),
        ALWAYS_SOUND,
    ),
)
IMAGE_TO_VIDEO = replace(
    TEXT_TO_VIDEO,
    send="POST /image-to-video/{model}",
    adjust_body=with_contents,
    params=complete_table(
        "video",
        passthrough("prompt", required=True, max_length=2500),
        duration(*range(3, 16), to="settings.duration", default=5),
        frame("", "720p", "1080p", to=("settings.resolution",)),
        converted(
            "input_reference",
            to="first_frame",
            convert=first_image(plain_base64),
            required=True,
            max_items=1,
            max_bytes=50_000_000,
        ),
        ALWAYS_SOUND,
    ),
)
MODELS = tuple(
    Model(
        id="kling-3-turbo",
        upstream="kling-3.0-turbo",
        op=op,
        prices=(price("0.14", **{"settings.resolution": "1080p"}), price("0.112")),
    )
    for op in (TEXT_TO_VIDEO, IMAGE_TO_VIDEO)
)
