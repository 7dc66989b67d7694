"""ByteDance's ModelArk: Seedream draws and edits at once, Seedance films as a task that is counted in tokens."""

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from hashlib import sha256
from typing import Any

from penstock.providers.convert import data_uri, each_image, first_and_last, size_text, pixels
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
    Status,
    Task,
    bearer,
    converted,
    fixed,
    duration,
    passthrough,
    price_list,
    renamed,
    frame,
    complete_table,
)

STATUS: dict[str, Status] = {
    "queued": "queued",
    "running": "in_progress",
    "succeeded": "completed",
    "failed": "failed",
    "expired": "failed",
    "cancelled": "cancelled",
}
# Dollars for a million tokens of film, and the largest frame that each resolution has; shapes differ by a hundredth.
RATES: Mapping[str, Mapping[str, str]] = {
    "dreamina-seedance-2-5-260628": {"720p": "10.7", "480p": "10.7", "1080p": "11.7"},
    "dreamina-seedance-2-0-260128": {"720p": "7", "480p": "7", "1080p": "7.7", "4k": "4"},
    "dreamina-seedance-2-0-fast-260128": {"720p": "5.6", "480p": "5.6"},
    "dreamina-seedance-2-0-mini-260615": {"720p": "3.5", "480p": "3.5"},
}
FRAMES = ("first_frame", "last_frame")
AREAS = {"480p": 992 * 432, "720p": 1112 * 834, "1080p": 2206 * 946, "4k": 4412 * 1892}


def read_pictures(reply: Reply) -> Result:
    """One of several may have failed alone."""
    answer = reply.json
    made = answer.get("data") or []
    files = tuple(File(url=one["url"]) for one in made if one.get("url"))
    trouble = answer.get("error") or next((one["error"] for one in made if one.get("error")), None)
    if trouble and not files:
        return Result(status="failed", failure_kind=blame(trouble) or "broken", message=trouble["message"])
    return Result(files=files, upstream_id=reply.headers.get("x-request-id"))


def read_film(reply: Reply) -> Result:
    """A new task has only a name."""
    task = reply.json
    if "status" not in task:
        return Result(status="queued", ref={"id": task["id"]}, upstream_id=task["id"])
    url, trouble = (task.get("content") or {}).get("video_url"), task.get("error") or {}
    return Result(
        status=STATUS[task["status"]],
        ref={"id": task["id"]},
        upstream_id=task["id"],
        files=(File(url=url, content_type="video/mp4"),) if url else (),
        cost_usd=cost_usd(task),
        failure_kind=blame(trouble) or "broken",
        message=trouble.get("message"),
    )


def cost_usd(task: Mapping[str, Any]) -> str | None:
    """Only a guess is held beforehand: how many tokens it took is known in the end."""
    rate = RATES.get(task.get("model", ""), {}).get(task.get("resolution", ""))
    tokens = (task.get("usage") or {}).get("completion_tokens")
    return f"{Decimal(rate) * tokens / 1_000_000:f}" if rate and tokens else None


def blame(trouble: Mapping[str, Any]) -> FailureKind | None:
    """`InputTextSensitiveContentDetected`, `OutputVideoRiskDetection` and a dozen more."""
    code = str(trouble.get("code"))
    return "refused" if "SensitiveContent" in code or "RiskDetection" in code or "PolicyViolation" in code else None


def filmed(fields: dict[str, Any]) -> dict[str, Any]:
    """Words and pictures share one list. A film that begins with a picture has its shape."""
    said = fields["content"]
    shown = [{"type": "image_url", "image_url": {"url": said[role]}, "role": role} for role in FRAMES if role in said]
    shape = {"ratio": "adaptive"} if shown else {}
    return {**fields, "content": [{"type": "text", "text": said["text"]}, *shown], **shape}


