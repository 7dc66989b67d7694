"""FLUX images and edits; an edit is a generation with input images."""

from dataclasses import replace

from penstock.providers.convert import data_uri, each_image, first_image, pixels
from penstock.providers.spec import (
    File,
    Model,
    Operation,
    Param,
    Price,
    Reply,
    Result,
    Source,
    complete_table,
    converted,
    emulated,
    fixed,
    passthrough,
    price_list,
    refused,
)


def read_images(reply: Reply) -> Result:
    images = sorted(reply.json["data"], key=lambda image: image["index"] if isinstance(image["index"], int) else 0)
    files = tuple(File(url=image.get("url"), data=image.get("b64_json")) for image in images)
    return Result(files=files, upstream_id=reply.json.get("id"))


IMAGE = Operation(
    task="image",
    send="POST /v1/images/generations",
    read=read_images,
    params=(),
    priced_extras=frozenset({"steps", "image_loras"}),
)
ROWS = (
    passthrough("prompt", required=True),
    emulated("n", to="n", high=4),
    fixed("response_format", "base64"),
    fixed("output_format", "png"),
    passthrough("seed"),
)
FLUX_1 = (
    *ROWS,
    passthrough("negative_prompt"),
    converted(
        "frame",
        to=("width", "height"),
        convert=pixels(multiple=16, min_side=256, max_side=1792, max_area=1792 * 1024),
    ),
)
FLUX_2 = (
    *ROWS,
    *refused("negative_prompt"),
    converted("frame", to=("width", "height"), convert=pixels(multiple=16, min_side=256, max_side=1920)),
)
INPUT_IMAGE = converted("images", to="image_url", convert=first_image(data_uri), required=True, max_items=1)


def image_model(name: str, upstream: str, price: Price, *rows: Param) -> Model:
    op = replace(IMAGE, params=complete_table("image", *rows))
    return Model(id=name, upstream=f"black-forest-labs/{upstream}", op=op, prices=(price,), priority=10)


def edit_model(name: str, upstream: str, price: Price, *rows: Param) -> Model:
    op = replace(IMAGE, task="edit", params=complete_table("edit", *rows))
    return Model(id=name, upstream=f"black-forest-labs/{upstream}", op=op, prices=(price,), priority=10)


def flux_2(name: str, upstream: str, usd_per_megapixel: str, max_images: int) -> tuple[Model, Model]:
    """A model that makes images, and edits up to `max_images` of them."""
    images = converted(
        "images", to="reference_images", convert=each_image(data_uri), required=True, max_items=max_images
    )
    price = flux_2_price(usd_per_megapixel, "megapixel")
    return image_model(name, upstream, price, *FLUX_2), edit_model(name, upstream, price, *FLUX_2, images)


schnell_price = price_list(
    Source("workflowlab.dev, which quotes together.ai/pricing", "2026-05-25", is_second_hand=True)
)
kontext_price = price_list(Source("Together's price list", "2026-11"))
flux_2_price = price_list(Source("tables of Together's prices in public clients", "2026-11-16", is_second_hand=True))
MODELS = (
    image_model("flux-schnell", "FLUX.1-schnell", schnell_price("0.0027", "megapixel"), *FLUX_1, fixed("steps", 4)),
    edit_model("flux-kontext-pro", "FLUX.1-kontext-pro", kontext_price("0.04", "image"), *FLUX_1, INPUT_IMAGE),
    edit_model("flux-kontext-max", "FLUX.1-kontext-max", kontext_price("0.08", "image"), *FLUX_1, INPUT_IMAGE),
    *flux_2("flux-2-pro", "FLUX.2-pro", "0.03", 8),
    *flux_2("flux-2-max", "FLUX.2-max", "0.07", 8),
    *flux_2("flux-2-flex", "FLUX.2-flex", "0.03", 8),
    *flux_2("together/flux-2-dev", "FLUX.2-dev", "0.0154", 4),
)
