"""Gemini image models ("nano banana") for Google's two APIs; a refusal may have status 200."""

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any

from penstock.providers.convert import both, closest, closest_resolution, each_image, inline_image, lookup
from penstock.providers.reported import usage_or_nothing
from penstock.providers.spec import (
    LITELLM,
    FailureKind,
    File,
    Model,
    Operation,
    Param,
    Price,
    Reply,
    Result,
    complete_table,
    converted,
    fixed,
    passthrough,
    renamed,
)

REFUSALS = set(
    "SAFETY PROHIBITED_CONTENT BLOCKLIST SPII RECITATION IMAGE_SAFETY IMAGE_PROHIBITED_CONTENT IMAGE_RECITATION".split()
)
RATIO_FIELD = "generationConfig.imageConfig.aspectRatio"
SIZE_FIELD = "generationConfig.imageConfig.imageSize"
RATIOS = "1:1 2:3 3:2 3:4 4:3 4:5 5:4 9:16 16:9 21:9"
# Each of these could ask for more images, for larger ones or for searches.
PRICED = frozenset("generationConfig generation_config tools cachedContent cached_content candidateCount".split())


def build_message(fields: dict[str, Any]) -> dict[str, Any]:
    """Put the images and the prompt into one message."""
    parts = [{"inlineData": image} for image in fields.pop("images", ())] + [{"text": fields.pop("prompt")}]
    return {**fields, "contents": [{"role": "user", "parts": parts}]}


def read_images(reply: Reply) -> Result:
    """Read images, without the drafts that the model made while it was thinking."""
    response = reply.json
    candidates = response.get("candidates") or []
    parts = [part for candidate in candidates for part in (candidate.get("content") or {}).get("parts") or ()]
    final = [part for part in parts if not part.get("thought")]
    images = [part["inlineData"] for part in final if "inlineData" in part]
    if not images:
        blocked = (response.get("promptFeedback") or {}).get("blockReason")
        reason = blocked or next((candidate.get("finishReason") for candidate in candidates), "no candidates")
        kind: FailureKind = "refused" if blocked or reason in REFUSALS else "rejected"
        text = " ".join(part["text"] for part in final if part.get("text"))
        return Result(status="failed", failure_kind=kind, message=text or f"Gemini made no image: {reason}.")
    files = tuple(File(data=image["data"], content_type=image["mimeType"]) for image in images)
    usage = usage_or_nothing(read_tokens, response.get("usageMetadata"))
    return Result(files=files, upstream_id=response.get("responseId"), usage=usage)


def read_tokens(reported: Mapping[str, Any]) -> dict[str, int]:
    """Tokens by price: output text and thoughts cost less than output images."""
    output = reported.get("candidatesTokenCount") or 0
    by_modality = {part["modality"]: part["tokenCount"] for part in reported.get("candidatesTokensDetails") or ()}
    image_output = by_modality.get("IMAGE", output)
    text_output = (reported.get("thoughtsTokenCount") or 0) + output - image_output
    return {"input": reported.get("promptTokenCount") or 0, "output": image_output, "text_output": text_output}


def image_frame(*sizes: str, ratios: str = RATIOS) -> Param:
    """The row for the frame: a ratio and, if the model has several sizes, a size."""
    ratio = closest(*ratios.split())
    if not sizes:
        return converted("frame", to=RATIO_FIELD, convert=ratio)
    return converted("frame", to=(RATIO_FIELD, SIZE_FIELD), convert=both(ratio, closest_resolution(*sizes)))


def image_models(
    name: str,
    upstream: str,
    *rows: Param,
    usd: tuple[str, str, str],
    max_tokens: Mapping[str, int],
    shutdown_date: str = "",
) -> tuple[Model, ...]:
    """A model that makes and edits images.

    `usd` has the dollars per million tokens of input, of output text and of output images; `max_tokens` has, for each
    size, the most tokens that an image can take, with a reserve for thoughts.
    """
    input_usd, text_usd, image_usd = (f"{Decimal(amount) / 1_000_000:f}" for amount in usd)
    base = Price(unit="token", usd=image_usd, input_usd=input_usd, other_usd={"text_output": text_usd}, source=LITELLM)
    prices = tuple(
        replace(base, max_tokens=count, when={f"sent.{SIZE_FIELD}": size} if size else {})
        for size, count in max_tokens.items()
    )
    shared = (
        passthrough("prompt", required=True),
        renamed("seed", to="generationConfig.seed"),
        fixed("generationConfig.responseModalities", ["IMAGE"]),
        *rows,
    )
    images = converted("images", to="images", convert=each_image(inline_image), required=True, max_items=14)
    image = Operation(
        task="image",
        send="POST /models/{model}:generateContent",
        model_field=None,
        read=read_images,
        adjust_body=build_message,
        priced_extras=PRICED,
        params=complete_table("image", *shared),
    )
    edit = replace(image, task="edit", params=complete_table("edit", images, *shared))
    return tuple(
        Model(id=name, upstream=upstream, op=op, prices=prices, shutdown_date=shutdown_date) for op in (image, edit)
    )


THINKING_LEVELS = {"off": "MINIMAL", "minimal": "MINIMAL", "on": "HIGH", "high": "HIGH"}
THINKING = converted("thinking", to="generationConfig.thinkingConfig.thinkingLevel", convert=lookup(THINKING_LEVELS))
MORE_RATIOS = f"{RATIOS} 1:4 4:1 1:8 8:1"
TOKENS_BY_SIZE = {"2K": 1850, "4K": 2700, "": 1300}

MODELS = (
    *image_models(
        "nano-banana-2.1",
        "gemini-nano-banana-2.1",
        THINKING,
        image_frame("1K", "2K", "4K", ratios=MORE_RATIOS),
        usd=("1.5", "7.5", "30"),
        max_tokens=TOKENS_BY_SIZE,
    ),
    *image_models(
        "nano-banana-2",
        "gemini-3.1-flash-image",
        THINKING,
        image_frame("512", "1K", "2K", "4K", ratios=MORE_RATIOS),
        usd=("0.5", "3", "60"),
        max_tokens={"512": 900, **TOKENS_BY_SIZE},
        shutdown_date="2026-10-29",
    ),
    *image_models(
        "nano-banana-pro",
        "gemini-3-pro-image",
        image_frame("1K", "2K", "4K"),
        usd=("2", "12", "120"),
        max_tokens={"4K": 2400, "": 1500},
    ),
    *image_models(
        "nano-banana",
        "gemini-2.5-flash-image",
        image_frame(),
        usd=("0.3", "2.5", "30"),
        max_tokens={"": 1400},
        shutdown_date="2027-03-15",
    ),
    *image_models(
        "nano-banana-2-lite",
        "gemini-3.1-flash-lite-image",
        image_frame(),
        usd=("0.25", "1.5", "30"),
        max_tokens={"": 1300},
    ),
)
RETIRED = dict.fromkeys(("imagen-4", "imagen-4-fast"), "nano-banana-2") | {"imagen-4-ultra": "nano-banana-pro"}
