"""xAI: Grok Imagine's pictures and films, which say exactly what they cost and may be blocked when made, and chat."""

import re
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

from penstock.convert import both, closest, data_uri, tier, word
from penstock.providers.compatible import ONE_VOICE, chats, error_text, talk
from penstock.providers.spec import (
    File, Kind, Model, Operation, Param, Price, Provider, Reply, Result, Status, bearer, converted, emulated, fixed,
    lasting, passthrough, priced, refused, shaped, whole,
)  # fmt: skip
from penstock.values import Reference

STATUS: dict[str, Status] = {"pending": "in_progress", "done": "completed", "failed": "failed", "expired": "failed"}
MODERATED = re.compile(r"moderation|usage guidelines|SAFETY_CHECK", re.IGNORECASE)
BLOCKED = "What was made did not pass xAI's moderation."
TALK = talk(ONE_VOICE, *refused("stop", "presence_penalty", "frequency_penalty"))  # as models that reason do


def cost(answer: dict[str, Any]) -> str | None:
    """A dollar has 10^10 ticks."""
    ticks = (answer.get("usage") or {}).get("cost_in_usd_ticks")
    return None if ticks is None else str(Decimal(ticks) / 10**10)


def read_images(reply: Reply) -> Result:
    made = [one for one in reply.json["data"] if one.get("respect_moderation") is not False]
    if not made and reply.json["data"]:
        return Result(status="failed", kind="refused", message=BLOCKED)
    files = tuple(File(one.get("url"), one.get("b64_json"), None, one.get("revised_prompt")) for one in made)
    return Result(files=files, cost_usd=cost(reply.json))


def read_film(reply: Reply) -> Result:
    """A request is named when it is made, and shown without its name; done is not yet well done."""
    job = reply.json
    if "request_id" in job:
        return Result(status="queued", ref={"id": job["request_id"]}, upstream_id=job["request_id"])
    status, film, error = STATUS[job["status"]], job.get("video") or {}, job.get("error") or {}
    blocked = job.get("block_reason") or (BLOCKED if film.get("respect_moderation") is False else None)
    told = blocked or error.get("message")
    fine = status == "completed" and film.get("url") and not blocked
    return Result(
        status="failed" if blocked else status,
        files=(File(film["url"], content_type="video/mp4"),) if fine else (),
        kind="refused" if blocked or MODERATED.search(told or "") else "broken",
        message=told,
        cost_usd=cost(job),
        progress=(job.get("progress") or 0) / 100,
    )


def error_kind(reply: Reply) -> Kind | None:
    """Content is refused with 400 or 403, in words only."""
    return "refused" if MODERATED.search(error_text(reply) or "") else None


def pictured(references: Sequence[Reference]) -> tuple[Any, Any]:
    """One picture, or several."""
    urls = [{"type": "image_url", "url": data_uri(one)} for one in references]
    return (urls[0], None) if len(urls) == 1 else (None, urls)


def follow(fields: dict[str, Any]) -> dict[str, Any]:
    """A film that begins with a picture has its shape."""
    return {name: value for name, value in fields.items() if name != "aspect_ratio" or "image" not in fields}


# fmt: off
def pictures(name: str, upstream: str, prices: tuple[Price, ...], *more: Param) -> tuple[Model, ...]:
    pick = both(closest(*"1:1 3:4 4:3 9:16 16:9 2:3 3:2 1:2 2:1 9:20 20:9".split()), tier("1k", "2k"))
    rows = (passthrough("prompt", required=True, longest=7500), emulated("n", "n", high=10), passthrough("user"),
            converted("frame", ("aspect_ratio", "resolution"), pick), fixed("response_format", "b64_json"), *more)
    given = converted("images", ("image", "images"), pictured, required=True, most=3)
    made = Operation(task="image", send="POST /images/generations", read=read_images, params=whole("image", *rows))
    edit = replace(made, task="edit", send="POST /images/edits", params=whole("edit", given, *rows))
    return tuple(Model(id=name, upstream=upstream, op=op, prices=prices) for op in (made, edit))


def films(name: str, tiers: str, *prices: Price) -> Model:
    op = Operation(
        task="video", send="POST /videos/generations", poll="GET /videos/{id}", read=read_film, shape=follow,
        params=whole("video", passthrough("prompt", required=True, longest=4096), passthrough("user"),
                     lasting(*range(1, 16), default=8), shaped("16:9 9:16 1:1 4:3 3:4 3:2 2:3", *tiers.split()),
                     converted("input_reference", ("image", "reference_images"), pictured, most=7)))
    return Model(id=name, upstream=name, op=op, prices=prices)


NOTE = "public price table, 2026-11"
usd = priced(NOTE)
QUALITY = converted("quality", "quality", word(
    {"standard": "low", "low": "low", "medium": "medium", "hd": "medium", "high": "medium"}))
BY_QUALITY = (usd("0.08", "image", "0.01", quality="medium", resolution="2k"),
              usd("0.06", "image", "0.01", quality="medium"), usd("0.06", "image", "0.01", resolution="2k"),
              usd("0.04", "image", "0.01"))
PROVIDER = Provider(
    slug="xai", name="xAI", docs="https://docs.x.ai/docs/api-reference", base_url="https://api.x.ai/v1",
    key="XAI_API_KEY", auth=bearer, error=error_text, kind=error_kind, models=(
        *pictures("grok-imagine-image-2", "grok-imagine-image-2.0", BY_QUALITY, QUALITY),
        *pictures("grok-imagine-image", "grok-imagine-image", (usd("0.02", "image", "0.002"),)),
        films("grok-imagine-video", "720p 480p", usd("0.05", input_usd="0.002", resolution="480p"),
              usd("0.07", input_usd="0.002")),
        films("grok-imagine-video-1.5", "720p 480p 1080p", usd("0.08", input_usd="0.01", resolution="480p"),
              usd("0.25", input_usd="0.01", resolution="1080p"), usd("0.14", input_usd="0.01")),
        films("grok-imagine-video-1.5-lite", "720p 480p 1080p", usd("0.02", input_usd="0.01", resolution="480p"),
              usd("0.14", input_usd="0.01", resolution="1080p"), usd("0.03", input_usd="0.01")),
        *chats("x-ai", NOTE, """
            grok-4.7        2     6    0.5  >200000  4    12  1
            grok-4.6        2     6    0.5  >200000  4    12  1
            grok-4.5        2     6    0.3  >200000  4    12  0.6
            grok-4.3        1.25  2.5  0.2  >200000  2.5  5   0.4
            grok-4.20       1.25  2.5  0.2  >200000  2.5  5   0.4
            grok-build-0.1  1     2    0.2  >200000  2    4   0.4
        """, TALK),
    ),
    retired={"grok-imagine-image-quality": "grok-imagine-image-2"},
)
