"""Recraft: pictures in OpenAI's shapes, edits and upscalers in its own, and what each call took in units."""

import re
from decimal import Decimal
from typing import Any

from penstock.providers.convert import closest, first_image
from penstock.providers.openai_compatible import form_file
from penstock.providers.spec import (
    File,
    FailureKind,
    Model,
    Operation,
    Param,
    Provider,
    Reply,
    Result,
    Task,
    bearer,
    converted,
    emulated,
    fixed,
    passthrough,
    price_list,
    refused,
    complete_table,
)

# Not documented: a refusal is a 400 like any other, and is known by its words.
REFUSAL = re.compile(r"moderat|content policy|prohibited|inappropriate|nsfw", re.IGNORECASE)
UNITS_PER_USD = 1000


def read(reply: Reply) -> Result:
    """Tools that make one picture give it alone."""
    answer = reply.json
    made = answer["data"] if "data" in answer else [answer["image"]]
    units = answer.get("credits")
    return Result(
        files=tuple(File(url=one["url"]) for one in made if one.get("url")),
        upstream_id=made[0].get("image_id") if made else None,
        cost_usd=None if units is None else f"{Decimal(str(units)) / UNITS_PER_USD:f}",
    )


def error(reply: Reply) -> str | None:
    return str(reply.json["message"])


def kind(reply: Reply) -> FailureKind | None:
    return "refused" if reply.status == 400 and REFUSAL.search(f"{reply.json}") else None


def altered(fields: dict[str, Any]) -> dict[str, Any]:
    """How far from the picture is not optional there, and here it is."""
    return {"strength": 0.5, **fields}


def does(task: Task, path: str, *rows: Param, **more: Any) -> Operation:
    return Operation(task=task, send=f"POST /images/{path}", read=read, params=complete_table(task, *rows), **more)


def makes(longest: int, *sizes: str) -> Operation:
    return does(
        "image",
        "generations",
        passthrough("prompt", required=True, max_length=longest),
        N,
        PNG,
        converted("frame", "size", closest(*sizes)),
    )


def enlarges(path: str) -> Operation:
    return does(
        "upscale",
        path,
        converted("images", "file", first_image(form_file), required=True, max_items=1),
        *refused("scale_factor"),
        body="form",
        model_field=None,
    )


usd = price_list("recraft.ai/docs/api-reference/pricing, read 2026-11-15")
N, PNG = emulated("n", "n", high=6), fixed("image_format", "png")
V4 = makes(
    10_000,
    "1024x1024",
    "1536x768",
    "768x1536",
    "1280x832",
    "832x1280",
    "1216x896",
    "896x1216",
    "1152x896",
    "896x1152",
    "832x1344",
    "1280x896",
    "896x1280",
    "1344x768",
    "768x1344",
)
V4_PRO = makes(
    10_000,
    "2048x2048",
    "3072x1536",
    "1536x3072",
    "2560x1664",
    "1664x2560",
    "2432x1792",
    "1792x2432",
    "2304x1792",
    "1792x2304",
    "1664x2688",
    "2560x1792",
    "1792x2560",
    "2688x1536",
    "1536x2688",
)
V3 = makes(
    1000,
    "1024x1024",
    "1365x1024",
    "1024x1365",
    "1536x1024",
    "1024x1536",
    "1820x1024",
    "1024x1820",
    "2048x1024",
    "1024x2048",
    "1434x1024",
    "1024x1434",
    "1280x1024",
    "1024x1280",
    "1707x1024",
    "1024x1707",
)
EDIT = (
    passthrough("prompt", required=True, max_length=1000),
    N,
    converted("images", "image", first_image(form_file), required=True, max_items=1),
)
REMAKE = does("edit", "imageToImage", *EDIT, passthrough("strength", low=0, high=1), body="form", adjust_body=altered)
INPAINT = does(
    "edit",
    "inpaint",
    *EDIT,
    converted("mask", "mask", form_file, required=True),
    body="form",
    settings={"mask": "white"},
    modes=("inpainting",),
)
PROVIDER = Provider(
    slug="recraft",
    name="Recraft",
    docs="https://www.recraft.ai/docs/api-reference",
    base_url="https://external.api.recraft.ai/v1",
    key_env="RECRAFT_API_TOKEN",
    auth=bearer,
    error_message=error,
    failure_kind=kind,
    models=(
        Model(id="recraft-v4", upstream="recraftv4_1", op=V4, prices=(usd("0.035", "image"),), name="Recraft V4.1"),
        Model(id="recraft-v4-pro", upstream="recraftv4_1_pro", op=V4_PRO, prices=(usd("0.21", "image"),)),
        Model(id="recraft/v4-flash", upstream="recraftv4_1_flash", op=V4, prices=(usd("0.007", "image"),)),
        Model(id="recraft-v3", upstream="recraftv3", op=V3, prices=(usd("0.04", "image"),)),
        Model(id="recraft-v3", upstream="recraftv3", op=REMAKE, prices=(usd("0.04", "image"),)),
        Model(id="recraft-v3", upstream="recraftv3", op=INPAINT, prices=(usd("0.04", "image"),)),
        Model(
            id="recraft-crisp-upscale", upstream="crispUpscale", op=enlarges("{model}"), prices=(usd("0.004", "image"),)
        ),
        Model(
            id="recraft-creative-upscale",
            upstream="creativeUpscale",
            op=enlarges("{model}"),
            prices=(usd("0.25", "image"),),
        ),
    ),
)
