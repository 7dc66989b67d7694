"""Vidu: Q3 and Q4 videos, with an endpoint for each number of images; tasks report their cost in credits."""

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal

from penstock.providers.convert import data_uri, each_image
from penstock.providers.reported import number_at
from penstock.providers.spec import (
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
    complete_table,
    converted,
    duration,
    frame,
    header,
    passthrough,
    price_list,
    renamed,
)

STATUS: dict[str, Status] = {
    "created": "queued",
    "queueing": "queued",
    "processing": "in_progress",
    "success": "completed",
    "failed": "failed",
    "cancelled": "cancelled",
    "canceled": "cancelled",
}
REFUSALS = ("AuditSubmitIllegal", "CreationPolicyViolation")  # of the input, and of the output
USD_PER_CREDIT = Decimal("0.005")


def read_task(reply: Reply) -> Result:
    """Read a task. Only the response to the submission has its id, as `task_id`."""
    task = reply.json
    task_id = task.get("task_id")
    credits = number_at(task, "credits")
    return Result(
        status=STATUS[task["state"]],
        ref={"id": task_id} if task_id else {},
        upstream_id=task_id,
        files=tuple(File(url=video["url"], content_type="video/mp4") for video in task.get("creations") or ()),
        failure_kind="refused" if task.get("err_code") in REFUSALS else "broken",
        message=task.get("err_code"),
        cost_usd=None if credits is None else str(credits * USD_PER_CREDIT),
    )


def error_message(reply: Reply) -> str | None:
    return str(reply.json["message"])


def failure_kind(reply: Reply) -> FailureKind | None:
    """An account without credits gets 429, but a later call would fail too."""
    reason = reply.json["reason"]
    return "refused" if reason in REFUSALS else "broken" if reason == "CreditInsufficient" else None


def task_id_body(ref: Mapping[str, str]) -> dict[str, str]:
    return {"id": ref["id"]}


PROMPT = passthrough("prompt", required=True, max_length=2000)
Q4_PROMPT = passthrough("prompt", required=True, max_length=5000)
SECONDS = duration(*range(1, 17), default=5)
SOUND = renamed("generate_audio", to="audio", one_of=(True, False))  # on by default, at the same price
SEED = passthrough("seed", low=0, high=2**31 - 1)
RESOLUTIONS = ("720p", "540p", "1080p")
FRAME = frame("16:9 9:16 1:1 4:3 3:4", *RESOLUTIONS)
IMAGE_FRAME = frame("", *RESOLUTIONS)  # a video that begins with an image has the image's aspect ratio
TEXT_TO_VIDEO = Operation(
    task="video",
    send="POST /text2video",
    poll="GET /tasks/{id}/creations",
    read=read_task,
    cancel="POST /tasks/{id}/cancel",
    cancel_body=task_id_body,
    params=complete_table("video", PROMPT, SOUND, SEED, SECONDS, FRAME),
    callback_field="callback_url",
    # `off_peak` costs half, but may take two days.
    priced_extras=frozenset({"off_peak", "is_rec", "images", "subjects", "videos"}),
)


def image_to_video(
    path: str, min_images: int, max_images: int, *rows: Param, frames: int = 2, prompt: Param = PROMPT
) -> Operation:
    images = converted(
        "input_reference",
        to="images",
        convert=each_image(data_uri),
        required=True,
        min_items=min_images,
        max_items=max_images,
        frames=frames,
    )
    return replace(
        TEXT_TO_VIDEO, send=f"POST /{path}", params=complete_table("video", prompt, SOUND, SEED, images, *rows)
    )


ONE_IMAGE = image_to_video("img2video", 1, 1, SECONDS, IMAGE_FRAME)
TWO_IMAGES = image_to_video("start-end2video", 2, 2, SECONDS, IMAGE_FRAME)
THREE_SECONDS_OR_MORE = duration(*range(3, 17), default=5)
REFERENCES = image_to_video("reference2video", 1, 7, THREE_SECONDS_OR_MORE, FRAME, frames=0)
# Q4 makes 2K and 4K as well, whose prices were not found.
Q4_ONE_IMAGE = image_to_video("img2video", 1, 1, THREE_SECONDS_OR_MORE, IMAGE_FRAME, prompt=Q4_PROMPT)
Q4_REFERENCES = image_to_video("reference2video", 1, 15, THREE_SECONDS_OR_MORE, FRAME, frames=0, prompt=Q4_PROMPT)


# Tasks report their credits, so these are the highest that were found, among them those of docs.comfy.org and fal.
RECORDED = Source(
    "Vidu's price list at half a cent for a credit, as recorded by others", "2026-11-15", is_second_hand=True
)
LIKE_Q3 = Source("Artificial Analysis: it costs what Q3 Pro costs", "2026-10-08", is_second_hand=True)


def credit_prices(
    per_second_540p: int, per_second_720p: int, per_second_1080p: int, source: Source = RECORDED
) -> tuple[Price, ...]:
    """Prices from credits per second."""
    price = price_list(source)
    return (
        price(str(USD_PER_CREDIT * per_second_540p), resolution="540p"),
        price(str(USD_PER_CREDIT * per_second_1080p), resolution="1080p"),
        price(str(USD_PER_CREDIT * per_second_720p)),
    )


def q3_models(name: str, upstream: str, prices: tuple[Price, ...]) -> tuple[Model, ...]:
    operations = (TEXT_TO_VIDEO, ONE_IMAGE, TWO_IMAGES)
    return tuple(Model(id=name, upstream=upstream, op=op, prices=prices) for op in operations)


PROVIDER = Provider(
    # No callback key: Vidu signs only the headers of a callback, not its body, so the job is polled in any case.
    slug="vidu",
    name="Vidu",
    docs="https://platform.vidu.com/docs",
    base_url="https://api.vidu.com/ent/v2",
    key_env="VIDU_API_KEY",
    auth=header("authorization", "Token "),
    error_message=error_message,
    failure_kind=failure_kind,
    models=(
        *q3_models("vidu-q3", "viduq3-pro", credit_prices(14, 30, 32)),
        *q3_models("vidu-q3-turbo", "viduq3-turbo", credit_prices(7, 11, 16)),
        Model(
            id="vidu/q3-reference",
            upstream="viduq3",
            name="Vidu Q3 Reference",
            op=REFERENCES,
            prices=credit_prices(7, 12, 15),
        ),
        *(
            Model(
                id="vidu-q4",
                upstream="viduq4-preview",
                name="Vidu Q4 Preview",
                op=op,
                prices=credit_prices(14, 30, 32, LIKE_Q3),
            )
            for op in (Q4_ONE_IMAGE, Q4_REFERENCES)
        ),
    ),
)
