"""Black Forest Labs: FLUX images, edits and videos, as tasks with a poll URL on one of its clusters."""

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

from penstock.providers.convert import each_image, first_image, on_off, pixels, plain_base64
from penstock.providers.spec import (
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
    complete_table,
    converted,
    duration,
    fixed,
    frame,
    header,
    passthrough,
    price_list,
)
from penstock.values import InputImage

# "Task not found" is left out on purpose: a cluster that does not know a new task yet says so too. It is polled again.
STATUS: dict[str, Status] = {
    "Pending": "queued",
    "Reasoning": "in_progress",
    "Generating": "in_progress",
    "Ready": "completed",
    "Request Moderated": "failed",
    "Content Moderated": "failed",
    "Error": "failed",
    "Failed": "failed",
}
USD_PER_CREDIT = Decimal("0.01")


def read_task(reply: Reply) -> Result:
    """Read a new task, which has a poll URL, or the state of a task. A failed task also comes with 422 or 503."""
    task = reply.json
    if "polling_url" in task:
        return Result(status="queued", ref={"polling_url": task["polling_url"]}, upstream_id=task["id"])
    state = task["status"]
    output = task.get("result") or {}
    credits = task.get("cost")
    return Result(
        status=STATUS[state],
        files=(File(url=output["sample"], revised_prompt=output.get("prompt")),) if output.get("sample") else (),
        failure_kind="refused" if "Moderated" in state else "broken",
        message=f"{state}. {_details_text(task.get('details'))}".strip(),
        cost_usd=None if credits is None else f"{Decimal(str(credits)) * USD_PER_CREDIT:f}",
        progress=task.get("progress"),
    )


def _details_text(details: Any) -> str:
    return ", ".join(details.get("Moderation Reasons", ())) if isinstance(details, dict) else details or ""


def error_message(reply: Reply) -> str | None:
    error = reply.json.get("detail") or reply.json["message"]
    return error if isinstance(error, str) else error[0]["msg"]


def numbered_images(max_images: int) -> Param:
    """The row for input images that go into one field each."""
    names = ("input_image", *(f"input_image_{number}" for number in range(2, max_images + 1)))

    def spread(images: Sequence[InputImage]) -> tuple[str | None, ...]:
        return (*map(plain_base64, images), *[None] * (max_images - len(images)))

    return converted("images", to=names, convert=spread, required=True, max_items=max_images)


def set_video_mode(fields: dict[str, Any]) -> dict[str, Any]:
    """Set the mode: text or image to video. A video that begins with an image has the image's aspect ratio."""
    if "keyframes" not in fields:
        return {**fields, "mode": "t2v"}
    return {name: value for name, value in fields.items() if name != "aspect_ratio"} | {"mode": "i2v"}


def task_operation(task: Task, *rows: Param, poll_seconds: float = 1.0, **fields: Any) -> Operation:
    return Operation(
        task=task,
        send="POST /v1/{model}",
        poll="GET {polling_url}",
        read=read_task,
        read_http_errors=True,
        params=complete_table(task, PROMPT, *rows),
        poll_seconds=poll_seconds,
        **fields,
    )


def image_models(name: str, max_images: int, rows: tuple[Param, ...], *prices: Price) -> tuple[Model, Model]:
    """A model that makes images and edits up to `max_images` of them, with one endpoint."""
    image = Model(id=name, upstream=name, op=task_operation("image", *rows), prices=prices)
    return image, replace(image, op=task_operation("edit", *rows, numbered_images(max_images)))


def image_model(name: str, upstream: str, op: Operation, *prices: Price) -> Model:
    return Model(id=name, upstream=upstream, op=op, prices=prices)


