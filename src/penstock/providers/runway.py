"""Runway: its own videos and images, and Google's Veo videos; tasks report their cost in credits of a cent."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

from penstock.providers.convert import both, closest_label, data_uri, each_image
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
    Status,
    bearer,
    complete_table,
    converted,
    duration,
    frame,
    NEVER_SOUND,
    passthrough,
    price_list,
    renamed,
)
from penstock.values import Frame, InputImage

STATUS: dict[str, Status] = {
    "PENDING": "queued",
    "THROTTLED": "queued",
    "RUNNING": "in_progress",
    "SUCCEEDED": "completed",
    "FAILED": "failed",
    "CANCELLED": "cancelled",
}


def read_task(reply: Reply) -> Result:
    """Read a task. A new one has no status; a finished one has its cost, which may be less than the estimate."""
    task = reply.json
    credits = (task.get("cost") or {}).get("credits")
    return Result(
        status=STATUS[task.get("status", "PENDING")],
        ref={"id": task["id"]},
        upstream_id=task["id"],
        files=tuple(File(url=url) for url in task.get("output") or ()),
        failure_kind=code_kind(task.get("failureCode") or ""),
        message=task.get("failure"),
        cost_usd=None if credits is None else str(Decimal(str(credits)) / 100),
        progress=task.get("progress"),
    )


def code_kind(code: str) -> FailureKind:
    """Codes with the part `SAFETY` are about content: `SAFETY.INPUT.TEXT`, `INPUT_PREPROCESSING.SAFETY.TEXT`."""
    if "SAFETY" in code.split("."):
        return "refused"
    return "rejected" if code.startswith(("INPUT_PREPROCESSING", "ASSET")) else "broken"


def error_message(reply: Reply) -> str | None:
    return str(reply.json["error"])


def size_labels(sizes: str) -> dict[str, str]:
    """Runway's labels for sizes: `1280:720` for 1280x720."""
    return {size: size.replace("x", ":") for size in sizes.split()}


def frame_images(images: Sequence[InputImage]) -> list[dict[str, str]]:
    """The image that the video begins with, and the one that it ends with if there are two."""
    return [
        {"uri": data_uri(image), "position": position}
        for image, position in zip(images, ("first", "last"), strict=False)
    ]


MAX_IMAGE_BYTES = 3_700_000  # in base64, the limit of a data URI is 5 MB


def input_images(labels: Mapping[str, str], max_images: int) -> Param:
    """The row for input images; the first one also decides the size of the video."""
    pick = closest_label(dict(labels))

    def size_of_first(images: Sequence[InputImage]) -> str:
        return pick(Frame(images[0].width, images[0].height))

    return converted(
        "input_reference",
        to=("promptImage", "ratio"),
        convert=both(frame_images, size_of_first),
        required=True,
        max_items=max_images,
        max_bytes=MAX_IMAGE_BYTES,
    )


def image_object(image: InputImage) -> dict[str, str]:
    return {"uri": data_uri(image)}


def sound_by_default(fields: dict[str, Any]) -> dict[str, Any]:
    """Ask for sound unless the caller says otherwise, as Google's own service does."""
    return {"audio": True, **fields}


