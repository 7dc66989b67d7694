"""Seedream images."""

from dataclasses import replace

from penstock.providers.bytedance.errors import error_kind
from penstock.providers.convert import data_uri, each_image, pixels, size_text
from penstock.providers.spec import (
    File,
    Model,
    Operation,
    Param,
    Price,
    Reply,
    Result,
    Source,
    Task,
    complete_table,
    converted,
    fixed,
    passthrough,
    price_list,
)


def read_images(reply: Reply) -> Result:
    """Read images; of several, some may have failed."""
    response = reply.json
    images = response.get("data") or []
    files = tuple(File(url=image["url"]) for image in images if image.get("url"))
    error = response.get("error") or next((image["error"] for image in images if image.get("error")), None)
    if error and not files:
        return Result(status="failed", failure_kind=error_kind(error) or "broken", message=error["message"])
    return Result(files=files, upstream_id=reply.headers.get("x-request-id"))


def image_operation(task: Task, *rows: Param) -> Operation:
    return Operation(
        task=task,
        send="POST /images/generations",
        read=read_images,
        params=complete_table(
            task,
            passthrough("prompt", required=True),
            *rows,
            fixed("watermark", False),
            fixed("response_format", "url"),
        ),
        priced_extras=frozenset({"layer_decomposition", "tools"}),
    )


def image_models(
    name: str, upstream: str, prices: tuple[Price, ...], *rows: Param, max_images: int, first_is_free: bool = False
) -> tuple[Model, Model]:
    """A model that makes images and edits up to `max_images` of them, of which the first may cost nothing."""
    images = converted("images", to="image", convert=each_image(data_uri), required=True, max_items=max_images)
    edit_prices = tuple(replace(price, each_usd=f"-{price.input_usd}") for price in prices) if first_is_free else prices
    return (
        Model(id=name, upstream=upstream, op=image_operation("image", *rows), prices=prices),
        Model(id=name, upstream=upstream, op=image_operation("edit", *rows, images), prices=edit_prices),
    )


def size(min_area: int, max_area: int) -> Param:
    return converted("frame", to="size", convert=size_text(pixels(min_area=min_area, max_area=max_area)))


price = price_list(Source("docs.byteplus.com/en/docs/ModelArk/1544106", "2026-09-22"))
PNG = fixed("output_format", "png")
SEEDREAM_4 = size(1280 * 720, 4096 * 4096)
SEEDREAM_45 = size(2560 * 1440, 4096 * 4096)
SEEDREAM_5 = size(1280 * 720, 4_624_220)
PRO_PRICE = price("0.045", "image", input_usd="0.003")
AREA_OF_15K = 2_601_123  # outputs with more pixels cost what 2K costs
PRO_PRICES = (replace(PRO_PRICE, usd="0.09", above=AREA_OF_15K), PRO_PRICE)
relayed_price = price_list(
    Source("BytePlus's price list, as docs.apiyi.com and inference.sh quote it", "2026-11-12", is_second_hand=True)
)
PRICE_55 = relayed_price("0.02", "image", input_usd="0.008")
PRICES_55 = (replace(PRICE_55, usd="0.035", above=AREA_OF_15K), PRICE_55)
MODELS = (
    *image_models("seedream-4", "seedream-4-0-250828", (price("0.03", "image"),), SEEDREAM_4, max_images=14),
    *image_models("seedream-4.5", "seedream-4-5-251128", (price("0.04", "image"),), SEEDREAM_45, max_images=14),
    *image_models(
        "seedream-5",
        "seedream-5-0-lite-260128",
        (price("0.035", "image"),),
        SEEDREAM_45,
        PNG,
        max_images=14,
    ),
    *image_models(
        "seedream-5-flash",
        "dola-seedream-5-0-flash-260915",
        (price("0.018", "image"),),
        SEEDREAM_5,
        PNG,
        max_images=10,
    ),
    *image_models(
        "seedream-5-pro",
        "dola-seedream-5-0-pro-260628",
        PRO_PRICES,
        SEEDREAM_5,
        PNG,
        max_images=10,
        first_is_free=True,
    ),
    *image_models(
        "seedream-5.5",
        "seedream-5-5-261028",
        PRICES_55,
        SEEDREAM_5,
        PNG,
        max_images=10,
    ),
)
