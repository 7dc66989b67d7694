"""Recraft: images and SVGs with an OpenAI-compatible request, edits, upscalers; responses report the cost in units."""

import re
from typing import Any

from penstock.providers.convert import closest, first_image
from penstock.providers.openai_compatible import form_file
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

# Refusals are not documented: they have status 400, as other errors, and are recognised by their message.
REFUSAL = re.compile(r"moderat|content policy|prohibited|inappropriate|nsfw", re.IGNORECASE)
UNITS_PER_USD = 1000


def read_images(reply: Reply) -> Result:
    """Read a list of images, or the one image of an upscaler."""
    response = reply.json
    images = response["data"] if "data" in response else [response["image"]]
    units = number_at(response, "credits")
    return Result(
        files=tuple(File(url=image["url"]) for image in images if image.get("url")),
        upstream_id=images[0].get("image_id") if images else None,
        cost_usd=None if units is None else f"{units / UNITS_PER_USD:f}",
    )


def error_message(reply: Reply) -> str | None:
    return str(reply.json["message"])


def failure_kind(reply: Reply) -> FailureKind | None:
    return "refused" if reply.status == 400 and REFUSAL.search(f"{reply.json}") else None


def add_default_strength(fields: dict[str, Any]) -> dict[str, Any]:
    """Add the field `strength`, which Recraft requires and callers may leave out."""
    return {"strength": 0.5, **fields}


def operation(task: Task, path: str, *rows: Param, **fields: Any) -> Operation:
    return Operation(
        task=task,
        send=f"POST /images/{path}",
        read=read_images,
        params=complete_table(task, *rows),
        **fields,
    )


def image_operation(max_prompt: int, sizes: str, *rows: Param) -> Operation:
    return operation(
        "image",
        "generations",
        passthrough("prompt", required=True, max_length=max_prompt),
        N,
        converted("frame", to="size", convert=closest(*sizes.split())),
        *rows,
    )


N = emulated("n", to="n", high=6)
PNG = fixed("image_format", "png")
VECTOR = emulated("output_format", one_of=("svg",), default="svg")
V4_SIZES = """
    1024x1024 1536x768 768x1536 1280x832 832x1280 1216x896 896x1216 1152x896 896x1152 832x1344 1280x896 896x1280
    1344x768 768x1344
"""
V4_PRO_SIZES = """
    2048x2048 3072x1536 1536x3072 2560x1664 1664x2560 2432x1792 1792x2432 2304x1792 1792x2304 1664x2688 2560x1792
    1792x2560 2688x1536 1536x2688
"""
V4 = image_operation(10_000, V4_SIZES, PNG)
V4_PRO = image_operation(10_000, V4_PRO_SIZES, PNG)
V3 = image_operation(
    1000,
    """1024x1024 1365x1024 1024x1365 1536x1024 1024x1536 1820x1024 1024x1820 2048x1024 1024x2048 1434x1024 1024x1434
    1280x1024 1024x1280 1707x1024 1024x1707""",
    PNG,
)
EDIT_ROWS = (
    passthrough("prompt", required=True, max_length=1000),
    N,
    passthrough("negative_prompt"),
    converted("images", to="image", convert=first_image(form_file), required=True, max_items=1),
)
EDIT = operation(
    "edit",
    "imageToImage",
    *EDIT_ROWS,
    passthrough("strength", low=0, high=1),
    body="form",
    adjust_body=add_default_strength,
)
INPAINT = operation(
    "edit",
    "inpaint",
    *EDIT_ROWS,
    converted("mask", to="mask", convert=form_file, required=True),
    body="form",
    settings={"mask": "white"},
)
UPSCALE = operation(
    "upscale",
    "{model}",
    converted("images", to="file", convert=first_image(form_file), required=True, max_items=1),
    *ignored("scale_factor"),
    body="form",
    model_field=None,
)


def model(name: str, upstream: str, op: Operation, price: Price, title: str = "") -> Model:
    return Model(id=name, upstream=upstream, op=op, prices=(price,), name=title)


price = price_list(Source("recraft.ai/docs/api-reference/pricing", "2026-11-15"))
v41_price = price_list(Source("recraft.ai/docs/api-reference/models/recraft-v4-1", "2026-11-16"))
v4_price = price_list(Source("recraft.ai/docs/api-reference/models/recraft-v4", "2026-11-16"))
PROVIDER = Provider(
    slug="recraft",
    name="Recraft",
    docs="https://www.recraft.ai/docs/api-reference",
    base_url="https://external.api.recraft.ai/v1",
    key_env="RECRAFT_API_TOKEN",
    auth=bearer,
    error_message=error_message,
    failure_kind=failure_kind,
    models=(
        model("recraft-v4", "recraftv4_1", V4, price("0.035", "image"), title="Recraft V4.1"),
        model("recraft-v4-pro", "recraftv4_1_pro", V4_PRO, price("0.21", "image")),
        model("recraft/v4-flash", "recraftv4_1_flash", V4, price("0.007", "image")),
        model(
            "recraft-v4-vector",
            "recraftv4_1_vector",
            image_operation(10_000, V4_SIZES, VECTOR),
            v41_price("0.08", "image"),
            title="Recraft V4.1 Vector",
        ),
        model(
            "recraft-v4-pro-vector",
            "recraftv4_1_pro_vector",
            image_operation(10_000, V4_PRO_SIZES, VECTOR),
            v4_price("0.30", "image"),  # of V4 Pro Vector; the response says what it cost
            title="Recraft V4.1 Pro Vector",
        ),
        model("recraft-v3", "recraftv3", V3, price("0.04", "image")),
        model("recraft-v3", "recraftv3", EDIT, price("0.04", "image")),
        model("recraft-v3", "recraftv3", INPAINT, price("0.04", "image")),
        model("recraft-crisp-upscale", "crispUpscale", UPSCALE, price("0.004", "image")),
        model("recraft-creative-upscale", "creativeUpscale", UPSCALE, price("0.25", "image")),
    ),
)
