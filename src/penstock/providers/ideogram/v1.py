"""Ideogram 3.0 and 4.0 over version 1 of the API: images, edits with a black mask, and remixes without a mask."""

from typing import Any

from penstock.providers.convert import closest, closest_label, first_image, lookup, on_off
from penstock.providers.ideogram.images import PROMPT, SEED, N, read_images
from penstock.providers.openai_compatible import form_file
from penstock.providers.spec import (
    Model,
    Operation,
    Param,
    Price,
    Source,
    Task,
    complete_table,
    converted,
    passthrough,
    price_list,
    renamed,
)


def model(name: str, path: str, task: Task, rows: tuple[Param, ...], prices: tuple[Price, ...], **fields: Any) -> Model:
    op = Operation(
        task=task,
        send="POST /v1/{model}",
        read=read_images,
        body="form",
        params=complete_table(task, *rows, SPEED),
        priced_extras=frozenset({"rendering_speed", "character_reference_images"}),
        **fields,
    )
    return Model(id=name, upstream=path, op=op, prices=prices)


SPEEDS = {"low": "TURBO", "medium": "DEFAULT", "standard": "DEFAULT", "high": "QUALITY", "hd": "QUALITY"}
SPEEDS |= {"xhigh": "QUALITY", "max": "QUALITY"}
SPEED = converted("quality", to="rendering_speed", convert=lookup(SPEEDS))
NEGATIVE_PROMPT = passthrough("negative_prompt")
ENHANCEMENT = converted("prompt_enhancement", to="magic_prompt", convert=on_off("ON", "OFF"))
RATIOS = "1:1 16:9 9:16 4:3 3:4 3:2 2:3 5:4 4:5 2:1 1:2 3:1 1:3 16:10 10:16".split()
RATIO = converted(
    "frame", to="aspect_ratio", convert=closest_label({ratio: ratio.replace(":", "x") for ratio in RATIOS})
)
INPUT_IMAGE = converted("images", to="image", convert=first_image(form_file), required=True, max_items=1)
MASK = converted("mask", to="mask", convert=form_file, required=True)
V4_SIZES = """1024x1024 2048x2048 1440x2880 2880x1440 1664x2496 2496x1664 1792x2240 2240x1792 1440x2560 2560x1440
    1600x2560 2560x1600 1728x2304 2304x1728 1296x3168 3168x1296 1152x2944 2944x1152 1248x3328 3328x1248 1280x3072
    3072x1280"""
V3 = (PROMPT, N, RATIO, ENHANCEMENT, SEED, NEGATIVE_PROMPT)
# V4 always enhances a text prompt; callers cannot switch it off.
V4 = (
    renamed("prompt", to="text_prompt", required=True, max_length=10_000),
    converted("frame", to="resolution", convert=closest(*V4_SIZES.split())),
)

price = price_list(Source("ideogram.ai/features/api-pricing", "2026-11-15"))
V3_PRICES = (
    price("0.03", "image", rendering_speed="TURBO"),
    price("0.09", "image", rendering_speed="QUALITY"),
    price("0.06", "image"),
)
V4_PRICES = (
    price("0.03", "image", rendering_speed="TURBO"),
    price("0.10", "image", rendering_speed="QUALITY"),
    price("0.06", "image"),
)
MODELS = (
    model("ideogram-v3", "ideogram-v3/generate", "image", V3, V3_PRICES),
    model("ideogram-v3", "ideogram-v3/remix", "edit", (*V3, INPUT_IMAGE), V3_PRICES),
    model(
        "ideogram-v3",
        "ideogram-v3/inpaint",
        "edit",
        (PROMPT, N, ENHANCEMENT, SEED, INPUT_IMAGE, MASK),
        V3_PRICES,
        settings={"mask": "black"},
    ),
    model("ideogram-v4", "ideogram-v4/generate", "image", V4, V4_PRICES),
)
