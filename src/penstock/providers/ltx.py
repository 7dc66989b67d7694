"""LTX: Lightricks' films, each kind of job with a path of its own, in one of eight sizes."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from penstock.providers.convert import closest, data_uri, first_and_last
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
    bearer,
    converted,
    duration,
    passthrough,
    price_list,
    complete_table,
)
from penstock.values import InputImage

STATUS: dict[str, Status] = {
    "pending": "queued",
    "processing": "in_progress",
    "completed": "completed",
    "failed": "failed",
}
TYPES: dict[str, FailureKind] = {
    "content_filtered_error": "refused",
    "invalid_request_error": "rejected",
    "insufficient_funds_error": "broken",
    "rate_limit_error": "busy",
    "concurrency_limit_error": "busy",
}
SIZES = {
    "720p": ("1280x720", "720x1280"),
    "1080p": ("1920x1080", "1080x1920"),
    "1440p": ("2560x1440", "1440x2560"),
    "2160p": ("3840x2160", "2160x3840"),
}


def read(reply: Reply) -> Result:
    """A new job has a name, and no status yet."""
    job = reply.json
    problem, url = job.get("error") or {}, (job.get("result") or {}).get("video_url")
    return Result(
        status=STATUS[job.get("status", "pending")],
        ref={"id": job["id"]},
        upstream_id=job["id"],
        files=(File(url=url, content_type="video/mp4"),) if url else (),
        failure_kind=TYPES.get(problem.get("type") or "", "broken"),
        message=problem.get("message"),
    )


def error(reply: Reply) -> str | None:
    return str(reply.json["error"]["message"])


def kind(reply: Reply) -> FailureKind | None:
    return TYPES.get(reply.json["error"]["type"])


def pictures(found: list[InputImage]) -> tuple[Any, ...]:
    return (*first_and_last(data_uri)(found), found[0].height > found[0].width)


def turned(fields: dict[str, Any]) -> dict[str, Any]:
    """A film is as upright as the picture that it begins with."""
    wide, tall = sorted(map(int, fields["resolution"].split("x")), reverse=True)
    size = f"{tall}x{wide}" if fields.pop("upright") else f"{wide}x{tall}"
    return {**fields, "resolution": size}


# Those of 2.5-fast between the smallest and the largest are a reseller's, less the tenth that it adds elsewhere.
usd = price_list("LTX's price list as others recorded it, 2026-11-15; not read there")
PROMPT = passthrough("prompt", required=True, max_length=5000)
WORDS = Operation(task="video", send="POST /v2/text-to-video", poll="GET /v2/text-to-video/{id}", read=read, params=())
MOVES = replace(WORDS, send="POST /v2/image-to-video", poll="GET /v2/image-to-video/{id}", adjust_body=turned)
BEGINS = converted("input_reference", ("image_uri", "last_frame_uri", "upright"), pictures, required=True, max_items=2)


def films(name: str, upstream: str, seconds: Param, **usd_each: str) -> Iterator[Model]:
    """Dollars for a second of each size that it has, the usual one first."""
    tiers = {tier.removeprefix("at_"): one for tier, one in usd_each.items()}
    sizes = [size for tier in tiers for size in SIZES[tier]]
    rows = (PROMPT, seconds, converted("frame", "resolution", closest(*sizes), default="16:9"))
    by_size: list[Price] = [usd(one, resolution=size) for tier, one in tiers.items() for size in SIZES[tier]]
    prices = (*by_size[2:], replace(by_size[0], when={}))
    for op in (
        replace(WORDS, params=complete_table("video", *rows)),
        replace(MOVES, params=complete_table("video", *rows, BEGINS)),
    ):
        yield Model(id=name, upstream=upstream, op=op, prices=prices)


# The larger the picture, the shorter the longest film; what is too long is refused there, and costs nothing.
LONG, ANY = duration(6, 8, 10, 12, 14, 16, 18, 20, default=6), duration(2, 3, 4, 5, 6, *range(8, 21, 2), default=5)
PROVIDER = Provider(
    slug="ltx",
    name="LTX",
    docs="https://docs.ltx.video",
    base_url="https://api.ltx.video",
    key_env="LTX_API_KEY",
    auth=bearer,
    error_message=error,
    failure_kind=kind,
    models=(
        *films("ltx-2.5-fast", "ltx-2-5-fast", ANY, at_720p="0.09", at_1080p="0.13", at_1440p="0.19", at_2160p="0.30"),
        *films("ltx-2.5-pro", "ltx-2-5-pro", ANY, at_720p="0.12", at_1080p="0.17"),
        *films("ltx-2.3-fast", "ltx-2-3-fast", LONG, at_1080p="0.06", at_720p="0.03", at_1440p="0.12", at_2160p="0.24"),
        *films(
            "ltx-2.3-pro",
            "ltx-2-3-pro",
            duration(6, 8, 10, default=6),
            at_1080p="0.08",
            at_1440p="0.16",
            at_2160p="0.32",
        ),
    ),
    retired={"ltx-2": "ltx-2.3-fast", "ltx-2-fast": "ltx-2.3-fast", "ltx-2-pro": "ltx-2.3-pro"},
)
