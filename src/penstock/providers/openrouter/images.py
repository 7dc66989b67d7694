"""Pictures of many makers through OpenRouter."""

from dataclasses import replace

from penstock.providers.convert import both, closest, each_image, closest_resolution
from penstock.providers.openrouter.told import cost, picture, usd
from penstock.providers.spec import File, Model, Operation, Price, Reply, Result, converted, passthrough, complete_table

RATIOS = "1:1 1:2 2:1 2:3 3:2 3:4 4:3 4:5 5:4 9:16 16:9 9:21 21:9 1:4 4:1 1:8 8:1"
SIZES = ("1K", "2K", "4K")
IMAGE = "image"


def read_pictures(reply: Reply) -> Result:
    made = tuple(File(data=one["b64_json"], content_type=one.get("media_type")) for one in reply.json["data"])
    return Result(files=made, cost_usd=cost(reply.json))


def pictures(name: str, upstream: str, most: int, sizes: tuple[str, ...], *prices: Price) -> tuple[Model, ...]:
    """How many are made at once is up to the maker, so that each is asked for by itself."""
    rows = (
        passthrough("prompt", required=True),
        passthrough("user"),
        converted("frame", ("aspect_ratio", "resolution"), both(closest(*RATIOS.split()), closest_resolution(*sizes))),
    )
    given = converted("images", "input_references", each_image(picture), required=True, max_items=most)
    made = Operation(task="image", send="POST /images", read=read_pictures, params=complete_table("image", *rows))
    edit = replace(made, task="edit", params=complete_table("edit", given, *rows))
    return tuple(Model(id=name, upstream=upstream, op=op, prices=prices, priority=20) for op in (made, edit))


MODELS = (
    *pictures("nano-banana", "google/gemini-2.5-flash-image", 10, ("1K",), usd("0.045", IMAGE, "0.001")),
    *pictures(
        "nano-banana-2",
        "google/gemini-3.1-flash-image",
        14,
        SIZES,
        usd("0.12", IMAGE, "0.001", resolution="2K"),
        usd("0.17", IMAGE, "0.001", resolution="4K"),
        usd("0.08", IMAGE, "0.001"),
    ),
    *pictures(
        "nano-banana-pro",
        "google/gemini-3-pro-image",
        14,
        SIZES,
        usd("0.29", IMAGE, "0.0025", resolution="4K"),
        usd("0.18", IMAGE, "0.0025"),
    ),
    *pictures("seedream-4.5", "bytedance-seed/seedream-4.5", 10, SIZES, usd("0.04", IMAGE)),
)
