"""Ideogram 4.5 over version 2 of the API: images, edits that may change the size, and precise edits that keep it."""

from collections.abc import Sequence

from penstock.providers.convert import closest, each_image, lookup, on_off, pixels, size_text
from penstock.providers.ideogram.images import PROMPT, SEED, N, read_images
from penstock.providers.openai_compatible import form_file
from penstock.providers.spec import (
    Model,
    Operation,
    Param,
    Price,
    Source,
    Task,
    Upload,
    complete_table,
    converted,
    price_list,
)
from penstock.values import InputFile


def image_and_references(images: Sequence[InputFile]) -> tuple[Upload, list[Upload] | None]:
    """Values for two fields: the image to edit, and the others."""
    first, *others = map(form_file, images)
    return first, others or None


def operation(task: Task, *rows: Param) -> Operation:
    return Operation(
        task=task,
        send="POST /v2/image/{model}",
        model_field=None,
        read=read_images,
        body="form",
        params=complete_table(task, PROMPT, N, SEED, QUALITY, *rows),
        priced_extras=frozenset({"async", "webhook_url"}),  # they would answer with a job
        settings={"mask": "black"},
    )


QUALITIES = {"low": "low", "medium": "medium", "standard": "medium", "high": "high", "hd": "high"}
QUALITY = converted("quality", to="quality", convert=lookup(QUALITIES | {"xhigh": "high", "max": "high"}))
ENHANCEMENT = converted("prompt_enhancement", to="magic_prompt", convert=on_off("on", "off"))
SIZES = """1024x1024 2048x2048 1440x2880 2880x1440 1664x2496 2496x1664 1792x2240 2240x1792 1440x2560 2560x1440 1600x2560
    2560x1600 1728x2304 2304x1728 1280x3072 3072x1280 1024x3072 3072x1024 896x1120 1120x896 864x1152 1152x864 832x1248
    1248x832 800x1280 1280x800"""
MASK = converted("mask", to="mask", convert=form_file)
IMAGE = operation("image", ENHANCEMENT, converted("frame", to="size", convert=closest(*SIZES.split())))
EDIT = operation(
    "edit",
    converted("images", to="images", convert=each_image(form_file), required=True, max_items=5),
    MASK,
    converted(
        "frame",
        to="size",
        convert=size_text(pixels(multiple=32, min_side=256, max_side=4608, max_area=2048 * 2048)),
    ),
)
PRECISE_EDIT = operation(
    "edit",
    converted(
        "images",
        to=("image", "reference_images"),
        convert=image_and_references,
        required=True,
        max_items=5,
    ),
    MASK,
)

price = price_list(Source("the quotes of Ideogram's API, as others recorded them", "2026-10-07", is_second_hand=True))
IMAGE_PRICES = (
    price("0.03", "image", quality="low"),
    price("0.06", "image", quality="medium"),
    price("0.10", "image"),  # without a quality, it is high
)
EDIT_PRICES = (
    price("0.03", "image", quality="low"),
    price("0.22", "image", quality="high"),
    price("0.06", "image"),  # without a quality, it is medium
)


def model(name: str, upstream: str, op: Operation, prices: tuple[Price, ...]) -> Model:
    return Model(id=name, upstream=upstream, op=op, prices=prices)


MODELS = (
    model("ideogram-v4.5", "generate/ideogram-4-5", IMAGE, IMAGE_PRICES),
    model("ideogram-v4.5", "generate/ideogram-4-5", EDIT, EDIT_PRICES),
    model("ideogram/v4.5-precise-edit", "precise-edit/ideogram-4-5", PRECISE_EDIT, EDIT_PRICES),
)
