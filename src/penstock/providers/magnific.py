"""Magnific: upscaling of images, over Freepik's API; the price depends on the factor and on the size."""

from dataclasses import replace
from decimal import Decimal

from penstock.providers.convert import first_image, lookup, plain_base64
from penstock.providers.spec import (
    COMFY,
    File,
    Model,
    Operation,
    Param,
    Price,
    Provider,
    Reply,
    Result,
    Status,
    complete_table,
    converted,
    header,
    passthrough,
)

STATUS: dict[str, Status] = {
    "CREATED": "queued",
    "IN_PROGRESS": "in_progress",
    "COMPLETED": "completed",
    "FAILED": "failed",
}
FACTORS = (2, 4, 8, 16)
# An image is doubled again and again. What one doubling costs depends on the megapixels before it, up to these.
STEP_USD = {Decimal("1.3"): Decimal("0.119"), Decimal("3.0"): Decimal("0.238"), Decimal("6.4"): Decimal("0.357")}
LARGEST_STEP_USD = Decimal("1.428")
# The megapixels of an output at which the sum changes; there are none above 25.3.
OUTPUT_MEGAPIXELS = (Decimal("5.2"), Decimal(12), Decimal("20.8"), Decimal("25.6"))


def read_task(reply: Reply) -> Result:
    task = reply.json["data"]
    return Result(
        status=STATUS[task["status"]],
        ref={"id": task["task_id"]},
        upstream_id=task["task_id"],
        files=tuple(File(url=url) for url in task.get("generated") or ()),
        message="Magnific did not say why the task failed.",
    )


def error_message(reply: Reply) -> str | None:
    return str(reply.json["message"])


def step_usd(megapixels: Decimal) -> Decimal:
    return next((usd for most, usd in STEP_USD.items() if megapixels <= most), LARGEST_STEP_USD)


def prices(sent: dict[int, object]) -> tuple[Price, ...]:
    """A row for each factor and size of the output; the rows of the smallest factor, the default, have no condition."""
    rows = []
    for steps, factor in reversed([*enumerate(FACTORS, 1)]):
        when = {} if factor == FACTORS[0] else {"sent.scale_factor": sent[factor]}
        for number in reversed(range(len(OUTPUT_MEGAPIXELS))):
            most = OUTPUT_MEGAPIXELS[number]
            usd = sum(step_usd(most / 4**step) for step in range(1, steps + 1))
            above = int(OUTPUT_MEGAPIXELS[number - 1] * 10**6) if number else 0
            rows.append(Price(unit="image", usd=f"{usd}", above=above, when=when, source=COMFY))
    return tuple(rows)


UPSCALE = Operation(
    task="upscale",
    send="POST /v1/ai/{model}",
    poll="GET /v1/ai/{model}/{id}",
    read=read_task,
    model_field=None,
    params=(),
    callback_field="webhook_url",
    poll_seconds=3.0,
)
IMAGE = converted("images", to="image", convert=first_image(plain_base64), required=True, max_items=1)


def model(name: str, upstream: str, sent: dict[int, object], *rows: Param) -> Model:
    """A model that is sent the factor as this table writes it."""
    factor = converted("scale_factor", to="scale_factor", convert=lookup(sent), one_of=FACTORS, default=FACTORS[0])
    op = replace(UPSCALE, params=complete_table("upscale", IMAGE, factor, *rows))
    return Model(id=name, upstream=upstream, op=op, prices=prices(sent))


PROVIDER = Provider(
    slug="magnific",
    name="Magnific",
    docs="https://docs.freepik.com/api-reference/image-upscaler-creative",
    base_url="https://api.freepik.com",
    key_env="FREEPIK_API_KEY",
    auth=header("x-freepik-api-key"),
    error_message=error_message,
    models=(
        model(
            "magnific/creative",
            "image-upscaler",
            {factor: f"{factor}x" for factor in FACTORS},
            passthrough("prompt"),
            passthrough("creativity", low=-10, high=10),
            passthrough("resemblance", low=-10, high=10),
        ),
        model("magnific/precision", "image-upscaler-precision-v2", {factor: factor for factor in FACTORS}),
    ),
)
