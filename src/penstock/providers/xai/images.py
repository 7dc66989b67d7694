"""Grok Imagine images; the response reports the exact cost, and may have blocked images."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from penstock.providers.convert import both, closest_label, closest_resolution, data_uri, lookup
from penstock.providers.spec import (
    File,
    Model,
    Operation,
    Param,
    Price,
    Reply,
    Result,
    complete_table,
    converted,
    emulated,
    fixed,
    passthrough,
)
from penstock.providers.xai.media import BLOCKED_MESSAGE, cost_usd, drop_ratio, price
from penstock.values import InputFile

RATIOS = {ratio: ratio for ratio in "1:1 3:4 4:3 9:16 16:9 2:3 3:2 1:2 2:1 9:20 20:9 21:9 5:2".split()}
RATIOS |= {"18:39": "9:19.5", "39:18": "19.5:9"}


def read_images(reply: Reply) -> Result:
    allowed = [image for image in reply.json["data"] if image.get("respect_moderation") is not False]
    if not allowed and reply.json["data"]:
        cost = cost_usd(reply.json)
        return Result(status="failed", failure_kind="refused", message=BLOCKED_MESSAGE, cost_usd=cost)
    files = tuple(
        File(url=image.get("url"), data=image.get("b64_json"), revised_prompt=image.get("revised_prompt"))
        for image in allowed
    )
    return Result(files=files, cost_usd=cost_usd(reply.json))


def typed_images(images: Sequence[InputFile]) -> tuple[Any, Any]:
    """Values for two fields, of which one is used: for a single image, and for a list."""
    objects = [{"type": "image_url", "url": data_uri(image)} for image in images]
    return (objects[0], None) if len(objects) == 1 else (None, objects)


def image_models(name: str, upstream: str, prices: tuple[Price, ...], *rows: Param) -> tuple[Model, ...]:
    """A model that makes and edits images."""
    shared = (
        passthrough("prompt", required=True, max_length=7500),
        emulated("n", to="n", high=10),
        passthrough("user"),
        converted(
            "frame",
            to=("aspect_ratio", "resolution"),
            convert=both(closest_label(RATIOS), closest_resolution("1k", "2k")),
        ),
        fixed("response_format", "b64_json"),
        *rows,
    )
    inputs = converted("images", to=("image", "images"), convert=typed_images, required=True, max_items=3)
    image = Operation(
        task="image",
        send="POST /images/generations",
        read=read_images,
        params=complete_table("image", *shared),
    )
    edit = replace(image, task="edit", send="POST /images/edits", params=complete_table("edit", inputs, *shared))
    if name == "grok-imagine-image":  # an edited image has the shape of the input; 2.0 can change it
        edit = replace(edit, adjust_body=drop_ratio)
    return tuple(Model(id=name, upstream=upstream, op=op, prices=prices) for op in (image, edit))


QUALITIES = {"standard": "low", "low": "low", "medium": "medium", "hd": "medium", "high": "medium"}
QUALITIES |= {"xhigh": "medium", "max": "medium"}
QUALITY = converted("quality", to="quality", convert=lookup(QUALITIES))
MODELS = (
    *image_models(
        "grok-imagine-image-2",
        "grok-imagine-image-2.0",
        (
            price("0.06", "image", input_usd="0.01", quality="low", resolution="2k"),
            price("0.04", "image", input_usd="0.01", quality="low"),
            price("0.08", "image", input_usd="0.01", resolution="2k"),  # without a quality, xAI uses medium
            price("0.06", "image", input_usd="0.01"),
        ),
        QUALITY,
    ),
    *image_models("grok-imagine-image", "grok-imagine-image", (price("0.02", "image", input_usd="0.002"),)),
)
