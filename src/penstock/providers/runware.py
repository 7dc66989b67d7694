"""Runware: images as tasks in a list, each with an id that the caller chooses; every answer reports its cost."""

import re
from collections.abc import Mapping
from typing import Any

from penstock.providers.convert import pixels
from penstock.providers.reported import number_at
from penstock.providers.spec import (
    FailureKind,
    File,
    Model,
    Operation,
    Provider,
    Reply,
    Result,
    Source,
    bearer,
    complete_table,
    converted,
    emulated,
    fixed,
    passthrough,
    price_list,
    renamed,
)

# Refusals have no code of their own that is documented; they are recognised by code and message.
REFUSAL = re.compile(r"moderat|nsfw|safety|inappropriate|content ?policy", re.IGNORECASE)


def read_images(reply: Reply) -> Result:
    """Read the images of one task; a task that failed is in another list."""
    response = reply.json
    if error := next(iter(response.get("errors") or ()), None):
        return Result(status="failed", failure_kind=error_kind(error) or "broken", message=error.get("message"))
    images = response["data"]
    costs = [cost for image in images if (cost := number_at(image, "cost")) is not None]
    return Result(
        files=tuple(File(url=image["imageURL"]) for image in images if image.get("imageURL")),
        upstream_id=images[0]["taskUUID"] if images else None,
        cost_usd=f"{sum(costs):f}" if len(costs) == len(images) else None,
    )


def error_kind(error: Mapping[str, Any]) -> FailureKind | None:
    return "refused" if REFUSAL.search(f"{error.get('code')} {error.get('message')}") else None


def error_message(reply: Reply) -> str | None:
    return str(reply.json["errors"][0]["message"])


def failure_kind(reply: Reply) -> FailureKind | None:
    return error_kind(reply.json["errors"][0])


IMAGE = Operation(
    task="image",
    send="POST /v1",
    read=read_images,
    body="json-list",
    params=complete_table(
        "image",
        fixed("taskType", "imageInference"),
        converted("random_id", to="taskUUID", convert=str),
        renamed("prompt", to="positivePrompt", required=True, max_length=3000),
        renamed("negative_prompt", to="negativePrompt", max_length=3000),
        passthrough("seed"),
        emulated("n", to="numberResults", high=4),
        converted(
            "frame",
            to=("width", "height"),
            convert=pixels(multiple=64, min_side=128, max_side=2048),
        ),
        fixed("outputType", "URL"),
        fixed("outputFormat", "PNG"),
        fixed("includeCost", True),
    ),
    # They change how long a model computes, which is what Runware bills.
    priced_extras=frozenset(
        """steps lora controlNet refiner acceleratorOptions ipAdapters taskType hiresFix outpaint ultralytics pulid
        inputs advancedFeatures CFGScale trueCFGScale promptWeighting""".split()
    ),
)

price = price_list(
    Source("more than any call should cost; runware.ai/docs/platform/pricing bills compute time", "2026-11-15")
)
PROVIDER = Provider(
    slug="runware",
    name="Runware",
    docs="https://runware.ai/docs",
    base_url="https://api.runware.ai",
    key_env="RUNWARE_API_KEY",
    auth=bearer,
    error_message=error_message,
    failure_kind=failure_kind,
    models=(
        Model(
            id="flux-schnell",
            upstream="runware:100@1",
            op=IMAGE,
            prices=(price("0.005", "started_megapixel"),),
            priority=20,
        ),
        Model(
            id="flux-dev",
            upstream="runware:101@1",
            op=IMAGE,
            prices=(price("0.02", "started_megapixel"),),
            priority=20,
        ),
    ),
)
