"""Ideogram: pictures with legible words, edits within a mask that is black, and remixes without one."""

from typing import Any

from penstock.providers.convert import closest, first_image, on_off, closest_label, lookup
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
    Task,
    converted,
    emulated,
    header,
    passthrough,
    price_list,
    renamed,
    complete_table,
)


def read(reply: Reply) -> Result:
    """Pictures that failed its check are listed without an address."""
    made = reply.json["data"]
    fine = [one for one in made if one.get("url") and one.get("is_image_safe", True)]
    if made and not fine:
        return Result(status="failed", failure_kind="refused", message="The picture failed the safety check.")
    return Result(
        files=tuple(File(url=one["url"], revised_prompt=one.get("prompt")) for one in fine),
        upstream_id=reply.json.get("request_id"),
    )


def error(reply: Reply) -> str | None:
    told = reply.json.get("error") or reply.json.get("message") or reply.json["detail"]
    return told if isinstance(told, str) else None


def kind(reply: Reply) -> FailureKind | None:
    """What is malformed gets 400; this is for prompts and pictures that failed its check."""
    return "refused" if reply.status == 422 else None


def model(name: str, path: str, task: Task, rows: tuple[Param, ...], prices: tuple[Price, ...], **more: Any) -> Model:
    op = Operation(
        task=task,
        send="POST /v1/{model}",
        read=read,
        body="form",
        params=complete_table(task, *rows, SPEED),
        priced_extras=frozenset({"rendering_speed", "character_reference_images"}),
        **more,
    )
    return Model(id=name, upstream=path, op=op, prices=prices)


usd = price_list("ideogram.ai/features/api-pricing, read 2026-11-15")
SPEEDS = {"low": "TURBO", "medium": "DEFAULT", "standard": "DEFAULT", "high": "QUALITY", "hd": "QUALITY"}
SPEED = converted("quality", "rendering_speed", lookup(SPEEDS))
PROMPT, N = passthrough("prompt", required=True, max_length=10_000), emulated("n", "num_images", high=8)
MAGIC = converted("prompt_enhancement", "magic_prompt", on_off("ON", "OFF"))
RATIOS = "1:1 16:9 9:16 4:3 3:4 3:2 2:3 5:4 4:5 2:1 1:2 3:1 1:3 16:10 10:16".split()
SHAPE = converted("frame", "aspect_ratio", closest_label({ratio: ratio.replace(":", "x") for ratio in RATIOS}))
PICTURE = converted("images", "image", first_image(form_file), required=True, max_items=1)
MASK = converted("mask", "mask", form_file, required=True)
# Where only words are given they are always expanded, whatever a caller says of it.
V4 = (
    renamed("prompt", "text_prompt", required=True, max_length=10_000),
    converted(
        "frame",
        "resolution",
        closest(
            "1024x1024",
            "2048x2048",
            "1440x2880",
            "2880x1440",
            "1664x2496",
            "2496x1664",
            "1792x2240",
            "2240x1792",
            "1440x2560",
            "2560x1440",
            "1600x2560",
            "2560x1600",
            "1728x2304",
            "2304x1728",
            "1296x3168",
            "3168x1296",
            "1152x2944",
            "2944x1152",
            "1248x3328",
            "3328x1248",
            "1280x3072",
            "3072x1280",
        ),
    ),
)
V3_USD = (
    usd("0.03", "image", rendering_speed="TURBO"),
    usd("0.09", "image", rendering_speed="QUALITY"),
    usd("0.06", "image"),
)
V4_USD = (
    usd("0.03", "image", rendering_speed="TURBO"),
    usd("0.10", "image", rendering_speed="QUALITY"),
    usd("0.06", "image"),
)
PROVIDER = Provider(
    slug="ideogram",
    name="Ideogram",
    docs="https://developer.ideogram.ai",
    base_url="https://api.ideogram.ai",
    key_env="IDEOGRAM_API_KEY",
    auth=header("api-key"),
    error_message=error,
    failure_kind=kind,
    models=(
        model("ideogram-v3", "ideogram-v3/generate", "image", (PROMPT, N, SHAPE, MAGIC), V3_USD),
        model("ideogram-v3", "ideogram-v3/remix", "edit", (PROMPT, N, SHAPE, MAGIC, PICTURE), V3_USD),
        model(
            "ideogram-v3",
            "ideogram-v3/edit",
            "edit",
            (PROMPT, N, MAGIC, PICTURE, MASK),
            V3_USD,
            settings={"mask": "black"},
            modes=("inpainting",),
        ),
        model("ideogram-v4", "ideogram-v4/generate", "image", V4, V4_USD),
    ),
)
