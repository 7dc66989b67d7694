"""Images of AI Foundry that are not OpenAI's: Microsoft's MAI models, and FLUX.2 of Black Forest Labs."""

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any

from msgspec import structs

from penstock.providers import openai_compatible
from penstock.providers.convert import first_image, pixels, plain_base64, spread_images
from penstock.providers.openai_compatible import form_file
from penstock.providers.reported import usage_or_nothing
from penstock.providers.spec import (
    LITELLM,
    Model,
    Operation,
    Price,
    Reply,
    Result,
    Source,
    complete_table,
    converted,
    fixed,
    passthrough,
    price_list,
)

PROMPT = passthrough("prompt", required=True, max_length=32_000)

# ------------------------------------------------------------------------------------------------------------------ MAI


def read_mai(reply: Reply) -> Result:
    """Read an image. The tokens of the prompt, of input images and of the output have prices of their own."""
    result = openai_compatible.read_images(reply)
    return structs.replace(result, usage=usage_or_nothing(read_tokens, reply.json.get("usage")))


def read_tokens(reported: Mapping[str, Any]) -> dict[str, int]:
    details = reported.get("input_tokens_details") or {}
    return {
        "text_input": reported.get("num_input_text_tokens", details.get("text_tokens", 0)),
        "input": reported.get("num_input_image_tokens", details.get("image_tokens", 0)),
        "output": reported["num_output_tokens"] if "num_output_tokens" in reported else reported["output_tokens"],
    }


MAI = Operation(
    task="image",
    send="POST /mai/v1/images/generations",
    read=read_mai,
    params=complete_table(
        "image",
        PROMPT,
        converted("frame", to=("width", "height"), convert=pixels(min_side=768, max_area=1536 * 1536)),
    ),
    takes_extras=False,
)
MAI_EDIT = Operation(
    task="edit",
    send="POST /mai/v1/images/edits",
    read=read_mai,
    body="form",
    params=complete_table(
        "edit", PROMPT, converted("images", to="image", convert=first_image(form_file), required=True, max_items=1)
    ),
    takes_extras=False,
)


def mai_models(name: str, upstream: str, text_usd: str, image_usd: str, output_usd: str) -> tuple[Model, ...]:
    """A model that makes and edits images; prices are dollars per million tokens. An image takes about a token for each
    1,024 pixels.
    """
    text, image, output = (f"{Decimal(usd) / 1_000_000:f}" for usd in (text_usd, image_usd, output_usd))
    price = Price(
        unit="token", usd=output, input_usd=image, other_usd={"text_input": text}, max_tokens=2400, source=LITELLM
    )
    return tuple(Model(id=name, upstream=upstream, op=op, prices=(price,)) for op in (MAI, MAI_EDIT))


# --------------------------------------------------------------------------------------------------------------- FLUX.2


def flux_models(name: str, upstream: str, max_images: int, price: Price) -> tuple[Model, ...]:
    """A model that makes and edits images, with an endpoint of its own and images in one field each."""
    names = ("input_image", *(f"input_image_{number}" for number in range(2, max_images + 1)))
    images = converted(
        "images", to=names, convert=spread_images(plain_base64, max_images), required=True, max_items=max_images
    )
    rows = (
        PROMPT,
        converted("frame", to=("width", "height"), convert=pixels(multiple=32, min_side=64, max_area=2048 * 2048)),
        passthrough("seed", low=0),
        fixed("output_format", "png"),
    )
    image = Operation(
        task="image",
        send=f"POST /providers/blackforestlabs/v1/{name}?api-version=preview",
        read=openai_compatible.read_images,
        params=complete_table("image", *rows),
        priced_extras=frozenset({"n", "num_images", "steps", "guidance"}),
    )
    edit = replace(image, task="edit", params=complete_table("edit", images, *rows))
    return tuple(Model(id=name, upstream=upstream, op=op, prices=(price,), priority=10) for op in (image, edit))


# Both read the same prices: 0.015 dollars a megapixel and 0.015 for each output with pro, 0.05 a megapixel with flex.
# Azure's megapixel is 1024 x 1024 pixels, which is 1.048576 of ours, and parts of one are billed as such.
price = price_list(
    Source(
        "Azure's Retail Prices API, as read for litellm (pull request 39424) and pollinations (14190)",
        "2026-09-22",
        is_second_hand=True,
    )
)
PRO_USD = "0.01430511474609375"
FLEX_USD = "0.0476837158203125"
MODELS = (
    *mai_models("mai-image-2.6", "MAI-Image-2.6", "5", "8", "38"),
    *mai_models("mai-image-2.6-flash", "MAI-Image-2.6-Flash", "1.75", "2.5", "19"),
    *flux_models("flux-2-pro", "FLUX.2-pro", 8, price(PRO_USD, "megapixel", input_usd=PRO_USD, each_usd="0.015")),
    *flux_models("flux-2-flex", "FLUX.2-flex", 10, price(FLEX_USD, "megapixel", input_usd=FLEX_USD)),
)
