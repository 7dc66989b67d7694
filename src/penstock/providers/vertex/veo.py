"""Veo's films as operations, which are asked after by name and bring their films along."""

import re
from typing import Any

from penstock.providers.convert import first_and_last, plain_base64
from penstock.providers.compatible import error_kind
from penstock.providers.spec import (
    File,
    FailureKind,
    Model,
    Operation,
    Price,
    Reply,
    Result,
    Status,
    converted,
    fixed,
    duration,
    price_list,
    renamed,
    frame,
    complete_table,
)
from penstock.values import InputImage

CODES: dict[int, FailureKind] = {3: "rejected", 7: "broken", 8: "busy", 14: "busy"}  # of an operation that ended badly
UNSAFE = re.compile(r"usage guidelines|responsible ai|safety|sensitive|violat", re.IGNORECASE)


def read(reply: Reply) -> Result:
    """An operation tells nothing but its name until it is done."""
    job = reply.json
    answer, error = job.get("response") or {}, job.get("error") or {}
    films = tuple(film(one) for one in answer.get("videos") or () if one.get("bytesBase64Encoded"))
    reasons = " ".join(answer.get("raiMediaFilteredReasons") or ())
    filtered = not films and (reasons or answer.get("raiMediaFilteredCount"))
    words = error.get("message") or reasons
    over: Status = "failed" if error or filtered else "completed"
    return Result(
        status=over if job.get("done") else "in_progress",
        ref={"id": job["name"]},
        upstream_id=job["name"].rpartition("/")[2],
        files=films,
        failure_kind="refused" if filtered or UNSAFE.search(words) else CODES.get(error.get("code", 0), "broken"),
        message=words or None,
    )


def kind(reply: Reply) -> FailureKind | None:
    """A model that is not found was retired, or is not for this project; neither is a caller's mistake."""
    return "broken" if reply.status == 404 else error_kind(reply)


def film(told: dict[str, Any]) -> File:
    return File(data=told["bytesBase64Encoded"], content_type=told.get("mimeType", "video/mp4"))


def order(fields: dict[str, Any]) -> dict[str, Any]:
    """What no row speaks of is a parameter."""
    instance, parameters = fields.pop("instance"), fields.pop("parameters")
    return {"instances": [instance], "parameters": {**fields, **parameters}}


def picture(reference: InputImage) -> dict[str, str]:
    return {"bytesBase64Encoded": plain_base64(reference), "mimeType": reference.content_type}


def model(name: str, upstream: str, *prices: Price) -> Model:
    """Others have it too, and are asked first: they will outlast it."""
    op = Operation(
        task="video",
        send="POST /publishers/google/models/{model}:predictLongRunning",
        model_field=None,
        poll="POST /publishers/google/models/{model}:fetchPredictOperation",
        poll_body=lambda ref: {"operationName": ref["id"]},
        poll_seconds=10.0,
        read=read,
        adjust_body=order,
        # Films come along with the answer: nobody may have them put elsewhere.
        priced_extras=frozenset("sampleCount storageUri pubsubTopic instance instances parameters video".split()),
        params=complete_table(
            "video",
            renamed("prompt", "instance.prompt", required=True),
            renamed("negative_prompt", "parameters.negativePrompt"),
            duration(4, 6, 8, to="parameters.durationSeconds", default=8),
            frame("16:9 9:16", "720p", "1080p", to=("parameters.aspectRatio", "parameters.resolution")),
            converted(
                "input_reference", ("instance.image", "instance.lastFrame"), first_and_last(picture), max_items=2
            ),
            renamed("generate_audio", "parameters.generateAudio", one_of=(True, False)),
            renamed("seed", "parameters.seed", low=0, high=2**32 - 1),
            fixed("parameters.sampleCount", 1),
        ),
    )
    return Model(id=name, upstream=upstream, op=op, prices=prices, priority=40)


usd = price_list("litellm 1.108.4's price table, looked up 2026-11-15; not checked with Google")
LARGE = {"parameters.resolution": "1080p"}

# There is 4k as well, in answers longer than any that are read here. From 2026-11-17 on Google may retire them.
MODELS = (
    model("veo-3.1", "veo-3.1-generate-001", usd("0.40")),
    model("veo-3.1-fast", "veo-3.1-fast-generate-001", usd("0.12", **LARGE), usd("0.10")),
    model("veo-3.1-lite", "veo-3.1-lite-generate-001", usd("0.08", **LARGE), usd("0.05")),
)
