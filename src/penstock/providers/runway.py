"""Runway: its own films and pictures, and Google's films; tasks tell what they cost in credits of a cent."""

from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from typing import Any

from penstock.providers.convert import both, data_uri, closest_label
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
    renamed,
    frame,
    complete_table,
)
from penstock.values import Frame, InputImage

STATUS: dict[str, Status] = {
    "PENDING": "queued",
    "THROTTLED": "queued",
    "RUNNING": "in_progress",
    "SUCCEEDED": "completed",
    "FAILED": "failed",
    "CANCELLED": "cancelled",
}


def read(reply: Reply) -> Result:
    """A new task has no status yet. What it cost is known at the end, and may be less than was estimated."""
    task = reply.json
    credits = (task.get("cost") or {}).get("credits")
    return Result(
        status=STATUS[task.get("status", "PENDING")],
        ref={"id": task["id"]},
        upstream_id=task["id"],
        files=tuple(File(url=url) for url in task.get("output") or ()),
        failure_kind=blame(task.get("failureCode") or ""),
        message=task.get("failure"),
        cost_usd=None if credits is None else str(Decimal(str(credits)) / 100),
        progress=task.get("progress"),
    )


def blame(code: str) -> FailureKind:
    """`SAFETY.INPUT.TEXT` and `INPUT_PREPROCESSING.SAFETY.TEXT` are about content, whatever the other parts say."""
    if "SAFETY" in code.split("."):
        return "refused"
    return "rejected" if code.startswith(("INPUT_PREPROCESSING", "ASSET")) else "broken"


def error(reply: Reply) -> str | None:
    return str(reply.json["error"])


def pixels(*sizes: str) -> dict[str, str]:
    """Sizes are written like proportions: `1280:720`."""
    return {size: size.replace("x", ":") for size in sizes}


def moved(sizes: dict[str, str], most: int) -> Param:
    """The first picture begins the film and lends it its shape, the second ends it."""
    pick = closest_label(sizes)

    def images(found: list[InputImage]) -> list[dict[str, str]]:
        places = zip(found, ("first", "last"), strict=False)
        return [{"uri": data_uri(one), "position": place} for one, place in places]

    shape = both(images, lambda found: pick(Frame(found[0].width, found[0].height)))
    return converted("input_reference", ("promptImage", "ratio"), shape, required=True, max_items=most)


def references(found: list[InputImage]) -> list[dict[str, str]]:
    return [{"uri": data_uri(one)} for one in found]


def loud(fields: dict[str, Any]) -> dict[str, Any]:
    """As Google's own service does it."""
    return {"audio": True, **fields}


usd = price_list("docs.dev.runwayml.com/guides/pricing as litellm 1.108.4 and others quote it, looked up 2026-11-15")
GEN = pixels("1280x720", "720x1280", "1104x832", "832x1104", "960x960", "1584x672")
GEN_TEXT = pixels("1280x720", "720x1280")
VEO = pixels("1280x720", "720x1280", "1920x1080", "1080x1920")
IMAGE = pixels(
    *"""1024x1024 1280x720 720x1280 720x720 960x720 720x960 1680x720 1080x1080 1440x1080 1080x1440
    1920x1080 1080x1920 1168x880 1360x768 1808x768 2112x912""".split()
)
PROMPT, TEN = renamed("prompt", "promptText", required=True, max_length=1000), duration(*range(2, 11), default=5)
EIGHT = (
    duration(4, 6, 8, default=8),
    renamed("negative_prompt", "negativePrompt"),
    passthrough("audio", one_of=(True, False)),
)
FILM = Operation(
    task="video",
    send="POST /text_to_video",
    poll="GET /tasks/{id}",
    cancel="DELETE /tasks/{id}",
    read=read,
    params=(),
    poll_seconds=6.0,
    priced_extras=frozenset({"outputFormat", "proresProfile"}),
)
STILL = replace(FILM, task="image", send="POST /text_to_image", poll_seconds=2.0)
MOVE = replace(FILM, send="POST /image_to_video")


def films(
    name: str,
    upstream: str,
    sizes: tuple[dict[str, str], dict[str, str]],
    most: int,
    rows: tuple[Param, ...],
    *prices: Price,
    **more: Any,
) -> Iterator[Model]:
    shape = converted("frame", "ratio", closest_label(sizes[0]), default="16:9")
    words = replace(FILM, params=complete_table("video", PROMPT, shape, *rows), **more)
    moves = replace(MOVE, params=complete_table("video", PROMPT, frame(), moved(sizes[1], most), *rows), **more)
    for op in (words, moves):
        yield Model(id=name, upstream=upstream, op=op, prices=prices, priority=20 if name.startswith("veo") else 0)


SIZE = converted("frame", "ratio", closest_label(IMAGE))
LIKE = converted("images", "referenceImages", references, required=True, max_items=3)
EDIT = replace(STILL, task="edit", params=complete_table("edit", PROMPT, SIZE, LIKE))
PROVIDER = Provider(
    slug="runway",
    name="Runway",
    docs="https://docs.dev.runwayml.com",
    base_url="https://api.dev.runwayml.com/v1",
    key_env="RUNWAYML_API_SECRET",
    auth=bearer,
    headers={"x-runway-version": "2024-11-06"},
    error_message=error,
    models=(
        *films("gen-4.5", "gen4.5", (GEN_TEXT, GEN), 1, (TEN,), usd("0.12")),
        Model(
            id="runway/gen4-turbo",
            upstream="gen4_turbo",
            prices=(usd("0.05"),),
            op=replace(MOVE, params=complete_table("video", PROMPT, frame(), moved(GEN, 1), TEN)),
        ),
        *films("veo-3.1", "veo3.1", (VEO, VEO), 2, EIGHT, usd("0.20", audio=False), usd("0.40"), adjust_body=loud),
        *films(
            "veo-3.1-fast", "veo3.1_fast", (VEO, VEO), 2, EIGHT, usd("0.10", audio=False), usd("0.15"), adjust_body=loud
        ),
        # 5 credits at 720p, 8 at 1080p: the task itself tells which.
        Model(
            id="runway/gen4-image",
            upstream="gen4_image",
            op=replace(STILL, params=complete_table("image", PROMPT, SIZE)),
            prices=(usd("0.08", "image"),),
        ),
        Model(id="runway/gen4-image", upstream="gen4_image", op=EDIT, prices=(usd("0.08", "image"),)),
        Model(id="runway/gen4-image-turbo", upstream="gen4_image_turbo", op=EDIT, prices=(usd("0.02", "image"),)),
    ),
)
