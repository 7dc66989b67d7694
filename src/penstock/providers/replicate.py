"""Replicate: models of many makers, each with its own input; failures are told in words, outputs kept for an hour."""

import re
from dataclasses import replace
from typing import Any

from penstock.convert import both, closest, each, ends, first, on_off, pixels
from penstock.providers.spec import (
    Deposit, File, Kind, Model, Operation, Param, Price, Provider, Reply, Result, Status, Task, Upload, bearer,
    converted, emulated, fixed, lasting, passthrough, priced, shaped, under, whole,
)  # fmt: skip
from penstock.values import Frame, Reference

STATUS: dict[str, Status] = {
    "starting": "queued", "processing": "in_progress", "succeeded": "completed", "failed": "failed",
    "canceled": "cancelled", "aborted": "failed",
}  # fmt: skip
UNSAFE = re.compile(r"NSFW|flagged as sensitive|\(E005\)|content policy|safety", re.IGNORECASE)
PERCENT = re.compile(r"(\d{1,3})%\|")  # a progress bar in the logs


def read(reply: Reply) -> Result:
    job = reply.json
    output, words = job.get("output") or (), str(job.get("error") or "")
    urls = [output] if isinstance(output, str) else [url for url in output if isinstance(url, str)]
    bars = PERCENT.findall(job.get("logs") or "")
    return Result(
        status=STATUS[job["status"]],
        ref={"id": job["id"]},
        upstream_id=job["id"],
        files=tuple(File(url=url) for url in urls),
        kind=blame(words),
        message=words,
        progress=int(bars[-1]) / 100 if bars else None,
    )


def blame(words: str) -> Kind:
    if words.startswith("Input validation error"):
        return "rejected"
    return "refused" if UNSAFE.search(words) else "broken"


def error(reply: Reply) -> str | None:
    return str(reply.json["detail"])


def left(reference: Reference) -> str:
    """Pictures are uploaded first; what is sent is where they were left."""
    return reference.name


def picture(reference: Reference) -> tuple[tuple[str, Upload], ...]:
    name = f"picture.{reference.content_type.split('/')[1]}"
    return (("content", Upload(reference.data, reference.content_type, name)),)


def quarter(frame: Frame) -> str:
    """Older Flux models make one megapixel, or a quarter of it."""
    return "0.25" if frame.exact and frame.width * frame.height < 600_000 else "1"


def veo(found: list[Reference]) -> tuple[str, str | None, str]:
    """A film that begins with a picture has its shape, as far as there is a choice."""
    return *ends(left)(found), "9:16" if found[0].height > found[0].width else "16:9"


def loud(fields: dict[str, Any]) -> dict[str, Any]:
    """As Google's own service does it."""
    return {"input": {"generate_audio": True, **fields}}


# fmt: off
# How each price is known: none was read at Replicate itself.
usd = priced("tables in other projects, looked up 2026-11-15; not checked with Replicate")
page = priced("replicate.com/pricing as transcribed by api-evangelist, 2026-10-07")
JOB = Operation(
    task="image", send="POST /models/{model}/predictions", poll="GET /predictions/{id}", read=read, params=(),
    cancel="POST /predictions/{id}/cancel", shape=under("input"), poll_seconds=1.0,
    priced_extras=frozenset({"google_search", "image_search"}),
    callback_field="webhook", callback_also={"webhook_events_filter": ["completed"]},
    deposit=Deposit(send="POST /files", form=picture, read=lambda reply: str(reply.json["urls"]["get"])),
)


def job(name: str, upstream: str, task: Task, rows: tuple[Param, ...], *prices: Price, **more: Any) -> Model:
    op = replace(JOB, task=task, params=whole(task, *rows), poll_seconds=5.0 if task == "video" else 1.0, **more)
    return Model(id=name, upstream=upstream, op=op, prices=prices, priority=30 if task == "video" else 20)


def stills(name: str, upstream: str, to: str, most: int, rows: tuple[Param, ...], *prices: Price) -> list[Model]:
    """One model makes pictures of words, and edits those that it is given."""
    pictures = converted("images", to, each(left) if most > 1 else first(left), required=True, most=most)
    return [job(name, upstream, "image", (PROMPT, *rows), *prices),
            job(name, upstream, "edit", (PROMPT, pictures, *rows), *prices)]


PROMPT, PNG = passthrough("prompt", required=True), fixed("output_format", "png")
OLD_RATIOS = "1:1 16:9 21:9 3:2 2:3 4:5 5:4 3:4 4:3 9:16 9:21"
RATIOS = "1:1 16:9 9:16 4:3 3:4 3:2 2:3 4:5 5:4 21:9"
FLUX = (PROMPT, PNG, emulated("n", "num_outputs", high=4),
        converted("frame", ("aspect_ratio", "megapixels"), both(closest(*OLD_RATIOS.split()), quarter)))
