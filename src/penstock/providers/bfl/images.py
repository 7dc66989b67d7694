"""FLUX images and edits."""

from dataclasses import replace

from penstock.providers.bfl.tasks import price, task_operation
from penstock.providers.convert import each_image, first_image, on_off, pixels, plain_base64, spread_images
from penstock.providers.spec import (
    Model,
    Operation,
    Param,
    Price,
    Source,
    converted,
    fixed,
    frame,
    passthrough,
    price_list,
)


def numbered_images(max_images: int) -> Param:
    """The row for input images that go into one field each."""
    names = ("input_image", *(f"input_image_{number}" for number in range(2, max_images + 1)))
    return converted(
        "images", to=names, convert=spread_images(plain_base64, max_images), required=True, max_items=max_images
    )


def image_models(name: str, max_images: int, rows: tuple[Param, ...], *prices: Price) -> tuple[Model, Model]:
    """A model that makes images and edits up to `max_images` of them, with one endpoint."""
    image = Model(id=name, upstream=name, op=task_operation("image", *rows), prices=prices)
    return image, replace(image, op=task_operation("edit", *rows, numbered_images(max_images)))


def image_model(name: str, upstream: str, op: Operation, *prices: Price) -> Model:
    return Model(id=name, upstream=upstream, op=op, prices=prices)


PNG = fixed("output_format", "png")
ENHANCEMENT = converted("prompt_enhancement", to="prompt_upsampling", convert=on_off(True, False))
SIZE_2 = converted("frame", to=("width", "height"), convert=pixels(multiple=16, min_side=64, max_side=2048))
SIZE_11 = converted("frame", to=("width", "height"), convert=pixels(multiple=32, min_side=256, max_side=1440))
SEED = passthrough("seed", low=0)
FLUX_2_KLEIN = (SIZE_2, PNG, SEED)
FLUX_2 = (*FLUX_2_KLEIN, ENHANCEMENT)
FLUX_11 = (SIZE_11, PNG, ENHANCEMENT, SEED)
BY_RATIO = (frame("1:1 16:9 9:16 4:3 3:4 3:2 2:3 21:9 9:21"), PNG, ENHANCEMENT, SEED)
FLUX_3_FRAME = frame("1:1 16:9 9:16 4:3 3:4 3:2 2:3 5:4 4:5 7:5 5:7 2:1 1:2 21:9 9:21", "1k", "2k", "4k")
SEARCHES = frozenset({"grounding"})  # searches of the web, which are not in the price
FLUX_3_IMAGE = task_operation("image", FLUX_3_FRAME, priced_extras=SEARCHES)
FLUX_3_EDIT = task_operation(
    "edit",
    FLUX_3_FRAME,
    converted("images", to="images", convert=each_image(plain_base64), required=True, max_items=10),
    priced_extras=SEARCHES,
)
FILL = task_operation(
    "edit",
    PNG,
    ENHANCEMENT,
    SEED,
    converted("images", to="image", convert=first_image(plain_base64), required=True, max_items=1),
    converted("mask", to="mask", convert=plain_base64, required=True),
    settings={"mask": "white"},
)
MP = "started_megapixel"
FLUX_3_PRICES = (
    price("0.10", "image", resolution="2k"),
    price("0.607", "image", resolution="4k"),
    price("0.048", "image"),
)
klein_price = price_list(
    Source("Vercel's list of models, and fal's prices as a reseller quotes them", "2026-11-18", is_second_hand=True)
)
FLUX_3_KLEIN_PRICES = (
    klein_price("0.014", "image", resolution="2k"),
    klein_price("0.036", "image", resolution="4k"),
    klein_price("0.009", "image"),
)
MODELS = (
    *image_models("flux-2-pro", 8, FLUX_2, price("0.015", MP, input_usd="0.015", each_usd="0.015")),
    *image_models("flux-2-max", 8, FLUX_2, price("0.03", MP, input_usd="0.03", each_usd="0.04")),
    *image_models("flux-2-flex", 8, FLUX_2, price("0.05", MP, input_usd="0.05")),
    *image_models("flux-2-klein-4b", 4, FLUX_2_KLEIN, price("0.001", MP, input_usd="0.001", each_usd="0.013")),
    *image_models("flux-2-klein-9b", 4, FLUX_2_KLEIN, price("0.002", MP, input_usd="0.002", each_usd="0.013")),
    *image_models("flux-kontext-pro", 1, BY_RATIO, price("0.04", "image")),
    *image_models("flux-kontext-max", 1, BY_RATIO, price("0.08", "image")),
    image_model("flux-1.1-pro", "flux-pro-1.1", task_operation("image", *FLUX_11), price("0.04", "image")),
    image_model("flux-1.1-pro-ultra", "flux-pro-1.1-ultra", task_operation("image", *BY_RATIO), price("0.06", "image")),
    image_model("flux-fill-pro", "flux-pro-1.0-fill", FILL, price("0.05", "image")),
    image_model("flux-3-image", "flux-3-image", FLUX_3_IMAGE, *FLUX_3_PRICES),
    image_model("flux-3-image", "flux-3-image", FLUX_3_EDIT, *FLUX_3_PRICES),
    image_model("flux-3-image-klein", "flux-3-image-klein", FLUX_3_IMAGE, *FLUX_3_KLEIN_PRICES),
    image_model("flux-3-image-klein", "flux-3-image-klein", FLUX_3_EDIT, *FLUX_3_KLEIN_PRICES),
)
