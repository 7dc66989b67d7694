"""Google: Gemini's pictures ("nano banana"), which may be refused under HTTP 200."""

from dataclasses import replace
from decimal import Decimal
from typing import Any

from penstock.providers.convert import both, closest, each_image, inline_image, closest_resolution, lookup
from penstock.providers.compatible import error_kind, error_text
from penstock.providers.spec import (
    File,
    FailureKind,
    Model,
    Operation,
    Param,
    Price,
    Provider,
    Reply,
    Result,
    converted,
    fixed,
    header,
    passthrough,
    renamed,
    complete_table,
)

NOTE = "public price table, 2026-11"
REFUSALS = set(
    "SAFETY PROHIBITED_CONTENT BLOCKLIST SPII RECITATION IMAGE_SAFETY IMAGE_PROHIBITED_CONTENT IMAGE_RECITATION".split()
)
SIZE = "generationConfig.imageConfig.imageSize"
RATIOS = "1:1 2:3 3:2 3:4 4:3 4:5 5:4 9:16 16:9 21:9"
# Anything of these could ask for more pictures, larger ones or searches.
PRICED = frozenset("generationConfig generation_config tools cachedContent cached_content candidateCount".split())


def message(fields: dict[str, Any]) -> dict[str, Any]:
    """Pictures and words are parts of one message."""
    parts = [{"inlineData": one} for one in fields.pop("images", ())] + [{"text": fields.pop("prompt")}]
    return {**fields, "contents": [{"role": "user", "parts": parts}]}


def read(reply: Reply) -> Result:
    """Drafts that it made while thinking are left out."""
    answer = reply.json
    candidates = answer.get("candidates") or []
    parts = [part for one in candidates for part in (one.get("content") or {}).get("parts") or ()]
    shown = [part for part in parts if not part.get("thought")]
    made = [part["inlineData"] for part in shown if "inlineData" in part]
    if not made:
        blocked = (answer.get("promptFeedback") or {}).get("blockReason")
        reason = blocked or next((one.get("finishReason") for one in candidates), "no candidates")
        kind: FailureKind = "refused" if blocked or reason in REFUSALS else "rejected"
        words = " ".join(part["text"] for part in shown if part.get("text"))
        return Result(status="failed", failure_kind=kind, message=words or f"Gemini made no image: {reason}.")
    files = tuple(File(data=one["data"], content_type=one["mimeType"]) for one in made)
    return Result(files=files, upstream_id=answer.get("responseId"), usage=tokens(answer.get("usageMetadata")))


def tokens(told: dict[str, Any] | None) -> dict[str, int]:
    """Words and thoughts that come out cost less than pictures."""
    if not told:
        return {}
    made = told.get("candidatesTokenCount") or 0
    kinds = {one["modality"]: one["tokenCount"] for one in told.get("candidatesTokensDetails") or ()}
    drawn = kinds.get("IMAGE", made)
    thought = (told.get("thoughtsTokenCount") or 0) + made - drawn
    return {"input": told.get("promptTokenCount") or 0, "output": drawn, "text_output": thought}


def sized(*sizes: str, more: str = "") -> Param:
    pick, to = closest(*f"{RATIOS} {more}".split()), "generationConfig.imageConfig.aspectRatio"
    return (
        converted("frame", (to, SIZE), both(pick, closest_resolution(*sizes)))
        if sizes
        else converted("frame", to, pick)
    )


def pictures(name: str, upstream: str, usd: str, most: dict[str, int], *rows: Param) -> tuple[Model, ...]:
    """Dollars per million tokens that go in, of words and of pictures that come out; and how many of the last a picture
    of each size can take, with some to spare for thoughts.
    """
    asked, words, drawn = (f"{Decimal(one) / 1_000_000:f}" for one in usd.split())
    row = Price(unit="token", usd=drawn, input_usd=asked, other_usd={"text_output": words}, note=NOTE)
    prices = (
        replace(row, max_tokens=count, when={f"sent.{SIZE}": size} if size else {}) for size, count in most.items()
    )
    usual = (
        passthrough("prompt", required=True),
        renamed("seed", "generationConfig.seed"),
        fixed("generationConfig.responseModalities", ["IMAGE"]),
        *rows,
    )
    given = converted("images", "images", each_image(inline_image), required=True, max_items=14)
    made = Operation(
        task="image",
        send="POST /models/{model}:generateContent",
        model_field=None,
        read=read,
        adjust_body=message,
        priced_extras=PRICED,
        params=complete_table("image", *usual),
    )
    edit = replace(made, task="edit", params=complete_table("edit", given, *usual))
    kept = tuple(prices)
    return tuple(Model(id=name, upstream=upstream, op=op, prices=kept) for op in (made, edit))


LEVELS = {"off": "MINIMAL", "minimal": "MINIMAL", "on": "HIGH", "high": "HIGH"}
THINKING = converted("thinking", "generationConfig.thinkingConfig.thinkingLevel", lookup(LEVELS))
BY_SIZE = {"2K": 1850, "4K": 2700, "": 1300}

PROVIDER = Provider(
    slug="google",
    name="Google",
    docs="https://ai.google.dev/gemini-api/docs/image-generation",
    key_env="GEMINI_API_KEY",
    base_url="https://generativelanguage.googleapis.com/v1beta",
    auth=header("x-goog-api-key"),
    error_message=error_text,
    failure_kind=error_kind,
    models=(
        *pictures(
            "nano-banana-2.1",
            "gemini-nano-banana-2.1",
            "1.5 7.5 30",
            BY_SIZE,
            THINKING,
            sized("1K", "2K", "4K", more="1:4 4:1 1:8 8:1"),
        ),
        *pictures(
            "nano-banana-2",
            "gemini-3.1-flash-image",
            "0.5 3 60",
            {"512": 900, **BY_SIZE},
            THINKING,
            sized("512", "1K", "2K", "4K", more="1:4 4:1 1:8 8:1"),
        ),
        *pictures("nano-banana-pro", "gemini-3-pro-image", "2 12 120", {"4K": 2400, "": 1500}, sized("1K", "2K", "4K")),
        *pictures("nano-banana", "gemini-2.5-flash-image", "0.3 2.5 30", {"": 1400}, sized()),
        *pictures("nano-banana-2-lite", "gemini-3.1-flash-lite-image", "0.25 1.5 30", {"": 1300}, sized()),
    ),
    retired=dict.fromkeys(("imagen-4", "imagen-4-fast"), "nano-banana-2") | {"imagen-4-ultra": "nano-banana-pro"},
)
