"""Images that are upscaled, as jobs whose result has a URL of its own."""

from dataclasses import replace
from decimal import Decimal
from typing import Any

from penstock.providers.openai_compatible import form_file
from penstock.providers.reported import fraction_at
from penstock.providers.spec import (
    COMFY,
    File,
    Model,
    Operation,
    Param,
    Price,
    Reply,
    Result,
    Status,
    Upload,
    complete_table,
    converted,
    fixed,
    passthrough,
)
from penstock.values import InputFile

STATUS: dict[str, Status] = {
    "Pending": "queued",
    "Processing": "in_progress",
    "Completed": "completed",
    "Failed": "failed",
    "Cancelled": "cancelled",
}
DEFAULT_FACTOR = 2
STEP_MEGAPIXELS = 8
MAX_STEPS = 8  # larger outputs are priced by the megapixel, with a margin for the last step
MARGIN = Decimal("1.15")


def read_job(reply: Reply) -> Result:
    """Read a new job, its state, or where its result is."""
    job = reply.json
    if "download_url" in job:
        return Result(files=(File(url=job["download_url"]),))
    return Result(
        status=STATUS[job.get("status", "Pending")],
        ref={"id": job["process_id"]},
        upstream_id=job["process_id"],
        message="Topaz did not say why the job failed.",
        progress=fraction_at(job, "progress"),
    )


def file_and_size(images: list[InputFile]) -> tuple[Upload, int, int]:
    image = images[0]
    return form_file(image), image.width, image.height


def with_output_size(fields: dict[str, Any]) -> dict[str, Any]:
    """The size of the output in pixels, which Topaz takes instead of a factor."""
    factor = fields.pop("factor", DEFAULT_FACTOR)
    sides = {f"output_{side}": round(fields[f"input_{side}"] * factor) for side in ("width", "height")}
    return {**fields, **sides}


UPSCALE = Operation(
    task="upscale",
    send="POST /image/v1/enhance-gen/async",
    poll="GET /image/v1/status/{id}",
    fetch="GET /image/v1/download/{id}",
    read=read_job,
    body="form",
    adjust_body=with_output_size,
    params=(),
    priced_extras=frozenset({"output_width", "output_height"}),
    poll_seconds=2.0,
)


def model(name: str, upstream: str, step_usd: str, *rows: Param) -> Model:
    """A model at a price for each 8 megapixels of the output that are begun."""
    usd = Decimal(step_usd)
    large = Price(
        unit="megapixel",
        usd=f"{usd * MARGIN / STEP_MEGAPIXELS}",
        above=MAX_STEPS * STEP_MEGAPIXELS * 10**6,
        source=COMFY,
    )
    steps = [
        Price(unit="image", usd=f"{usd * number}", above=(number - 1) * STEP_MEGAPIXELS * 10**6, source=COMFY)
        for number in range(MAX_STEPS, 0, -1)
    ]
    op = replace(UPSCALE, params=complete_table("upscale", IMAGE, FACTOR, fixed("output_format", "png"), *rows))
    return Model(id=name, upstream=upstream, op=op, prices=(large, *steps), name=f"Topaz {upstream}")


IMAGE = converted(
    "images",
    to=("image", "input_width", "input_height"),
    convert=file_and_size,
    required=True,
    max_items=1,
)
FACTOR = converted("scale_factor", to="factor", convert=float, low=1, high=6, default=DEFAULT_FACTOR)
MODELS = (
    model("topaz/wonder-3.5", "Wonder 3.5", "0.08"),
    model("topaz/bloom-2", "Bloom 2", "0.32", passthrough("prompt"), passthrough("seed")),
)