FLUX_2 = (PNG, fixed("aspect_ratio", "custom"), converted("frame", ("width", "height"), pixels(1024, 16, 256, 2048)))
KONTEXT = (PNG, shaped(f"{RATIOS} 9:21 2:1 1:2"),
           converted("prompt_enhancement", "prompt_upsampling", on_off(True, False)))
MAGIC = converted("prompt_enhancement", "magic_prompt_option", on_off("On", "Off"))
VEO = (PROMPT, passthrough("negative_prompt"), lasting(4, 6, 8, default=8), shaped("16:9 9:16", "720p", "1080p"),
       passthrough("generate_audio", one_of=(True, False)),
       converted("input_reference", ("image", "last_frame", "aspect_ratio"), veo, most=2))
SEEDANCE = (PROMPT, lasting(*range(2, 13), default=5), passthrough("camera_fixed", one_of=(True, False)),
            shaped("16:9 9:16 1:1 4:3 3:4 21:9 9:21", "720p", "480p", "1080p"),
            converted("input_reference", ("image", "last_frame_image"), ends(left), most=2))
HAILUO = (PROMPT, lasting(6, 10, default=6), shaped("", "768p", "1080p"),
          converted("input_reference", "first_frame_image", first(left), most=1))
IMAGE, MP, BFL = "image", "started_megapixel", "black-forest-labs/flux-"
PROVIDER = Provider(
    callback_key="REPLICATE_WEBHOOK_SECRET",  # which GET /webhooks/default/secret tells
    slug="replicate", name="Replicate", docs="https://replicate.com/docs/reference/http", key="REPLICATE_API_TOKEN",
    base_url="https://api.replicate.com/v1", auth=bearer, error=error,
    models=(
        job("flux-schnell", BFL + "schnell", "image", FLUX, page("0.003", IMAGE)),
        job("flux-dev", BFL + "dev", "image", FLUX, page("0.025", IMAGE)),
        *stills("flux-2-pro", BFL + "2-pro", "input_images", 8, FLUX_2, usd("0.015", MP, "0.015", "0.015")),
        *stills("flux-2-flex", BFL + "2-flex", "input_images", 10, FLUX_2, usd("0.06", MP, "0.06")),
        *stills("flux-kontext-pro", BFL + "kontext-pro", "input_image", 1, KONTEXT, usd("0.04", IMAGE)),
        *stills("flux-kontext-max", BFL + "kontext-max", "input_image", 1, KONTEXT, usd("0.08", IMAGE)),
        *stills("nano-banana", "google/nano-banana", "image_input", 10, (PNG, shaped(RATIOS)), usd("0.039", IMAGE)),
        *stills("nano-banana-pro", "google/nano-banana-pro", "image_input", 14, (PNG, shaped(RATIOS, "1K", "2K", "4K")),
                usd("0.30", IMAGE, resolution="4K"), usd("0.15", IMAGE)),
        *stills("seedream-4.5", "bytedance/seedream-4.5", "image_input", 14,
                (shaped("1:1 16:9 9:16 4:3 3:4 3:2 2:3 21:9", "2K", "4K", to=("aspect_ratio", "size")),),
                usd("0.04", IMAGE)),
        job("recraft-v3", "recraft-ai/recraft-v3", "image", (PROMPT, shaped(
            "1:1 4:3 3:4 3:2 2:3 16:9 9:16 1:2 2:1 7:5 5:7 4:5 5:4 3:5 5:3")), usd("0.04", IMAGE)),
        job("replicate/ideogram-v3-turbo", "ideogram-ai/ideogram-v3-turbo", "image", (PROMPT, MAGIC, shaped(
            "1:1 1:3 3:1 1:2 2:1 9:16 16:9 10:16 16:10 2:3 3:2 3:4 4:3 4:5 5:4")), usd("0.03", IMAGE)),
        job("replicate/ideogram-v3-turbo", "ideogram-ai/ideogram-v3-turbo", "edit", (PROMPT, MAGIC, converted(
            "mask", "mask", left, required=True), converted("images", "image", first(left), required=True, most=1)),
            usd("0.03", IMAGE), settings={"mask": "black"}),
        job("recraft-crisp-upscale", "recraft-ai/recraft-crisp-upscale", "upscale", (converted(
            "images", "image", first(left), required=True, most=1), Param(name="scale_factor", handling="refused")),
            usd("0.006", IMAGE)),
        job("veo-3.1", "google/veo-3.1", "video", VEO, usd("0.20", generate_audio=False), usd("0.40"), shape=loud),
        job("veo-3.1-fast", "google/veo-3.1-fast", "video", VEO, usd("0.10", generate_audio=False), usd("0.15"),
            shape=loud),
        job("seedance-1-pro", "bytedance/seedance-1-pro", "video", SEEDANCE, usd("0.03", resolution="480p"),
            usd("0.15", resolution="1080p"), usd("0.06")),
        job("hailuo-2.3", "minimax/hailuo-2.3", "video", HAILUO, usd("0.49", "call", resolution="1080p"),
            usd("0.56", "call", duration=10), usd("0.28", "call")),
    ),
)
