"""Grok Imagine's pictures, which say exactly what they cost and may be blocked when made."""

from dataclasses import replace

from penstock.providers.convert import both, closest, closest_resolution, lookup
from penstock.providers.spec import (
    File,
    Model,
    Operation,
    Param,
    Price,
    Reply,
    Result,
    converted,
    emulated,
    fixed,
    passthrough,
    complete_table,
)
from penstock.providers.xai.told import BLOCKED, cost, pictured, usd


def read_images(reply: Reply) -> Result:
    made = [one for one in reply.json["data"] if one.get("respect_moderation") is not False]
    if not made and reply.json["data"]:
        return Result(status="failed", failure_kind="refused", message=BLOCKED)
    files = tuple(File(one.get("url"), one.get("b64_json"), None, one.get("revised_prompt")) for one in made)
    return Result(files=files, cost_usd=cost(reply.json))


def pictures(name: str, upstream: str, prices: tuple[Price, ...], *more: Param) -> tuple[Model, ...]:
    pick = both(closest(*"1:1 3:4 4:3 9:16 16:9 2:3 3:2 1:2 2:1 9:20 20:9".split()), closest_resolution("1k", "2k"))
    rows = (
        passthrough("prompt", required=True, max_length=7500),
        emulated("n", "n", high=10),
        passthrough("user"),
        converted("frame", ("aspect_ratio", "resolution"), pick),
        fixed("response_format", "b64_json"),
        *more,
    )
    given = converted("images", ("image", "images"), pictured, required=True, max_items=3)
    made = Operation(
        task="image", send="POST /images/generations", read=read_images, params=complete_table("image", *rows)
    )
    edit = replace(made, task="edit", send="POST /images/edits", params=complete_table("edit", given, *rows))
    return tuple(Model(id=name, upstream=upstream, op=op, prices=prices) for op in (made, edit))


QUALITY = converted(
    "quality",
    "quality",
    lookup({"standard": "low", "low": "low", "medium": "medium", "hd": "medium", "high": "medium"}),
)
BY_QUALITY = (
    usd("0.08", "image", "0.01", quality="medium", resolution="2k"),
    usd("0.06", "image", "0.01", quality="medium"),
    usd("0.06", "image", "0.01", resolution="2k"),
    usd("0.04", "image", "0.01"),
)
MODELS = (
    *pictures("grok-imagine-image-2", "grok-imagine-image-2.0", BY_QUALITY, QUALITY),
    *pictures("grok-imagine-image", "grok-imagine-image", (usd("0.02", "image", "0.002"),)),
)
