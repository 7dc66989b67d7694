"""Films of many makers through OpenRouter."""

from collections.abc import Callable, Sequence
from typing import Any

from penstock.providers.compatible import STATUS
from penstock.providers.openrouter.told import cost, picture, usd
from penstock.providers.spec import (
    File,
    Model,
    Operation,
    Price,
    Reply,
    Result,
    converted,
    duration,
    passthrough,
    frame,
    complete_table,
)
from penstock.values import InputImage


def read_film(reply: Reply) -> Result:
    """Files are fetched from the router itself, whether or not it has signed an address for them."""
    job = reply.json
    count = len(job.get("unsigned_urls") or ()) if job["status"] == "completed" else 0
    content = f"/videos/{job['id']}/content?index="
    files = tuple(File(f"{content}{number}", private=True, content_type="video/mp4") for number in range(count))
    return Result(
        status=STATUS[job["status"]],
        files=files,
        ref={"id": job["id"]},
        upstream_id=job["id"],
        message=job.get("error"),
        cost_usd=cost(job),
    )


def frames(references: Sequence[InputImage]) -> list[dict[str, Any]]:
    """The picture that a film begins with and, if there is a second one, the picture it ends with."""
    return [
        {**picture(one), "frame_type": name}
        for one, name in zip(references, ("first_frame", "last_frame"), strict=False)
    ]


def silent(fields: dict[str, Any]) -> dict[str, Any]:
    """Unless asked for: sound costs half as much again."""
    return {"generate_audio": False, **fields}


def film(
    name: str,
    upstream: str,
    lengths: Sequence[int],
    shapes: str,
    ends: int,
    *prices: Price,
    sound: bool = False,
    by: Callable[[dict[str, Any]], dict[str, Any]] = dict,
) -> Model:
    """How long and of which proportions it can be, after `|` of which resolutions; and how many pictures it takes."""
    ratios, _, tiers = shapes.partition("|")
    given = converted("input_reference", "frame_images", frames, max_items=ends)
    loud = (passthrough("generate_audio", one_of=(True, False)),) if sound else ()
    rows = complete_table(
        "video",
        passthrough("prompt", required=True),
        passthrough("user"),
        given,
        *loud,
        duration(*lengths, default=5 if 5 in lengths else 8),
        frame(ratios, *tiers.split()),
    )
    op = Operation(
        task="video",
        send="POST /videos",
        poll="GET /videos/{id}",
        read=read_film,
        params=rows,
        adjust_body=by,
        poll_seconds=10.0,
        priced_extras=frozenset({"previous_job_id", "upscale_factor"}),
    )
    return Model(id=name, upstream=upstream, op=op, prices=prices, priority=20)


MODELS = (
    film(
        "kling-3",
        "kwaivgi/kling-v3.0-std",
        range(3, 16),
        "16:9 9:16 1:1",
        2,
        usd("0.126", generate_audio=True),
        usd("0.084"),
        sound=True,
        by=silent,
    ),
    film(
        "kling-3-pro",
        "kwaivgi/kling-v3.0-pro",
        range(3, 16),
        "16:9 9:16 1:1",
        2,
        usd("0.168", generate_audio=True),
        usd("0.112"),
        sound=True,
        by=silent,
    ),
    film("wan-2.7", "alibaba/wan-2.7", range(2, 11), "16:9 9:16 1:1 4:3 3:4 | 720p 1080p", 2, usd("0.1")),
    film(
        "seedance-2",
        "bytedance/seedance-2.0",
        range(4, 16),
        "16:9 9:16 1:1 4:3 3:4 21:9 | 720p 480p 1080p 4K",
        2,
        usd("0.07", resolution="480p"),
        usd("0.38", resolution="1080p"),
        usd("0.79", resolution="4K"),
        usd("0.16"),
    ),
    film(
        "veo-3.1",
        "google/veo-3.1",
        (4, 6, 8),
        "16:9 9:16 | 720p 1080p 4K",
        2,
        usd("0.40", generate_audio=False, resolution="4K"),
        usd("0.20", generate_audio=False),
        usd("0.60", resolution="4K"),
        usd("0.40"),
        sound=True,
    ),
    film("gen-4.5", "runway/gen-4.5", range(2, 11), "16:9 9:16", 1, usd("0.12")),
    film(
        "grok-imagine-video",
        "x-ai/grok-imagine-video",
        range(1, 16),
        "16:9 9:16 1:1 4:3 3:4 3:2 2:3 | 720p 480p",
        1,
        usd("0.05", input_usd="0.002", resolution="480p"),
        usd("0.07", input_usd="0.002"),
    ),
)
