"""OpenAI: GPT Image, whose output comes as base64 and is billed by the token, and the GPT chat models."""

from collections.abc import Mapping
from dataclasses import replace
from math import ceil, sqrt

from penstock.providers.convert import closest, size_text, pixels, lookup
from penstock.providers import compatible
from penstock.providers.chats import chats, talk
from penstock.providers.compatible import error_kind, error_text
from penstock.providers.spec import (
    Model,
    Param,
    Price,
    Provider,
    Reply,
    Result,
    Task,
    bearer,
    converted,
    emulated,
    passthrough,
    renamed,
    complete_table,
)
from penstock.values import Frame

NOTE = "public price table, 2026-11"
QUOTED = "developers.openai.com/api/docs/pricing as others quote it on 2026-11-05"
LARGE = 2.6  # how many more tokens the largest pictures take


def read(reply: Reply) -> Result:
    """Tokens are told apart where their prices differ."""
    result, told = compatible.read_images(reply), reply.json.get("usage") or {}
    usage = dict(result.usage)
    for side in ("input", "output"):
        if details := told.get(f"{side}_tokens_details"):
            usage |= {side: details["image_tokens"], f"text_{side}": details["text_tokens"]}
    kind = f"image/{reply.json.get('output_format') or 'png'}"
    return replace(result, usage=usage, files=tuple(replace(file, content_type=kind) for file in result.files))


def any_size(frame: Frame) -> str:
    """Multiples of 16, at most three times as long as wide, from 0.65 to 8.3 megapixels."""
    wide, tall = frame.scaled(1024).sides
    wide, tall = min(wide, 3 * tall), min(tall, 3 * wide)
    larger = max(1.0, sqrt(655_360 / (wide * tall)))
    fitting = Frame(ceil(wide * larger / 16) * 16, ceil(tall * larger / 16) * 16)
    return size_text(pixels(multiple=16, max_side=3840, max_area=3840 * 2160))(fitting)


def table(task: Task, *more: Param) -> tuple[Param, ...]:
    """The models of today know neither a style nor the words for quality of old; to say `auto` is to say nothing."""
    words = {"standard": "medium", "hd": "high", "low": "low", "medium": "medium", "high": "high"}
    prompt, quality = (
        passthrough("prompt", required=True, max_length=32_000),
        converted("quality", "quality", lookup(words)),
    )
    return complete_table(
        task, prompt, quality, emulated("n", "n", high=10), renamed("user", "safety_identifier"), *more
    )


def by_tokens(
    text: str, image: str, output: str, most: Mapping[str, int], talked: str = "0", note: str = NOTE
) -> tuple[Price, ...]:
    """What goes in is words or pictures. Without a word on quality the model decides, and may choose the best."""
    other = {"text_input": text, "text_output": talked}
    usual = Price(unit="token", usd=output, input_usd=image, other_usd=other, note=note)
    asked = [({"sent.quality": name} if name != "auto" else {}, count) for name, count in most.items()]
    large = [({**when, "tier": tier}, int(LARGE * count)) for tier in ("2160p", "1440p") for when, count in asked]
    return tuple(replace(usual, when=when, max_tokens=count) for when, count in (*large, *asked))


def pictures(name: str, size: Param, prices: tuple[Price, ...]) -> tuple[Model, ...]:
    """One model makes and edits. `input_fidelity` would have it look at more tokens than anybody foresees."""
    given = (row for row in compatible.EDIT.params if row.name in ("images", "mask"))
    operations = (
        replace(compatible.IMAGE, read=read, params=table("image", size)),
        replace(compatible.EDIT, read=read, params=table("edit", size, *given), priced_extras=FIDELITY),
    )
    return tuple(Model(id=name, upstream=name, op=op, prices=prices) for op in operations)


FIDELITY = frozenset({"input_fidelity"})
THREE_SIZES = converted("frame", "size", closest("1024x1024", "1536x1024", "1024x1536"))
ANY_SIZE = converted("frame", "size", any_size)
SINCE_2 = ("0.000005", "0.000008", "0.00003")
IMAGE_2 = by_tokens(*SINCE_2, {"low": 200, "medium": 1760, "high": 7030, "auto": 7030}, note=QUOTED)
IMAGE_25 = by_tokens(*SINCE_2, {"low": 200, "medium": 450, "high": 1760, "auto": 7030}, note=QUOTED)
IMAGE_26 = by_tokens(*SINCE_2, {"low": 800, "medium": 1800, "high": 1800, "auto": 7030}, note=QUOTED)
IMAGE_15 = by_tokens(
    "0.000005", "0.000008", "0.000032", {"low": 408, "medium": 1584, "high": 6240, "auto": 6240}, talked="0.00001"
)
IMAGE_1_MINI = by_tokens("0.000002", "0.0000025", "0.000008", {"low": 750, "medium": 1880, "high": 6500, "auto": 6500})

PROVIDER = Provider(
    slug="openai",
    name="OpenAI",
    docs="https://platform.openai.com/docs/api-reference",
    base_url="https://api.openai.com/v1",
    key_env="OPENAI_API_KEY",
    auth=bearer,
    error_message=error_text,
    failure_kind=error_kind,
    models=(
        *pictures("gpt-image-2.6-sunburst", ANY_SIZE, IMAGE_26),
        *pictures("gpt-image-2.6-flare", ANY_SIZE, IMAGE_26),
        *pictures("gpt-image-2.5-sunburst", ANY_SIZE, IMAGE_25),
        *pictures("gpt-image-2.5-flare", ANY_SIZE, IMAGE_25),
        *pictures("gpt-image-2", ANY_SIZE, IMAGE_2),
        *pictures("gpt-image-1.5", THREE_SIZES, IMAGE_15),
        *pictures("gpt-image-1-mini", THREE_SIZES, IMAGE_1_MINI),
        *chats(
            "openai",
            NOTE,
            """
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
            gpt-5.4-nano   0.2   1.25  0.02
            gpt-5.2        1.75  14    0.175
            gpt-5.1        1.25  10    0.125
            gpt-4.1        2     8     0.5
            gpt-4.1-mini   0.4   1.6   0.1
            gpt-4o         2.5   10    1.25
            gpt-4o-mini    0.15  0.6   0.075
        """,
            talk(renamed("max_tokens", "max_completion_tokens")),
        ),
    ),
    retired=dict.fromkeys(("gpt-image-1", "dall-e-3", "dall-e-2"), "gpt-image-2.6-sunburst"),
)
