"""Stability: Stable Image pictures, edits within a mask, and three upscalers, of which the dearest takes its time."""

from dataclasses import replace
from typing import Any

from penstock.providers.convert import first_image
from penstock.providers.openai_compatible import form_file
from penstock.providers.spec import (
    File,
    FailureKind,
    Model,
    Operation,
    Param,
    Price,
    Provider,
    Reply,
    Result,
    Status,
    Task,
    bearer,
    converted,
    emulated,
    fixed,
    passthrough,
    price_list,
    refused,
    frame,
    complete_table,
)


def read(reply: Reply) -> Result:
    """A picture that its filter objected to comes, blurred, like any other."""
    answer = reply.json
    if answer.get("finish_reason") == "CONTENT_FILTERED":
        return Result(status="failed", failure_kind="refused", message="The picture was filtered for its content.")
    data = answer.get("image") or answer.get("result")  # the latter where it was waited for
    return Result(files=(File(data=data),) if data else (), upstream_id=reply.headers.get("x-request-id"))


def read_job(reply: Reply) -> Result:
    """A ticket has only a name; whoever asks too early gets 202 and the same name."""
    answer = reply.json
    if "finish_reason" in answer:
        return read(reply)
    status: Status = "in_progress" if reply.status == 202 else "queued"
    return Result(status=status, ref={"id": answer["id"]}, upstream_id=answer["id"])


def error(reply: Reply) -> str | None:
    return "; ".join(reply.json["errors"])


def kind(reply: Reply) -> FailureKind | None:
    """It comes with 403, which is otherwise trouble with the account."""
    return "refused" if reply.json["name"] == "content_moderation" else None


def altered(fields: dict[str, Any]) -> dict[str, Any]:
    """How far from the picture is not optional there, and here it is."""
    return {"strength": 0.7, **fields}


def does(task: Task, folder: str, *rows: Param, **more: Any) -> Operation:
    """Everything is a form, also where no file goes along."""
    return Operation(
        task=task,
        send=f"POST /v2beta/stable-image/{folder}",
        read=read,
        body="form",
        params=complete_table(task, *rows, fixed("output_format", "png")),
        **more,
    )


def model(name: str, path: str, op: Operation, *prices: Price) -> Model:
    return Model(id=name, upstream=path, op=op, prices=prices)


usd = price_list("platform.stability.ai/pricing and its notice of 2025-08-01, read 2026-11-15")
PROMPT, RATIO = (
    passthrough("prompt", required=True, max_length=10_000),
    frame("1:1 16:9 9:16 3:2 2:3 5:4 4:5 21:9 9:21"),
)
PICTURE = converted("images", "image", first_image(form_file), required=True, max_items=1)
MASK = converted("mask", "mask", form_file, required=True)
SD3 = does("image", "generate/sd3", PROMPT, RATIO)
SD3_EDIT = does(
    "edit",
    "generate/sd3",
    PROMPT,
    PICTURE,
    passthrough("strength", low=0, high=1),
    fixed("mode", "image-to-image"),
    adjust_body=altered,
)
STABLE = does("image", "generate/{model}", PROMPT, RATIO)
INPAINT = does("edit", "edit/{model}", PROMPT, PICTURE, MASK, settings={"mask": "white"})
FOURFOLD = does("upscale", "upscale/{model}", PICTURE, emulated("scale_factor", one_of=(4,), default=4))
CONSERVATIVE = does("upscale", "upscale/{model}", PROMPT, PICTURE, *refused("scale_factor"))  # to about 4 megapixels
CREATIVE = replace(CONSERVATIVE, read=read_job, poll="GET /v2beta/results/{id}", poll_seconds=10.0)
PROVIDER = Provider(
    slug="stability",
    name="Stability AI",
    docs="https://platform.stability.ai/docs/api-reference",
    base_url="https://api.stability.ai",
    key_env="STABILITY_API_KEY",
    auth=bearer,
    error_message=error,
    failure_kind=kind,
    headers={"accept": "application/json"},  # bare bytes would not say that they were filtered
    models=(
        model("sd3.5-large", "sd3.5-large", SD3, usd("0.065", "image")),
        model("sd3.5-large", "sd3.5-large", SD3_EDIT, usd("0.065", "image")),
        model("sd3.5-large-turbo", "sd3.5-large-turbo", SD3, usd("0.04", "image")),
        model("sd3.5-medium", "sd3.5-medium", SD3, usd("0.035", "image")),
        model("stability/ultra", "ultra", STABLE, usd("0.08", "image")),
        model("stability/core", "core", STABLE, usd("0.03", "image")),
        model("stability/inpaint", "inpaint", INPAINT, usd("0.05", "image")),
        model("stability/fast-upscale", "fast", FOURFOLD, usd("0.02", "image")),
        model("stability/conservative-upscale", "conservative", CONSERVATIVE, usd("0.40", "image")),
        model("stability/creative-upscale", "creative", CREATIVE, usd("0.60", "image")),
    ),
)
