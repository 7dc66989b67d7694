"""LTX: Lightricks' videos, with an endpoint for text and one for images, in one of eight sizes."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from penstock.providers.convert import closest, data_uri, first_and_last
from penstock.providers.spec import (
    FailureKind,
    File,
    Model,
    Operation,
    Param,
    Price,
    Provider,
    Reply,
    Result,
    Source,
    Status,
    bearer,
    complete_table,
    converted,
    duration,
    passthrough,
    price_list,
)
from penstock.values import InputFile

STATUS: dict[str, Status] = {
    "pending": "queued",
    "processing": "in_progress",
    "completed": "completed",
    "failed": "failed",
}
FAILURE_KINDS: dict[str, FailureKind] = {
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


def read_job(reply: Reply) -> Result:
    """Read a job; a new one has no status."""
    job = reply.json
    error = job.get("error") or {}
    url = (job.get("result") or {}).get("video_url")
    return Result(
        status=STATUS[job.get("status", "pending")],
        ref={"id": job["id"]},
        upstream_id=job["id"],
        files=(File(url=url, content_type="video/mp4"),) if url else (),
        failure_kind=FAILURE_KINDS.get(error.get("type") or "", "broken"),
        message=error.get("message"),
    )


def error_message(reply: Reply) -> str | None:
    return str(reply.json["error"]["message"])


def failure_kind(reply: Reply) -> FailureKind | None:
    return FAILURE_KINDS.get(reply.json["error"]["type"])


def images_and_orientation(images: Sequence[InputFile]) -> tuple[Any, ...]:
    """The first image, the last image or None, and whether the first is in portrait format."""
    return (*first_and_last(data_uri)(images), images[0].height > images[0].width)


def orient_video(fields: dict[str, Any]) -> dict[str, Any]:
    """Turn the size of the video to portrait or landscape, as the first image is."""
    long, short = sorted(map(int, fields["resolution"].split("x")), reverse=True)
    size = f"{short}x{long}" if fields.pop("portrait") else f"{long}x{short}"
    return {**fields, "resolution": size}


PROMPT = passthrough("prompt", required=True, max_length=10_000)
SOUND = passthrough("generate_audio", one_of=(True, False))  # on by default, at the same price
IMAGES = converted(
    "input_reference",
    to=("image_uri", "last_frame_uri", "portrait"),
    convert=images_and_orientation,
    required=True,
    max_items=2,
)
TEXT_TO_VIDEO = Operation(
    task="video",
    send="POST /v2/text-to-video",
    poll="GET /v2/text-to-video/{id}",
    read=read_job,
    params=(),
)
IMAGE_TO_VIDEO = replace(
    TEXT_TO_VIDEO,
    send="POST /v2/image-to-video",
    poll="GET /v2/image-to-video/{id}",
    adjust_body=orient_video,
)


def video_models(name: str, upstream: str, seconds: Param, usd: Mapping[str, str]) -> tuple[Model, ...]:
    """A model with the dollars per second of each resolution that it has, the default first."""
    sizes = [size for resolution in usd for size in SIZES[resolution]]
    rows = (PROMPT, SOUND, seconds, converted("frame", to="resolution", convert=closest(*sizes), default="16:9"))
    by_size: list[Price] = [
        price(amount, resolution=size) for resolution, amount in usd.items() for size in SIZES[resolution]
    ]
    prices = (*by_size[2:], replace(by_size[0], when={}))
    operations = (
        replace(TEXT_TO_VIDEO, params=complete_table("video", *rows)),
        replace(IMAGE_TO_VIDEO, params=complete_table("video", *rows, IMAGES)),
    )
    return tuple(Model(id=name, upstream=upstream, op=op, prices=prices) for op in operations)


# Of ltx-2.5-fast, the prices of 1080p and 1440p are a reseller's, less the tenth that it adds to other prices.
price = price_list(Source("LTX's price list, as others recorded it", "2026-11-15", is_second_hand=True))
# The limit is lower for larger sizes. LTX refuses what is too long, which costs nothing.
UP_TO_20 = duration(2, 3, 4, 5, 6, *range(8, 21, 2), default=5)
UP_TO_10 = duration(2, 3, 4, 5, 6, 8, 10, default=5)
SIX_TO_20 = duration(6, 8, 10, 12, 14, 16, 18, 20, default=6)
SIX_TO_10 = duration(6, 8, 10, default=6)
FAST_25 = {"720p": "0.09", "1080p": "0.13", "1440p": "0.19", "2160p": "0.30"}
PRO_25 = {"720p": "0.12", "1080p": "0.17"}
FAST_23 = {"1080p": "0.06", "720p": "0.03", "1440p": "0.12", "2160p": "0.24"}
PRO_23 = {"1080p": "0.08", "1440p": "0.16", "2160p": "0.32"}
PROVIDER = Provider(
    slug="ltx",
    name="LTX",
    docs="https://docs.ltx.video",
    base_url="https://api.ltx.video",
    key_env="LTX_API_KEY",
    auth=bearer,
    error_message=error_message,
    failure_kind=failure_kind,
    models=(
        *video_models("ltx-2.5-fast", "ltx-2-5-fast", UP_TO_20, FAST_25),
        *video_models("ltx-2.5-pro", "ltx-2-5-pro", UP_TO_10, PRO_25),
        *video_models("ltx-2.3-fast", "ltx-2-3-fast", SIX_TO_20, FAST_23),
        *video_models("ltx-2.3-pro", "ltx-2-3-pro", SIX_TO_10, PRO_23),
    ),
    retired={"ltx-2": "ltx-2.3-fast", "ltx-2-fast": "ltx-2.3-fast", "ltx-2-pro": "ltx-2.3-pro"},
)
