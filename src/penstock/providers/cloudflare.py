"""Cloudflare Workers AI: FLUX images that are made at once, for an account of your own.

The base URL names the account: `https://api.cloudflare.com/client/v4/accounts/ACCOUNT_ID/ai`.
"""

from decimal import Decimal
from typing import Any

from penstock.providers.convert import pixels
from penstock.providers.spec import (
    FailureKind,
    File,
    Model,
    Operation,
    Param,
    Provider,
    Reply,
    Result,
    Source,
    bearer,
    complete_table,
    converted,
    passthrough,
    price_list,
)

FLAGGED = 3030  # the code of an error: the content filter refused the prompt or the image
TILE = 512  # pixels; prices are for squares of this side
TILE_MEGAPIXELS = Decimal(TILE**2) / 10**6


def read_image(reply: Reply) -> Result:
    return Result(files=(File(data=reply.json["result"]["image"]),))


def error_message(reply: Reply) -> str | None:
    return str(reply.json["errors"][0]["message"])


def failure_kind(reply: Reply) -> FailureKind | None:
    return "refused" if reply.json["errors"][0]["code"] == FLAGGED else None


def operation(*rows: Param, **fields: Any) -> Operation:
    prompt = passthrough("prompt", required=True, max_length=2048)
    seed = passthrough("seed", low=0, high=2**31 - 1)
    return Operation(
        task="image",
        send="POST /run/{model}",
        read=read_image,
        model_field=None,
        params=complete_table("image", prompt, seed, *rows),
        priced_extras=frozenset({"steps", "num_steps"}),
        **fields,
    )


def tile_price(usd: str) -> str:
    """The price of a megapixel, for images that consist of whole tiles."""
    return f"{Decimal(usd) / TILE_MEGAPIXELS:.12f}"


SIZE = converted("frame", to=("width", "height"), convert=pixels(1024, multiple=TILE, min_side=TILE, max_side=1536))
price = price_list(
    Source("copies of developers.cloudflare.com/workers-ai/platform/pricing", "2026-09-28", is_second_hand=True)
)
PROVIDER = Provider(
    slug="cloudflare",
    name="Cloudflare Workers AI",
    docs="https://developers.cloudflare.com/workers-ai/models",
    base_url="https://api.cloudflare.com/client/v4/accounts/ACCOUNT_ID/ai",
    base_url_env="CLOUDFLARE_AI_URL",
    key_env="CLOUDFLARE_API_TOKEN",
    auth=bearer,
    error_message=error_message,
    failure_kind=failure_kind,
    models=(
        Model(
            id="cloudflare/flux-1-schnell",
            upstream="@cf/black-forest-labs/flux-1-schnell",
            name="FLUX.1 schnell on Cloudflare",
            op=operation(),
            prices=(price("0.0006336", "image"),),  # always 1024x1024, in four steps
        ),
        Model(
            id="cloudflare/flux-2-klein-4b",
            upstream="@cf/black-forest-labs/flux-2-klein-4b",
            name="FLUX.2 klein 4B on Cloudflare",
            op=operation(SIZE, body="form"),
            prices=(price(tile_price("0.000287"), "megapixel"),),
        ),
    ),
)
