"""Images of many providers through OpenRouter."""

from dataclasses import replace

from penstock.providers.convert import both, closest, closest_resolution, each_image
from penstock.providers.openrouter.media import cost_usd, image_object, price
from penstock.providers.spec import File, Model, Operation, Price, Reply, Result, complete_table, converted, passthrough

RATIOS = "1:1 1:2 2:1 2:3 3:2 3:4 4:3 4:5 5:4 9:16 16:9 9:21 21:9 1:4 4:1 1:8 8:1"
SIZES = ("1K", "2K", "4K")


def read_images(reply: Reply) -> Result:
    files = tuple(File(data=image["b64_json"], content_type=image.get("media_type")) for image in reply.json["data"])
    return Result(files=files, cost_usd=cost_usd(reply.json))


def image_models(
    name: str, upstream: str, sizes: tuple[str, ...], *prices: Price, max_images: int
) -> tuple[Model, ...]:
    """A model that makes and edits images, one per call: the number of outputs depends on the provider behind it."""
    shared = (
        passthrough("prompt", required=True),
        passthrough("user"),
        passthrough("seed"),
        converted(
            "frame",
            to=("aspect_ratio", "resolution"),
            convert=both(closest(*RATIOS.split()), closest_resolution(*sizes)),
        ),
    )
    inputs = converted(
        "images", to="input_references", convert=each_image(image_object), required=True, max_items=max_images
    )
    image = Operation(task="image", send="POST /images", read=read_images, params=complete_table("image", *shared))
    edit = replace(image, task="edit", params=complete_table("edit", inputs, *shared))
    return tuple(Model(id=name, upstream=upstream, op=op, prices=prices, priority=20) for op in (image, edit))


MODELS = (
    *image_models(
        "nano-banana",
        "google/gemini-2.5-flash-image",
        ("1K",),
        price("0.045", "image", input_usd="0.001"),
        max_images=10,
    ),
    *image_models(
        "nano-banana-2",
        "google/gemini-3.1-flash-image",
        SIZES,
        price("0.12", "image", input_usd="0.001", resolution="2K"),
        price("0.17", "image", input_usd="0.001", resolution="4K"),
        price("0.08", "image", input_usd="0.001"),
        max_images=14,
    ),
    *image_models(
        "nano-banana-pro",
        "google/gemini-3-pro-image",
        SIZES,
        price("0.29", "image", input_usd="0.0025", resolution="4K"),
        price("0.18", "image", input_usd="0.0025"),
        max_images=14,
    ),
    *image_models("seedream-4.5", "bytedance-seed/seedream-4.5", SIZES, price("0.04", "image"), max_images=10),
)
