"""Black Forest Labs: FLUX pictures, edits and films, each a task that is followed wherever its cluster is."""

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
    Status,
    Task,
    converted,
    fixed,
    header,
    duration,
    passthrough,
    price_list,
    frame,
    complete_table,
)
from penstock.values import InputImage

# "Task not found" is no status: a cluster that has not heard of a task yet says so, too, and is asked again.
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
CENT = Decimal("0.01")  # what a credit is worth


def read(reply: Reply) -> Result:
    """A ticket, or how its task is; a task that failed is also told of with 422 and 503."""
    job = reply.json
    if "polling_url" in job:
        return Result(status="queued", ref={"polling_url": job["polling_url"]}, upstream_id=job["id"])
    word, made, credits = job["status"], job.get("result") or {}, job.get("cost")
    return Result(
        status=STATUS[word],
        files=(File(url=made["sample"], revised_prompt=made.get("prompt")),) if made.get("sample") else (),
        failure_kind="refused" if "Moderated" in word else "broken",
        message=f"{word}. {_reasons(job.get('details'))}".strip(),
        cost_usd=None if credits is None else f"{Decimal(str(credits)) * CENT:f}",
        progress=job.get("progress"),
    )


def _reasons(details: Any) -> str:
    return ", ".join(details.get("Moderation Reasons", ())) if isinstance(details, dict) else details or ""


def error(reply: Reply) -> str | None:
    told = reply.json.get("detail") or reply.json["message"]
    return told if isinstance(told, str) else told[0]["msg"]


def references(most: int) -> Param:
    """Each has a field of its own."""
    names = ("input_image", *(f"input_image_{number}" for number in range(2, most + 1)))

    def spread(found: Sequence[InputImage]) -> tuple[str | None, ...]:
        return (*map(plain_base64, found), *[None] * (most - len(found)))

    return converted("images", names, spread, required=True, max_items=most)


def filmed(fields: dict[str, Any]) -> dict[str, Any]:
    """A film that begins with a picture has its shape."""
    if "keyframes" not in fields:
        return {**fields, "mode": "t2v"}
    return {name: value for name, value in fields.items() if name != "aspect_ratio"} | {"mode": "i2v"}


def does(task: Task, *rows: Param, **more: Any) -> Operation:
    return Operation(
        task=task,
        send="POST /v1/{model}",
        poll="GET {polling_url}",
        read=read,
        read_http_errors=True,
        params=complete_table(task, PROMPT, *rows),
        **{"poll_seconds": 1.0, **more},
    )


def stills(name: str, path: str, most: int, rows: tuple[Param, ...], *prices: Price) -> tuple[Model, Model]:
    """One endpoint makes pictures and edits so many of them."""
    made = Model(id=name, upstream=path, op=does("image", *rows), prices=prices)
    return made, replace(made, op=does("edit", *rows, references(most)))


usd, MP, PICTURE = price_list("docs.bfl.ai/quick_start/pricing, read 2026-11-15"), "started_megapixel", "image"
PROMPT, PNG = passthrough("prompt", required=True), fixed("output_format", "png")
EXPANDED = converted("prompt_enhancement", "prompt_upsampling", on_off(True, False))
FLUX_2 = (converted("frame", ("width", "height"), pixels(multiple=16, min_side=64, max_side=2048)), PNG, EXPANDED)
FLUX_11 = (converted("frame", ("width", "height"), pixels(multiple=32, min_side=256, max_side=1440)), PNG, EXPANDED)
RATIO = (frame("1:1 16:9 9:16 4:3 3:4 3:2 2:3 21:9 9:21"), PNG, EXPANDED)
FLUX_3 = (frame("1:1 16:9 9:16 4:3 3:4 3:2 2:3 5:4 4:5 7:5 5:7 2:1 1:2 21:9 9:21", "1k", "2k", "4k"),)
FLUX_3_USD = (usd("0.10", PICTURE, resolution="2k"), usd("0.607", PICTURE, resolution="4k"), usd("0.048", PICTURE))
FLUX_3_EDIT = does(
    "edit", *FLUX_3, converted("images", "images", each_image(plain_base64), required=True, max_items=10)
)
FILL = does(
    "edit",
    PNG,
    EXPANDED,
    converted("images", "image", first_image(plain_base64), required=True, max_items=1),
    converted("mask", "mask", plain_base64, required=True),
    settings={"mask": "white"},
)
FILM = does(
    "video",
    duration(*range(5, 21), default=5),
    frame("16:9 9:16 1:1 4:3 3:4 2:1 21:9", "hd", "fhd", "qhd", "uhd"),
    converted("input_reference", "keyframes", each_image(plain_base64), max_items=2),
    passthrough("generate_audio", one_of=(True, False)),
    adjust_body=filmed,
    poll_seconds=5.0,
    priced_extras=frozenset({"mode", "draft", "draft_cache", "start_video"}),
)
MODELS = (
    *stills("flux-2-pro", "flux-2-pro", 8, FLUX_2, usd("0.015", MP, "0.015", "0.015")),
    *stills("flux-2-max", "flux-2-max", 8, FLUX_2, usd("0.03", MP, "0.03", "0.04")),
    *stills("flux-2-flex", "flux-2-flex", 8, FLUX_2, usd("0.05", MP, "0.05")),
    *stills("flux-2-klein-4b", "flux-2-klein-4b", 4, FLUX_2, usd("0.001", MP, "0.001", "0.013")),
    *stills("flux-2-klein-9b", "flux-2-klein-9b", 4, FLUX_2, usd("0.002", MP, "0.002", "0.013")),
    *stills("flux-kontext-pro", "flux-kontext-pro", 1, RATIO, usd("0.04", PICTURE)),
    *stills("flux-kontext-max", "flux-kontext-max", 1, RATIO, usd("0.08", PICTURE)),
    Model(id="flux-1.1-pro", upstream="flux-pro-1.1", op=does("image", *FLUX_11), prices=(usd("0.04", PICTURE),)),
    Model(
        id="flux-1.1-pro-ultra", upstream="flux-pro-1.1-ultra", op=does("image", *RATIO), prices=(usd("0.06", PICTURE),)
    ),
    Model(id="flux-fill-pro", upstream="flux-pro-1.0-fill", op=FILL, prices=(usd("0.05", PICTURE),)),
    Model(id="flux-3-image", upstream="flux-3-image", op=does("image", *FLUX_3), prices=FLUX_3_USD),
    Model(id="flux-3-image", upstream="flux-3-image", op=FLUX_3_EDIT, prices=FLUX_3_USD),
    Model(
        id="flux-3-video",
        upstream="flux-3-video",
        op=FILM,
        prices=(
            usd("0.29", resolution="fhd"),
            usd("0.40", resolution="qhd"),
            usd("0.80", resolution="uhd"),
            usd("0.17"),
        ),
    ),
)
PROVIDER = Provider(
    slug="bfl",
    name="Black Forest Labs",
    docs="https://docs.bfl.ai",
    base_url="https://api.bfl.ai",
    domain="bfl.ai",
    key_env="BFL_API_KEY",
    auth=header("x-key"),
    error_message=error,
    models=MODELS,
)
