"""Stability AI: Stable Image models, edits with a mask, three upscalers, of which one is a job, and Stable Audio."""

from dataclasses import replace
from typing import Any

from penstock.providers.convert import first_image
from penstock.providers.openai_compatible import form_file
from penstock.providers.sounds import MUSIC, file_formats
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
    Task,
    bearer,
    complete_table,
    converted,
    emulated,
    fixed,
    ignored,
    passthrough,
    price_list,
)
from penstock.providers.stable_images import (
    NEGATIVE_PROMPT,
    PROMPT,
    RATIO,
    SEED,
    STRENGTH,
    add_default_prompt,
    add_default_strength,
)


def read_image(reply: Reply) -> Result:
    """Read an image. One that the content filter refused is returned blurred, with a finish reason."""
    response = reply.json
    if response.get("finish_reason") == "CONTENT_FILTERED":
        return Result(status="failed", failure_kind="refused", message="The image was filtered for its content.")
    data = response.get("image") or response.get("result")  # a job has `result`
    return Result(files=(File(data=data),) if data else (), upstream_id=reply.headers.get("x-request-id"))


def read_job(reply: Reply) -> Result:
    """Read a new job, which has only an id, a job that is not finished (status 202), or the image."""
    response = reply.json
    if "finish_reason" in response:
        return read_image(reply)
    status: Status = "in_progress" if reply.status == 202 else "queued"
    return Result(status=status, ref={"id": response["id"]}, upstream_id=response["id"])


def read_audio(reply: Reply) -> Result:
    """Read a sound; the content filter refuses one as it does an image."""
    response = reply.json
    if response.get("finish_reason") == "CONTENT_FILTERED":
        return Result(status="failed", failure_kind="refused", message="The sound was filtered for its content.")
    return Result(files=(File(data=response["audio"]),), upstream_id=reply.headers.get("x-request-id"))


def error_message(reply: Reply) -> str | None:
    return "; ".join(reply.json["errors"])


def failure_kind(reply: Reply) -> FailureKind | None:
    """A refusal for content has status 403, which otherwise means a problem with the account."""
    return "refused" if reply.json["name"] == "content_moderation" else None


def form_operation(task: Task, path: str, *rows: Param, **fields: Any) -> Operation:
    """An operation with a multipart form, which Stability requires even if there is no file."""
    return Operation(
        task=task,
        send=f"POST /v2beta/stable-image/{path}",
        read=read_image,
        body="form",
        params=complete_table(task, *rows, fixed("output_format", "png")),
        **fields,
    )


def model(name: str, upstream: str, op: Operation, price: Price) -> Model:
    return Model(id=name, upstream=upstream, op=op, prices=(price,))


TEXTS = (PROMPT, NEGATIVE_PROMPT, SEED)
INPUT_IMAGE = converted("images", to="image", convert=first_image(form_file), required=True, max_items=1)
MASK = converted("mask", to="mask", convert=form_file, required=True)
SD3 = form_operation("image", "generate/sd3", *TEXTS, RATIO, fixed("mode", "text-to-image"))
SD3_EDIT = form_operation(
    "edit",
    "generate/sd3",
    *TEXTS,
    INPUT_IMAGE,
    STRENGTH,
    fixed("mode", "image-to-image"),
    adjust_body=add_default_strength,
)
IMAGE = form_operation("image", "generate/{model}", *TEXTS, RATIO)
INPAINT = form_operation("edit", "edit/{model}", *TEXTS, INPUT_IMAGE, MASK, settings={"mask": "white"})
FAST = form_operation("upscale", "upscale/{model}", INPUT_IMAGE, emulated("scale_factor", one_of=(4,), default=4))
# Both make about 4 megapixels, whatever the size of the input is.
CONSERVATIVE = form_operation(
    "upscale",
    "upscale/{model}",
    replace(PROMPT, required=False),
    NEGATIVE_PROMPT,
    SEED,
    INPUT_IMAGE,
    *ignored("scale_factor"),
    adjust_body=add_default_prompt,
)
CREATIVE = replace(CONSERVATIVE, read=read_job, poll="GET /v2beta/results/{id}", poll_seconds=10.0)

AUDIO = Operation(
    task="sound",
    send="POST /v2beta/audio/stable-audio-2/text-to-audio",
    read=read_audio,
    body="form",
    takes_extras=False,
    settings=MUSIC,
    params=complete_table(
        "sound",
        PROMPT,
        converted("seconds", "duration", round, low=1, high=190, default=20),
        passthrough("seed", low=0, high=2**32 - 1),
        passthrough("steps", low=4, high=8),
        passthrough("cfg_scale", low=1, high=25),
        file_formats("output_format", {"mp3": "mp3", "wav": "wav"}),
    ),
)
AUDIO_PRICE = Price(
    unit="call", usd="0.20", source=Source("fal.ai, which resells it", "2026-11-18", is_second_hand=True)
)
price = price_list(Source("platform.stability.ai/pricing and its notice of 2025-08-01", "2026-11-15"))
PROVIDER = Provider(
    slug="stability",
    name="Stability AI",
    docs="https://platform.stability.ai/docs/api-reference",
    base_url="https://api.stability.ai",
    key_env="STABILITY_API_KEY",
    auth=bearer,
    error_message=error_message,
    failure_kind=failure_kind,
    headers={"accept": "application/json"},  # otherwise the response is an image without a finish reason
    models=(
        model("sd3.5-large", "sd3.5-large", SD3, price("0.065", "image")),
        model("sd3.5-large", "sd3.5-large", SD3_EDIT, price("0.065", "image")),
        model("sd3.5-large-turbo", "sd3.5-large-turbo", SD3, price("0.04", "image")),
        model("sd3.5-medium", "sd3.5-medium", SD3, price("0.035", "image")),
        model("stability/ultra", "ultra", IMAGE, price("0.08", "image")),
        model("stability/core", "core", IMAGE, price("0.03", "image")),
        model("stability/inpaint", "inpaint", INPAINT, price("0.05", "image")),
        model("stability/fast-upscale", "fast", FAST, price("0.02", "image")),
        model("stability/conservative-upscale", "conservative", CONSERVATIVE, price("0.40", "image")),
        model("stability/stable-audio-2.5", "stable-audio-2.5", AUDIO, AUDIO_PRICE),
        model("stability/creative-upscale", "creative", CREATIVE, price("0.60", "image")),
    ),
)