VIDEO = Operation(
    task="video",
    send="POST /text_to_video",
    poll="GET /tasks/{id}",
    cancel="DELETE /tasks/{id}",
    read=read_task,
    params=(),
    poll_seconds=6.0,
    priced_extras=frozenset({"outputFormat", "proresProfile"}),
)
IMAGE_TO_VIDEO = replace(VIDEO, send="POST /image_to_video")
IMAGE = replace(VIDEO, task="image", send="POST /text_to_image", poll_seconds=2.0)
PROMPT = renamed("prompt", to="promptText", required=True, max_length=1000)
SEED = passthrough("seed", low=0, high=2**32 - 1)
GEN_DURATION = duration(*range(2, 11), default=5)
GEN_TEXT_SIZES = size_labels("1280x720 720x1280")
GEN_SIZES = size_labels("1280x720 720x1280 1104x832 832x1104 960x960 1584x672")
VEO_SIZES = size_labels("1280x720 720x1280 1920x1080 1080x1920")
VEO_ROWS = (
    duration(4, 6, 8, default=8),
    renamed("negative_prompt", to="negativePrompt"),
    renamed("generate_audio", to="audio", one_of=(True, False)),
    passthrough("audio", one_of=(True, False)),
)
IMAGE_SIZES = size_labels(
    """1024x1024 1280x720 720x1280 720x720 960x720 720x960 1680x720 1080x1080 1440x1080 1080x1440 1920x1080 1080x1920
    1168x880 1360x768 1808x768 2112x912"""
)
SIZE = converted("frame", to="ratio", convert=closest_label(IMAGE_SIZES))
REFERENCES = converted(
    "images",
    to="referenceImages",
    convert=each_image(image_object),
    required=True,
    max_items=3,
    max_bytes=MAX_IMAGE_BYTES,
)
TEXT_TO_IMAGE = replace(IMAGE, params=complete_table("image", PROMPT, SEED, SIZE))
EDIT = replace(IMAGE, task="edit", params=complete_table("edit", PROMPT, SEED, SIZE, REFERENCES))


def text_to_video(labels: Mapping[str, str], *rows: Param, **fields: Any) -> Operation:
    size = converted("frame", to="ratio", convert=closest_label(dict(labels)), default="16:9")
    return replace(VIDEO, params=complete_table("video", PROMPT, SEED, size, *rows), **fields)


def image_to_video(images: Param, *rows: Param, **fields: Any) -> Operation:
    return replace(IMAGE_TO_VIDEO, params=complete_table("video", PROMPT, SEED, frame(), images, *rows), **fields)


def veo_models(name: str, upstream: str, *prices: Price) -> tuple[Model, ...]:
    images = input_images(VEO_SIZES, 2)
    operations = (
        text_to_video(VEO_SIZES, *VEO_ROWS, adjust_body=sound_by_default),
        image_to_video(images, *VEO_ROWS, adjust_body=sound_by_default),
    )
    return tuple(Model(id=name, upstream=upstream, op=op, prices=prices, priority=20) for op in operations)


def model(name: str, upstream: str, op: Operation, price: Price) -> Model:
    return Model(id=name, upstream=upstream, op=op, prices=(price,))


price = price_list("docs.dev.runwayml.com/guides/pricing as litellm 1.108.4 and others quote it, looked up 2026-11-15")
GEN_ROWS = (GEN_DURATION, NEVER_SOUND)
GEN_IMAGE_TO_VIDEO = image_to_video(input_images(GEN_SIZES, 1), *GEN_ROWS)
PROVIDER = Provider(
    slug="runway",
    name="Runway",
    docs="https://docs.dev.runwayml.com",
    base_url="https://api.dev.runwayml.com/v1",
    key_env="RUNWAYML_API_SECRET",
    auth=bearer,
    headers={"x-runway-version": "2024-11-06"},
    error_message=error_message,
    models=(
        model("gen-4.5", "gen4.5", text_to_video(GEN_TEXT_SIZES, *GEN_ROWS), price("0.12")),
        model("gen-4.5", "gen4.5", GEN_IMAGE_TO_VIDEO, price("0.12")),
        model("runway/gen4-turbo", "gen4_turbo", GEN_IMAGE_TO_VIDEO, price("0.05")),
        *veo_models("veo-3.1", "veo3.1", price("0.20", audio=False), price("0.40")),
        *veo_models("veo-3.1-fast", "veo3.1_fast", price("0.10", audio=False), price("0.15")),
        # 5 credits at 720p and 8 at 1080p; the task reports which.
        model("runway/gen4-image", "gen4_image", TEXT_TO_IMAGE, price("0.08", "image")),
        model("runway/gen4-image", "gen4_image", EDIT, price("0.08", "image")),
        model("runway/gen4-image-turbo", "gen4_image_turbo", EDIT, price("0.02", "image")),
    ),
)
