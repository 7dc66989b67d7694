"""Veo videos as long-running operations; the operation's last response contains the video."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from penstock.providers import openai_compatible
from penstock.providers.convert import first_and_last, plain_base64
from penstock.providers.spec import (
    FailureKind,
    File,
    Model,
    Operation,
    Price,
    Reply,
    Result,
    Source,
    Status,
    complete_table,
    converted,
    duration,
    fixed,
    frame,
    price_list,
    renamed,
)
from penstock.values import REFERENCE_IMAGE, InputFile

FAILURE_KINDS: dict[int, FailureKind] = {3: "rejected", 7: "broken", 8: "busy", 14: "busy"}  # codes of an operation
REFUSAL = re.compile(r"usage guidelines|responsible ai|safety|sensitive|violat", re.IGNORECASE)


def read_operation(reply: Reply) -> Result:
    """Read an operation. A refused prompt is reported as a success without videos."""
    operation = reply.json
    response = operation.get("response") or {}
    error = operation.get("error") or {}
    videos = tuple(video_file(video) for video in response.get("videos") or () if video.get("bytesBase64Encoded"))
    reasons = " ".join(response.get("raiMediaFilteredReasons") or ())
    is_filtered = not videos and (reasons or response.get("raiMediaFilteredCount"))
    message = error.get("message") or reasons
    is_refused = is_filtered or REFUSAL.search(message)
    final_status: Status = "failed" if error or is_filtered else "completed"
    return Result(
        status=final_status if operation.get("done") else "in_progress",
        ref={"id": operation["name"]},
        upstream_id=str(operation["name"]).rpartition("/")[2],
        files=videos,
        failure_kind="refused" if is_refused else FAILURE_KINDS.get(error.get("code", 0), "broken"),
        message=message or None,
    )


def video_file(video: Mapping[str, Any]) -> File:
    return File(data=video["bytesBase64Encoded"], content_type=video.get("mimeType", "video/mp4"))


def failure_kind(reply: Reply) -> FailureKind | None:
    """As for Google's other APIs, but a model that is not found was retired or is not offered to this project."""
    return "broken" if reply.status == 404 else openai_compatible.failure_kind(reply)


def build_body(fields: dict[str, Any]) -> dict[str, Any]:
    """Put the fields where Vertex expects them; fields without a row are parameters."""
    instance = fields.pop("instance")
    parameters = fields.pop("parameters")
    return {"instances": [instance], "parameters": {**fields, **parameters}}


def image_object(image: InputFile) -> dict[str, object]:
    return {"bytesBase64Encoded": plain_base64(image), "mimeType": image.content_type}


def frames_or_references(images: Sequence[InputFile]) -> tuple[Any, Any, Any]:
    """Values for three fields: the first frame, the last frame, and references."""
    if images[0].role == REFERENCE_IMAGE:
        return None, None, [{"image": image_object(image), "referenceType": "asset"} for image in images]
    return (*first_and_last(image_object)(images), None)


def operation_name(ref: Mapping[str, str]) -> dict[str, str]:
    return {"operationName": ref["id"]}


VIDEO = Operation(
    task="video",
    send="POST /publishers/google/models/{model}:predictLongRunning",
    model_field=None,
    poll="POST /publishers/google/models/{model}:fetchPredictOperation",
    poll_body=operation_name,
    poll_seconds=10.0,
    read=read_operation,
    adjust_body=build_body,
    # Videos are returned in the response: callers may not have them stored elsewhere.
    priced_extras=frozenset("sampleCount storageUri pubsubTopic instance instances parameters video".split()),
    params=complete_table(
        "video",
        renamed("prompt", to="instance.prompt", required=True),
        renamed("negative_prompt", to="parameters.negativePrompt"),
        duration(4, 6, 8, to="parameters.durationSeconds", default=8),
        frame("16:9 9:16", "720p", "1080p", to=("parameters.aspectRatio", "parameters.resolution")),
        converted(
            "input_reference",
            to=("instance.image", "instance.lastFrame", "instance.referenceImages"),
            convert=frames_or_references,
            max_items=3,
        ),
        renamed("generate_audio", to="parameters.generateAudio", one_of=(True, False)),
        renamed("seed", to="parameters.seed", low=0, high=2**32 - 1),
        fixed("parameters.sampleCount", 1),
    ),
)


def video_model(name: str, upstream: str, prices: tuple[Price, ...], shutdown_date: str = "") -> Model:
    """A model of low priority: other providers have it too, and Google may retire it here."""
    return Model(id=name, upstream=upstream, op=VIDEO, prices=prices, priority=40, shutdown_date=shutdown_date)


price = price_list(Source("price tables of litellm 1.108.4 and docs.comfy.org", "2026-11-15", is_second_hand=True))
IN_1080P = {"parameters.resolution": "1080p"}
SILENT = {"parameters.generateAudio": False}


def prices(usd: str, usd_1080p: str, silent_usd: str, silent_usd_1080p: str) -> tuple[Price, ...]:
    """Dollars per second with and without sound."""
    return (
        price(silent_usd_1080p, **SILENT, **IN_1080P),
        price(silent_usd, **SILENT),
        price(usd_1080p, **IN_1080P),
        price(usd),
    )


# They make 4k as well, but such a response is too large for the gateway. Google names Gemini Omni as the successor.
MODELS = (
    video_model("veo-3.1", "veo-3.1-generate-001", prices("0.40", "0.40", "0.20", "0.20"), "2026-11-17"),
    video_model("veo-3.1-fast", "veo-3.1-fast-generate-001", prices("0.10", "0.12", "0.08", "0.10"), "2026-11-17"),
    video_model("veo-3.1-lite", "veo-3.1-lite-generate-001", prices("0.05", "0.08", "0.03", "0.05")),
)