PROMPT = passthrough("prompt", required=True)
PNG = fixed("output_format", "png")
ENHANCEMENT = converted("prompt_enhancement", to="prompt_upsampling", convert=on_off(True, False))
SIZE_2 = converted("frame", to=("width", "height"), convert=pixels(multiple=16, min_side=64, max_side=2048))
SIZE_11 = converted("frame", to=("width", "height"), convert=pixels(multiple=32, min_side=256, max_side=1440))
SEED = passthrough("seed", low=0)
FLUX_2 = (SIZE_2, PNG, ENHANCEMENT, SEED)
FLUX_11 = (SIZE_11, PNG, ENHANCEMENT, SEED)
BY_RATIO = (frame("1:1 16:9 9:16 4:3 3:4 3:2 2:3 21:9 9:21"), PNG, ENHANCEMENT, SEED)
FLUX_3 = frame("1:1 16:9 9:16 4:3 3:4 3:2 2:3 5:4 4:5 7:5 5:7 2:1 1:2 21:9 9:21", "1k", "2k", "4k")
FLUX_3_EDIT = task_operation(
    "edit",
    FLUX_3,
    converted("images", to="images", convert=each_image(plain_base64), required=True, max_items=10),
)
FILL = task_operation(
    "edit",
    PNG,
    ENHANCEMENT,
    SEED,
    converted("images", to="image", convert=first_image(plain_base64), required=True, max_items=1),
    converted("mask", to="mask", convert=plain_base64, required=True),
    settings={"mask": "white"},
)
VIDEO = task_operation(
    "video",
    duration(*range(5, 21), default=5),
    frame("16:9 9:16 1:1 4:3 3:4 2:1 21:9", "hd", "fhd", "qhd", "uhd"),
    converted("input_reference", to="keyframes", convert=each_image(plain_base64), max_items=2),
    passthrough("generate_audio", one_of=(True, False)),
    adjust_body=set_video_mode,
    poll_seconds=5.0,
    priced_extras=frozenset({"mode", "draft", "draft_cache", "start_video"}),
)

price = price_list(Source("docs.bfl.ai/quick_start/pricing", "2026-11-15"))
MP = "started_megapixel"
FLUX_3_PRICES = (
    price("0.10", "image", resolution="2k"),
    price("0.607", "image", resolution="4k"),
    price("0.048", "image"),
)
VIDEO_PRICES = (
    price("0.29", resolution="fhd"),
    price("0.40", resolution="qhd"),
    price("0.80", resolution="uhd"),
    price("0.17"),
)
MODELS = (
    *image_models("flux-2-pro", 8, FLUX_2, price("0.015", MP, input_usd="0.015", each_usd="0.015")),
    *image_models("flux-2-max", 8, FLUX_2, price("0.03", MP, input_usd="0.03", each_usd="0.04")),
    *image_models("flux-2-flex", 8, FLUX_2, price("0.05", MP, input_usd="0.05")),
    *image_models("flux-2-klein-4b", 4, FLUX_2, price("0.001", MP, input_usd="0.001", each_usd="0.013")),
    *image_models("flux-2-klein-9b", 4, FLUX_2, price("0.002", MP, input_usd="0.002", each_usd="0.013")),
    *image_models("flux-kontext-pro", 1, BY_RATIO, price("0.04", "image")),
    *image_models("flux-kontext-max", 1, BY_RATIO, price("0.08", "image")),
    image_model("flux-1.1-pro", "flux-pro-1.1", task_operation("image", *FLUX_11), price("0.04", "image")),
    image_model("flux-1.1-pro-ultra", "flux-pro-1.1-ultra", task_operation("image", *BY_RATIO), price("0.06", "image")),
    image_model("flux-fill-pro", "flux-pro-1.0-fill", FILL, price("0.05", "image")),
    image_model("flux-3-image", "flux-3-image", task_operation("image", FLUX_3), *FLUX_3_PRICES),
    image_model("flux-3-image", "flux-3-image", FLUX_3_EDIT, *FLUX_3_PRICES),
    Model(id="flux-3-video", upstream="flux-3-video", op=VIDEO, prices=VIDEO_PRICES),
)
PROVIDER = Provider(
    slug="bfl",
    name="Black Forest Labs",
    docs="https://docs.bfl.ai",
    base_url="https://api.bfl.ai",
    domain="bfl.ai",
    key_env="BFL_API_KEY",
    auth=header("x-key"),
    error_message=error_message,
    models=MODELS,
)
