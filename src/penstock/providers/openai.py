"""OpenAI: GPT Image models, billed by the token, and GPT chat models."""

from collections.abc import Mapping
from dataclasses import replace
from math import ceil, sqrt
from typing import Any

from penstock.providers import openai_compatible
from penstock.providers.chat_models import RESPONSES, chat_models, chat_operation
from penstock.providers.convert import closest, lookup, pixels, size_text
from penstock.providers.spec import (
    LITELLM,
    Model,
    Param,
    Price,
    Provider,
    Reply,
    Result,
    Source,
    Task,
    bearer,
    complete_table,
    converted,
    emulated,
    passthrough,
    renamed,
)
from penstock.values import Frame

QUOTED = Source("developers.openai.com/api/docs/pricing, as others quote it", "2026-11-05", is_second_hand=True)
LARGE_FACTOR = 2.6  # how many times as many tokens the largest images take
PARTIAL_IMAGE_TOKENS = 100
QUALITIES = {"standard": "medium", "hd": "high", "low": "low", "medium": "medium", "high": "high"}
UP_TO_HIGH = QUALITIES | {"xhigh": "high", "max": "high"}
UP_TO_MAX = QUALITIES | {"xhigh": "xhigh", "max": "max"}  # since gpt-image-2.5


def read_images(reply: Reply) -> Result:
    """Read images; the usage has text and image tokens separately, because their prices differ."""
    result = openai_compatible.read_images(reply)
    reported = reply.json.get("usage") or {}
    usage = dict(result.usage)
    for side in ("input", "output"):
        if details := reported.get(f"{side}_tokens_details"):
            usage |= {side: details["image_tokens"], f"text_{side}": details["text_tokens"]}
    content_type = f"image/{reply.json.get('output_format') or 'png'}"
    files = tuple(replace(file, content_type=content_type) for file in result.files)
    return replace(result, usage=usage, files=files)


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
    source: Source = LITELLM,
) -> tuple[Price, ...]:
    """Price rows by quality and size. `max_tokens` has the tokens of an output by quality; `auto` may be the best."""
    base = Price(
        unit="token",
        usd=output_usd,
        input_usd=image_usd,
        other_usd={"text_input": text_usd, "text_output": text_output_usd},
        source=source,
    )
    usual = [({"sent.quality": name} if name != "auto" else {}, count) for name, count in max_tokens.items()]
    large = [
        ({**when, "tier": tier}, int(LARGE_FACTOR * count)) for tier in ("2160p", "1440p") for when, count in usual
    ]
    return tuple(replace(base, when=when, max_tokens=count) for when, count in (*large, *usual))


def image_models(
    name: str,
    size: Param,
    prices: tuple[Price, ...],
    qualities: dict[str, str] = UP_TO_HIGH,
    shutdown_date: str = "",
) -> tuple[Model, ...]:
    """A model that makes and edits images. `input_fidelity` is refused: it takes an unknown number of input tokens."""
    quality = converted("quality", to="quality", convert=lookup(qualities))  # `auto` is the default and is not sent
    image_rows = (row for row in openai_compatible.EDIT.params if row.name in ("images", "mask"))
    image = replace(
        openai_compatible.IMAGE,
        read=read_images,
        params=image_table("image", quality, size),
        partial_image_tokens=PARTIAL_IMAGE_TOKENS,
    )
    edit = replace(
        openai_compatible.EDIT,
        read=read_images,
        params=image_table("edit", quality, size, *image_rows),
        priced_extras=frozenset({"input_fidelity"}),
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
CHAT = chat_operation(renamed("max_tokens", to="max_completion_tokens"), responses=RESPONSES)
CHAT_MODELS = """
    gpt-6-astra    10    50    1      >272000  20   75    2
    gpt-6.1-sol    2     10    0.1    >272000  4    15    0.2
    gpt-6-sol      2     10    0.2    >272000  4    15    0.4
    gpt-6-luna     0.1   0.5   0.01   >272000  0.2  0.75  0.02
    gpt-5.6-sol    4     20    0.4    >272000  8    30    0.8
    gpt-5.6-terra  2     12    0.2    >272000  4    18    0.4
    gpt-5.6-luna   0.2   1.2   0.02   >272000  0.4  1.8   0.04
    gpt-5.5        5     30    0.5    >272000  10   45    1
    gpt-5.4        2.5   15    0.25   >272000  5    22.5  0.5
    gpt-5.4-mini   0.75  4.5   0.075
    gpt-5.4-nano   0.2   1.25  0.02    until 2027-04-01
    gpt-5.2        1.75  14    0.175
    gpt-5.1        1.25  10    0.125   until 2027-04-01
    gpt-4.1        2     8     0.5     until 2027-01-14
    gpt-4.1-mini   0.4   1.6   0.1     until 2027-01-14
    gpt-4o         2.5   10    1.25    until 2027-01-14
    gpt-4o-mini    0.15  0.6   0.075   until 2027-01-14
"""

PROVIDER = Provider(
    slug="openai",
    name="OpenAI",
    docs="https://platform.openai.com/docs/api-reference",
    base_url="https://api.openai.com/v1",
    key_env="OPENAI_API_KEY",
    auth=bearer,
    error_message=openai_compatible.error_message,
    failure_kind=openai_compatible.failure_kind,
    models=(
        *image_models("gpt-image-2.6-sunburst", FREE_SIZE, IMAGE_26),
        *image_models("gpt-image-2.6-flare", FREE_SIZE, IMAGE_26),
        *image_models("gpt-image-2.5-sunburst", FREE_SIZE, IMAGE_25, UP_TO_MAX),
        *image_models("gpt-image-2.5-flare", FREE_SIZE, IMAGE_25, UP_TO_MAX),
        *image_models("gpt-image-2", FREE_SIZE, IMAGE_2),
        *image_models("gpt-image-1.5", THREE_SIZES, IMAGE_15, shutdown_date="2026-12-01"),
        *image_models("gpt-image-1-mini", THREE_SIZES, IMAGE_1_MINI, shutdown_date="2026-12-01"),
        *chat_models("openai", LITELLM, CHAT_MODELS, CHAT),
    ),
    retired=dict.fromkeys(("gpt-image-1", "dall-e-3", "dall-e-2"), "gpt-image-2.6-sunburst"),
)