def stills(name: str, upstream: str, price: Price, most: int, *rows: Param) -> tuple[Model, Model]:
    """One endpoint makes pictures and edits so many of them, of which the first goes in free."""

    def model(task: Task, price: Price, *more: Param) -> Model:
        op = Operation(
            task=task,
            send="POST /images/generations",
            read=read_pictures,
            params=complete_table(task, passthrough("prompt", required=True), *rows, *more, *PLAIN),
            priced_extras=frozenset({"layer_decomposition", "tools"}),
        )
        return Model(id=name, upstream=upstream, op=op, prices=(price,))

    pictures = converted("images", "image", each_image(data_uri), required=True, max_items=most)
    less = replace(price, each_usd=f"-{price.input_usd}") if price.input_usd != "0" else price
    return model("image", price), model("edit", less, pictures)


def films(name: str, upstream: str, longest: int) -> Model:
    rates = RATES[upstream]
    op = Operation(
        task="video",
        send="POST /contents/generations/tasks",
        poll="GET /contents/generations/tasks/{id}",
        cancel="DELETE /contents/generations/tasks/{id}",
        read=read_film,
        adjust_body=filmed,
        poll_seconds=10.0,
        priced_extras=frozenset({"draft"}),
        params=complete_table(
            "video",
            renamed("prompt", "content.text", required=True),
            duration(*range(4, longest + 1), default=5),
            frame("16:9 9:16 1:1 4:3 3:4 21:9", *rates, to=("ratio", "resolution")),
            fixed("watermark", False),
            converted(
                "input_reference", tuple(f"content.{role}" for role in FRAMES), first_and_last(data_uri), max_items=2
            ),
            converted("user", "safety_identifier", lambda user: sha256(user.encode()).hexdigest()),
            passthrough("generate_audio", one_of=(True, False)),
        ),
    )
    frames = {tier: AREAS[tier] * Decimal(rate) / 1024 / 1_000_000 for tier, rate in rates.items()}
    usual, *others = (usd(f"{24 * one:.5f}", each_usd=f"{one:.5f}", resolution=tier) for tier, one in frames.items())
    return Model(id=name, upstream=upstream, op=op, prices=(*others, replace(usual, when={})))


usd = price_list("docs.byteplus.com/en/docs/ModelArk/1544106 of 2026-09-22")
PLAIN, PNG = (fixed("watermark", False), fixed("response_format", "url")), fixed("output_format", "png")
SMALL, LARGE, CHEAP = (
    converted("frame", "size", size_text(pixels(min_area=least, max_area=most)))
    for least, most in ((1280 * 720, 4096 * 4096), (2560 * 1440, 4096 * 4096), (1024 * 1024, 2_610_000))
)  # beyond, the price doubles
PROVIDER = Provider(
    slug="bytedance",
    name="ByteDance",
    docs="https://docs.byteplus.com/en/docs/ModelArk",
    base_url="https://ark.ap-southeast.bytepluses.com/api/v3",
    key_env="ARK_API_KEY",
    auth=bearer,
    failure_kind=lambda reply: blame(reply.json["error"]),
    models=(
        *stills("seedream-4", "seedream-4-0-250828", usd("0.03", "image"), 14, SMALL),
        *stills("seedream-4.5", "seedream-4-5-251128", usd("0.04", "image"), 14, LARGE),
        *stills("seedream-5", "seedream-5-0-lite-260128", usd("0.035", "image"), 14, LARGE, PNG),
        *stills("seedream-5-flash", "dola-seedream-5-0-flash-260915", usd("0.018", "image"), 10, CHEAP, PNG),
        *stills("seedream-5-pro", "dola-seedream-5-0-pro-260628", usd("0.045", "image", "0.003"), 10, CHEAP, PNG),
        films("seedance-2.5", "dreamina-seedance-2-5-260628", 30),
        films("seedance-2", "dreamina-seedance-2-0-260128", 15),
        films("seedance-2-fast", "dreamina-seedance-2-0-fast-260128", 15),
        films("seedance-2-mini", "dreamina-seedance-2-0-mini-260615", 15),
    ),
)
