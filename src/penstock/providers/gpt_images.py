"""OpenAI's GPT Image models, billed by the token, for OpenAI itself and for Azure."""

from collections.abc import Mapping
from dataclasses import replace
from math import ceil, sqrt
from typing import Any

from msgspec import structs

from penstock.providers import openai_compatible
from penstock.providers.convert import closest, lookup, pixels, size_text
from penstock.providers.reported import usage_or_nothing
from penstock.providers.spec import (
    LITELLM,
    Model,
    Param,
    Price,
    Reply,
    Result,
    Source,
    Task,
    complete_table,
    converted,
    emulated,
    passthrough,
    renamed,
)
from penstock.values import Frame

QUOTED = Source("developers.openai.com/api/docs/pricing, as others quote it", "2026-11-05", is_second_hand=True)
LARGE_FACTOR = 2.6  # how many times as many tokens the largest images take
FAITHFUL_INPUT_TOKENS = 7000  # of an input image, of which these models keep every detail
PARTIAL_IMAGE_TOKENS = 100
QUALITIES = {"standard": "medium", "hd": "high", "low": "low", "medium": "medium", "high": "high"}
UP_TO_HIGH = QUALITIES | {"xhigh": "high", "max": "high"}
UP_TO_MAX = QUALITIES | {"xhigh": "xhigh", "max": "max"}  # since gpt-image-2.5


def read_images(reply: Reply) -> Result:
    """Read images; the usage has text and image tokens separately, because their prices differ."""
    result = openai_compatible.read_images(reply)
    usage = usage_or_nothing(read_tokens, reply.json.get("usage"))
    content_type = f"image/{reply.json.get('output_format') or 'png'}"
    files = tuple(structs.replace(file, content_type=content_type) for file in result.files)
    return structs.replace(result, usage=usage, files=files)


def read_tokens(reported: Mapping[str, Any]) -> dict[str, int]:
    usage = openai_compatible.read_tokens(reported)
    for side in ("input", "output"):
        if details := reported.get(f"{side}_tokens_details"):
            usage |= {side: details["image_tokens"], f"text_{side}": details["text_tokens"]}
    return usage


def free_size(frame: Frame) -> str:
    """A size in multiples of 16, with a ratio of at most 3:1, from 0.65 to 8.3 megapixels."""
    wide, tall = frame.scaled(1024).sides
    wide, tall = min(wide, 3 * tall), min(tall, 3 * wide)
    scale = max(1.0, sqrt(655_360 / (wide * tall)))
    scaled = Frame(ceil(wide * scale / 16) * 16, ceil(tall * scale / 16) * 16)
    return size_text(pixels(multiple=16, max_side=3840, max_area=3840 * 2160))(scaled)


def image_table(task: Task, quality: Param, *rows: Param) -> tuple[Param, ...]:
    """The rows that all image models share, and these."""
    return complete_table(
        task,
        passthrough("prompt", required=True, max_length=32_000),
        quality,
        emulated("n", to="n", high=10),
        renamed("user", to="safety_identifier"),
        *rows,
    )


def token_prices(
    *,
    text_usd: str,
    image_usd: str,
    output_usd: str,
    max_tokens: Mapping[str, int],
    text_output_usd: str = "0",
    max_input_tokens: int = 3000,
    source: Source = LITELLM,
) -> tuple[Price, ...]:
    """Price rows by quality and size. `max_tokens` has the tokens of an output by quality; `auto` may be the best."""
    base = Price(
        unit="token",
        usd=output_usd,
        input_usd=image_usd,
        max_input_tokens=max_input_tokens,
        other_usd={"text_input": text_usd, "text_output": text_output_usd},
        source=source,
    )
    usual = [
        replace(base, when={"sent.quality": name} if name != "auto" else {}, max_tokens=count)
        for name, count in max_tokens.items()
    ]
    large = [
        replace(row, when={**row.when, "large": True}, max_tokens=int(LARGE_FACTOR * row.max_tokens)) for row in usual
    ]
    return (*large, *usual)


# Input tokens of an unknown number, and work before the image is made.
PRICED = frozenset({"input_fidelity", "complexity", "markup", "svg"})


def image_models(
    name: str,
    size: Param,
    prices: tuple[Price, ...],
    qualities: dict[str, str] = UP_TO_HIGH,
    shutdown_date: str = "",
) -> tuple[Model, ...]:
    """A model that makes and edits images."""
    quality = converted("quality", to="quality", convert=lookup(qualities))  # `auto` is the default and is not sent
    image_rows = (row for row in openai_compatible.EDIT.params if row.name in ("images", "mask"))
    image = replace(
        openai_compatible.IMAGE,
        read=read_images,
        params=image_table("image", quality, size),
        priced_extras=PRICED,
        partial_image_tokens=PARTIAL_IMAGE_TOKENS,
    )
    edit = replace(
        openai_compatible.EDIT,
        read=read_images,
        params=image_table("edit", quality, size, *image_rows),
        priced_extras=PRICED,
        partial_image_tokens=PARTIAL_IMAGE_TOKENS,
    )
    return tuple(
        Model(id=name, upstream=name, op=op, prices=prices, shutdown_date=shutdown_date) for op in (image, edit)
    )


THREE_SIZES = converted("frame", to="size", convert=closest("1024x1024", "1536x1024", "1024x1536"))
FREE_SIZE = converted("frame", to="size", convert=free_size)
SINCE_IMAGE_2: dict[str, Any] = {
    "text_usd": "0.000005",
    "image_usd": "0.000008",
    "output_usd": "0.00003",
    "max_input_tokens": FAITHFUL_INPUT_TOKENS,
    "source": QUOTED,
}
IMAGE_2 = token_prices(**SINCE_IMAGE_2, max_tokens={"low": 200, "medium": 1760, "high": 7030, "auto": 7030})
IMAGE_25 = token_prices(**SINCE_IMAGE_2, max_tokens={"low": 200, "medium": 450, "high": 1760, "auto": 7030})
IMAGE_26 = token_prices(**SINCE_IMAGE_2, max_tokens={"low": 800, "medium": 1800, "high": 1800, "auto": 7030})
IMAGE_15 = token_prices(
    text_usd="0.000005",
    image_usd="0.000008",
    output_usd="0.000032",
    text_output_usd="0.00001",
    max_tokens={"low": 408, "medium": 1584, "high": 6240, "auto": 6240},
)
IMAGE_1_MINI = token_prices(
    text_usd="0.000002",
    image_usd="0.0000025",
    output_usd="0.000008",
    max_tokens={"low": 750, "medium": 1880, "high": 6500, "auto": 6500},
)
