"""Leonardo: its own Lucid and Phoenix images, and Motion videos, as jobs.

Leonardo publishes no prices. It says what a job costs when it accepts it, and that is charged.
"""

import re
from typing import Any

from penstock.providers.convert import closest, closest_resolution, lookup, on_off, pixels
from penstock.providers.reported import number_at, value_at
from penstock.providers.spec import (
    NEVER_SOUND,
    FailureKind,
    File,
    Model,
    Operation,
    Param,
    Provider,
    Reply,
    Result,
    Source,
    Status,
    bearer,
    complete_table,
    converted,
    emulated,
    fixed,
    passthrough,
    price_list,
    renamed,
)
from penstock.values import Frame

STATUS: dict[str, Status] = {"PENDING": "in_progress", "COMPLETE": "completed", "FAILED": "failed"}
MOTION_SECONDS = 5  # of every video
# Refusals have no code of their own; they are recognised by their message.
REFUSAL = re.compile(r"moderat|nsfw|inappropriate|content policy|blocked", re.IGNORECASE)


def read_generation(reply: Reply) -> Result:
    """Read a new generation, of which there are the id and the cost, or the state of one."""
    if started := reply.json.get("generate") or reply.json.get("motionVideoGenerationJob"):
        return Result(
            status="queued",
            ref={"id": started["generationId"], **accepted_cost(started)},
            upstream_id=started["generationId"],
        )
    generation = reply.json["generations_by_pk"]
    return Result(
        status=STATUS[generation["status"]],
        ref={"id": generation["id"]},
        upstream_id=generation["id"],
        files=tuple(File(url=output_url(output)) for output in generation.get("generated_images") or ()),
        message="Leonardo did not say why the generation failed.",
    )


def output_url(output: dict[str, Any]) -> str:
    """Where an image is, or a video, which has a still image as well."""
    return str(output.get("motionMP4URL") or output["url"])


def accepted_cost(started: dict[str, Any]) -> dict[str, str]:
    """What is charged, for the job's ref; nothing for an account that pays in credits."""
    usd = number_at(started, "cost", "amount")
    return {} if usd is None or value_at(started, "cost", "unit") != "DOLLARS" else {"cost_usd": str(usd)}


def error_message(reply: Reply) -> str | None:
    return str(reply.json["error"])


def failure_kind(reply: Reply) -> FailureKind | None:
    return "refused" if reply.status in (400, 403, 422) and REFUSAL.search(error_message(reply) or "") else None


def build_body(fields: dict[str, Any]) -> dict[str, Any]:
    """Put the caller's other fields among the model's parameters."""
    parameters = fields.pop("parameters")
    is_public = fields.pop("public")
    return {"public": is_public, "parameters": {**fields, **parameters}}


def image_model(name: str, title: str, max_side: int, modes: dict[str, str], *rows: Param) -> Model:
    """A model whose `quality` chooses among the modes that it has."""
    op = Operation(
        task="image",
        send="POST /v2/generations",
        poll="GET /v1/generations/{id}",
        read=read_generation,
        adjust_body=build_body,
        params=complete_table(
            "image",
            fixed("public", False),
            renamed("seed", to="parameters.seed", low=0, high=2**31 - 1),
            emulated("n", to="parameters.quantity", high=8),
            converted(
                "frame",
                to=("parameters.width", "parameters.height"),
                convert=pixels(multiple=8, min_side=32, max_side=max_side),
            ),
            converted("quality", to="parameters.mode", convert=lookup(modes)),
            converted("prompt_enhancement", to="parameters.prompt_enhance", convert=on_off("ON", "OFF")),
            *rows,
        ),
        # Other images can be referred to by their ids at Leonardo; what they cost is not described.
        priced_extras=frozenset({"guidances", "mode", "parameters", "quantity"}),
        poll_seconds=2.0,
    )
    prices = (price("0.20", "image", **{"parameters.mode": "ULTRA"}), price("0.10", "image"))
    return Model(id=f"leonardo/{name}", upstream=name, name=title, op=op, prices=prices)


def motion_frame(frame: Frame) -> tuple[int, int, str]:
    """Width, height and resolution of a video; the two sides choose the aspect ratio, whatever the resolution is."""
    width, height = map(int, motion_size(frame).split("x"))
    return width, height, "RESOLUTION_720" if motion_resolution(frame) == "720p" else "RESOLUTION_480"


def prompt(max_length: int) -> Param:
    return renamed("prompt", to="parameters.prompt", required=True, max_length=max_length)


def video_model(name: str, upstream: str, title: str) -> Model:
    prices = (price("1.00", "call", resolution="RESOLUTION_720"), price("0.50", "call"))
    return Model(id=f"leonardo/{name}", upstream=upstream, name=title, op=MOTION, prices=prices)


# Without one of these qualities the model uses its mode `FAST`.
LUCID_MODES = dict.fromkeys(("hd", "high", "xhigh", "max"), "ULTRA")
PHOENIX_MODES = {"medium": "QUALITY", **LUCID_MODES}

motion_size = closest("832x480", "480x832", "512x768", "576x720")
motion_resolution = closest_resolution("480p", "720p", default="480p")
MOTION = Operation(
    task="video",
    send="POST /v1/generations-text-to-video",
    poll="GET /v1/generations/{id}",
    read=read_generation,
    params=complete_table(
        "video",
        passthrough("prompt", required=True),
        renamed("negative_prompt", to="negativePrompt"),
        passthrough("seed", low=0, high=2_147_483_637),
        fixed("isPublic", False),
        converted("frame", to=("width", "height", "resolution"), convert=motion_frame, default="16:9"),
        emulated("seconds", high=MOTION_SECONDS, default=MOTION_SECONDS),
        NEVER_SOUND,
    ),
    priced_extras=frozenset({"duration", "elements", "frameInterpolation", "resolution"}),
)

price = price_list(Source("held until Leonardo says what it charges; it publishes no prices", "2026-11-16"))
PROVIDER = Provider(
    slug="leonardo",
    name="Leonardo",
    docs="https://docs.leonardo.ai",
    base_url="https://cloud.leonardo.ai/api/rest",
    key_env="LEONARDO_API_KEY",
    auth=bearer,
    error_message=error_message,
    failure_kind=failure_kind,
    models=(
        image_model("lucid-origin", "Leonardo Lucid Origin", 3616, LUCID_MODES, prompt(2000)),
        image_model("lucid-realism", "Leonardo Lucid Realism", 2496, LUCID_MODES, prompt(9999)),
        image_model(
            "phoenix-v1.0",
            "Leonardo Phoenix 1.0",
            2048,
            PHOENIX_MODES,
            prompt(2000),
            renamed("negative_prompt", to="parameters.negative_prompt", max_length=1000),
            passthrough("contrast", one_of=("LOW", "MEDIUM", "HIGH")),
        ),
        video_model("motion-2.0", "MOTION2", "Leonardo Motion 2.0"),
        video_model("motion-2.0-fast", "MOTION2FAST", "Leonardo Motion 2.0 Fast"),
    ),
)
