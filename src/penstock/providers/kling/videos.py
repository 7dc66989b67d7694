"""Kling's videos up to version 3: an endpoint for text and one for images, and two modes."""

import re
from dataclasses import replace

from penstock.providers.convert import first_and_last, number_text, plain_base64
from penstock.providers.spec import (
    NEVER_SOUND,
    FailureKind,
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
    fixed,
    frame,
    passthrough,
    price_list,
)

STATUS: dict[str, Status] = {
    "submitted": "queued",
    "processing": "in_progress",
    "succeed": "completed",
    "succeeded": "completed",
    "failed": "failed",
}
# Codes whose HTTP status is misleading: an account without credit also gets 429.
FAILURE_KINDS: dict[int, FailureKind] = {
    1100: "broken",
    1101: "broken",
    1102: "broken",
    1300: "refused",
    1301: "refused",
    1302: "busy",
    1303: "busy",
    1304: "broken",
}
# A task that was refused for its content has no code, only a message.
REFUSAL = re.compile(r"risk control|sensitive|moderat|polic|violat", re.IGNORECASE)


def read_task(reply: Reply) -> Result:
    response = reply.json
    if response["code"] != 0:
        kind = FAILURE_KINDS.get(response["code"], "broken")
        return Result(status="failed", failure_kind=kind, message=response.get("message"))
    task = response["data"]
    message = str(task.get("task_status_msg") or "")
    videos = (task.get("task_result") or {}).get("videos") or ()
    return Result(
        status=STATUS[task["task_status"]],
        ref={"id": task["task_id"]},
        upstream_id=task["task_id"],
        files=tuple(File(url=video["url"], content_type="video/mp4") for video in videos if video.get("url")),
        failure_kind="refused" if REFUSAL.search(message) else "broken",
        message=message,
    )


MAX_IMAGE_BYTES = 10_000_000
PROMPT = passthrough("prompt", required=True, max_length=2500)
NEGATIVE_PROMPT = passthrough("negative_prompt", max_length=2500)
IMAGES = converted(
    "input_reference",
    to=("image", "image_tail"),
    convert=first_and_last(plain_base64),
    required=True,
    max_items=2,
    max_bytes=MAX_IMAGE_BYTES,
)
OWN_ID = converted("own_id", to="external_task_id", convert=str)  # a task can be asked about by it
TEXT_TO_VIDEO = Operation(
    task="video",
    send="POST /v1/videos/text2video",
    poll="GET /v1/videos/text2video/{id}",
    read=read_task,
    model_field="model_name",
    params=(),
    callback_field="callback_url",
    priced_extras=frozenset({"mode", "sound", "multi_prompt", "voice_list"}),
)
IMAGE_TO_VIDEO = replace(TEXT_TO_VIDEO, send="POST /v1/videos/image2video", poll="GET /v1/videos/image2video/{id}")


def video_models(
    name: str, upstream: str, mode: str, seconds: Param, *rows: Param, prices: tuple[Price, ...]
) -> list[Model]:
    """A model with an endpoint for text and one for images. Mode `std` makes 720p, `pro` 1080p.

    A video that begins with an image has the aspect ratio of the image.
    """
    shared = (PROMPT, NEGATIVE_PROMPT, seconds, fixed("mode", mode), OWN_ID, *rows)
    text = replace(TEXT_TO_VIDEO, params=complete_table("video", *shared, frame("16:9 9:16 1:1")))
    image = replace(IMAGE_TO_VIDEO, params=complete_table("video", *shared, frame(), IMAGES))
    return [Model(id=name, upstream=upstream, op=op, prices=prices) for op in (text, image)]


FIVE_OR_TEN = duration(5, 10, convert=number_text, default=5)
THREE_TO_FIFTEEN = duration(*range(3, 16), convert=number_text, default=5)
SWITCH = {True: "on", False: "off"}
SOUND = (converted("generate_audio", to="sound", convert=SWITCH.get), passthrough("sound", one_of=("on", "off")))
price = price_list(Source("Kling's developer documentation, as others recorded it", "2026-11-15", is_second_hand=True))
MODELS = (
    *video_models("kling-2.5-turbo", "kling-v2-5-turbo", "pro", FIVE_OR_TEN, NEVER_SOUND, prices=(price("0.07"),)),
    *video_models(
        "kling-2.6",
        "kling-v2-6",
        "pro",
        FIVE_OR_TEN,
        *SOUND,
        prices=(price("0.14", sound="on"), price("0.07")),
    ),
    *video_models(
        "kling-3",
        "kling-v3",
        "std",
        THREE_TO_FIFTEEN,
        *SOUND,
        prices=(price("0.126", sound="on"), price("0.084")),
    ),
    *video_models(
        "kling-3-pro",
        "kling-v3",
        "pro",
        THREE_TO_FIFTEEN,
        *SOUND,
        prices=(price("0.168", sound="on"), price("0.112")),
    ),
)
