"""Videos that are upscaled: a job is created, accepted, gets the video at a URL of its own, and begins."""

from dataclasses import replace
from decimal import Decimal
from typing import Any

from penstock.providers.convert import pixels
from penstock.providers.reported import fraction_at, number_at
from penstock.providers.spec import (
    File,
    Model,
    Operation,
    Price,
    Reply,
    Result,
    Source,
    Status,
    VideoUpload,
    complete_table,
    converted,
    emulated,
    fixed,
    ignored,
    input_video,
)
from penstock.values import EDIT_VIDEO, InputFile

STATUS: dict[str, Status] = {
    "requested": "queued",
    "accepted": "queued",
    "initializing": "in_progress",
    "preprocessing": "in_progress",
    "processing": "in_progress",
    "postprocessing": "in_progress",
    "complete": "completed",
    "canceling": "in_progress",
    "canceled": "cancelled",
    "failed": "failed",
}
USD_PER_CREDIT = Decimal("0.12")  # without a subscription; with one, as little as 0.08
CONTAINERS = {"video/mp4": "mp4", "video/quicktime": "mov"}
FULL_HD = 1920 * 1080


def read_created(reply: Reply) -> Result:
    return Result(status="queued", ref={"id": reply.json["requestId"]}, upstream_id=reply.json["requestId"])


def read_status(reply: Reply) -> Result:
    """Read the state of a job. Its cost in credits is the upper bound of Topaz's estimate."""
    job = reply.json
    url = (job.get("download") or {}).get("url")
    credits = number_at(job, "estimates", "cost", -1)
    status = STATUS[job["status"]]
    return Result(
        status=status,
        files=(File(url=url),) if url else (),
        message=job.get("message"),
        cost_usd=None if credits is None or status != "completed" else f"{credits * USD_PER_CREDIT}",
        progress=fraction_at(job, "progress"),
    )


def source(video: InputFile) -> tuple[dict[str, Any], float]:
    """What Topaz is told about the input before it gets it, and the frame rate, which stays."""
    rate = round(video.frames / video.seconds, 3)
    described = {
        "container": CONTAINERS[video.content_type],
        "size": len(video.data),
        "duration": video.seconds,
        "frameCount": video.frames,
        "frameRate": rate,
        "resolution": {"width": video.width, "height": video.height},
    }
    return described, rate


def read_upload_url(reply: Reply) -> str:
    """There are several URLs only for files of more than 500 MB."""
    (url,) = reply.json["urls"]
    return str(url)


def uploaded_parts(etag: str) -> dict[str, Any]:
    return {"uploadResults": [{"partNum": 1, "eTag": etag.strip('"')}]}


UPSCALE = Operation(
    task="video",
    send="POST /video/",
    poll="GET /video/{id}/status",
    cancel="DELETE /video/{id}",
    read=read_created,
    read_poll=read_status,
    video_upload=VideoUpload(
        prepare="PATCH /video/{id}/accept",
        read_url=read_upload_url,
        start="PATCH /video/{id}/complete-upload",
        start_body=uploaded_parts,
    ),
    model_field=None,
    takes_extras=False,
    params=(),
)
ROWS = (
    input_video(EDIT_VIDEO, to=("source", "output.frameRate"), convert=source, max_bytes=500 * 10**6),
    converted(
        "frame",
        to=("output.resolution.width", "output.resolution.height"),
        convert=pixels(multiple=2, max_side=3840, max_area=3840 * 2160),
    ),
    emulated("scale_factor", low=1, default=2),
    fixed("output.container", "mp4"),
    fixed("output.audioCodec", "AAC"),
    fixed("output.audioTransfer", "Copy"),
    *ignored("prompt", "seconds"),
)
SOURCE = Source("Topaz's frames per credit, and its price of a credit, as others quote them", "2026-11-16", True)


def model(name: str, upstream: str, full_name: str, frames_per_credit: str, frames_per_credit_4k: str) -> Model:
    """A model that is charged in whole credits, for so many frames of up to 1080p and of 4K."""

    def price(frames: str, above: int = 0) -> Price:
        usd = (USD_PER_CREDIT / Decimal(frames)).quantize(Decimal("0.000001"))
        return Price(unit="frame", usd=f"{usd}", each_usd=f"{USD_PER_CREDIT}", above=above, source=SOURCE)

    op = replace(UPSCALE, params=complete_table("video", *ROWS, fixed("filters", [{"model": upstream}])))
    prices = (price(frames_per_credit_4k, above=FULL_HD), price(frames_per_credit))
    return Model(id=name, upstream=upstream, op=op, prices=prices, name=f"Topaz {full_name}")


MODELS = (
    model("topaz/starlight-precise-2.6", "slp-2.6", "Starlight Precise 2.6", "26.0417", "11.9179"),
    model("topaz/astra-2", "ast-2", "Astra 2", "10", "6"),
)
