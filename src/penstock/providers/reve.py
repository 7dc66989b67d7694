"""Reve: images that are made and edited while the call waits; one image is edited, several are combined."""

import re

from penstock.providers.convert import each_image, first_image, plain_base64
from penstock.providers.reported import number_at
from penstock.providers.spec import (
    FailureKind,
    File,
    Model,
    Operation,
    Param,
    Provider,
    Reply,
    Result,
    Source,
    Task,
    bearer,
    complete_table,
    converted,
    frame,
    passthrough,
    price_list,
    renamed,
)

CREDITS_PER_USD = 750
MAX_IMAGE_BYTES = 10_000_000
PROMPT_LENGTH = 2560
# Refusals of a prompt have no status of their own; they are recognised by their code or message.
REFUSAL = re.compile(r"violat|polic|moderat", re.IGNORECASE)


def read_image(reply: Reply) -> Result:
    """Read the image. One that Reve does not want to show is reported with status 200, without data."""
    response = reply.json
    if response.get("content_violation"):
        return Result(status="failed", failure_kind="refused", message="Reve refused the content of the image.")
    credits_used = number_at(response, "credits_used")
    return Result(
        files=(File(data=response["image"], content_type="image/png"),) if response.get("image") else (),
        upstream_id=response.get("request_id"),
        cost_usd=None if credits_used is None else f"{credits_used / CREDITS_PER_USD:.6f}",
    )


def error_message(reply: Reply) -> str | None:
    return str(reply.json["message"])


def failure_kind(reply: Reply) -> FailureKind | None:
    words = f"{reply.json.get('error_code')} {reply.json.get('message')}"
    return "refused" if reply.status in (400, 422) and REFUSAL.search(words) else None


def model(name: str, path: str, version: str, task: Task, usd: str, *rows: Param) -> Model:
    op = Operation(
        task=task,
        send=f"POST /v1/image/{path}",
        read=read_image,
        model_field="version",
        params=complete_table(task, frame("1:1 3:2 2:3 4:3 3:4 16:9 9:16"), *rows),
        priced_extras=frozenset({"postprocessing", "test_time_scaling"}),
    )
    return Model(id=name, upstream=version, op=op, prices=(price(usd, "image"),))


PROMPT = passthrough("prompt", required=True, max_length=PROMPT_LENGTH)
ONE_IMAGE = (
    renamed("prompt", to="edit_instruction", required=True, max_length=PROMPT_LENGTH),
    converted(
        "images",
        to="reference_image",
        convert=first_image(plain_base64),
        required=True,
        max_items=1,
        max_bytes=MAX_IMAGE_BYTES,
    ),
)
SEVERAL_IMAGES = (
    PROMPT,
    converted(
        "images",
        to="reference_images",
        convert=each_image(plain_base64),
        required=True,
        min_items=2,
        max_items=6,
        max_bytes=MAX_IMAGE_BYTES,
    ),
)

price = price_list(Source("ComfyUI's nodes for Reve, without Comfy's margin", "2026-11-16", is_second_hand=True))
PROVIDER = Provider(
    slug="reve",
    name="Reve",
    docs="https://api.reve.com/console/docs",
    base_url="https://api.reve.com",
    key_env="REVE_API_TOKEN",
    auth=bearer,
    headers={"accept": "application/json"},
    error_message=error_message,
    failure_kind=failure_kind,
    models=(
        model("reve", "create", "reve-create@20250915", "image", "0.024", PROMPT),
        model("reve", "edit", "reve-edit@20250915", "edit", "0.04", *ONE_IMAGE),
        model("reve", "remix", "reve-remix@20250915", "edit", "0.04", *SEVERAL_IMAGES),
        model("reve-fast", "edit", "reve-edit-fast@20251030", "edit", "0.007", *ONE_IMAGE),
        model("reve-fast", "remix", "reve-remix-fast@20251030", "edit", "0.007", *SEVERAL_IMAGES),
    ),
)
