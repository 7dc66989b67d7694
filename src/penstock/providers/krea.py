"""Krea: its own Krea 2 images, as jobs."""

import re

from penstock.providers.spec import (
    COMFY,
    FailureKind,
    File,
    Model,
    Operation,
    Provider,
    Reply,
    Result,
    Status,
    bearer,
    complete_table,
    fixed,
    frame,
    passthrough,
    price_list,
)

STATUS: dict[str, Status] = {
    "backlogged": "queued",
    "queued": "queued",
    "scheduled": "queued",
    "processing": "in_progress",
    "sampling": "in_progress",
    "intermediate-complete": "in_progress",
    "completed": "completed",
    "failed": "failed",
    "cancelled": "cancelled",
}
# Refusals are not documented; they are recognised by their message.
REFUSAL = re.compile(r"moderat|nsfw|safety|content policy|prohibited", re.IGNORECASE)


def read_job(reply: Reply) -> Result:
    """Read a job. Why one failed is not described: a text beside the result, if there is one."""
    job = reply.json
    result = job.get("result") or {}
    message = job.get("error") or result.get("error")
    return Result(
        status=STATUS[job["status"]],
        ref={"id": job["job_id"]},
        upstream_id=job["job_id"],
        files=tuple(File(url=url) for url in result.get("urls") or ()),
        failure_kind="refused" if REFUSAL.search(str(message)) else "broken",
        message=str(message or "Krea did not say why the job failed."),
    )


def error_message(reply: Reply) -> str | None:
    return str(reply.json.get("error") or reply.json["message"])


def failure_kind(reply: Reply) -> FailureKind | None:
    return "refused" if reply.status in (400, 403, 422) and REFUSAL.search(error_message(reply) or "") else None


IMAGE = Operation(
    task="image",
    send="POST /generate/image/krea/{model}",
    poll="GET /jobs/{id}",
    read=read_job,
    model_field=None,
    params=complete_table(
        "image",
        passthrough("prompt", required=True),
        passthrough("seed"),
        frame("1:1 4:3 3:2 16:9 4:5 2:3 9:16"),
        fixed("resolution", "1K"),
        passthrough("creativity", one_of=("raw", "low", "medium", "high")),
    ),
    priced_extras=frozenset({"image_style_references", "moodboards", "styles"}),
    poll_seconds=2.0,
)

price = price_list(COMFY)


def image_model(name: str, title: str, usd: str) -> Model:
    return Model(
        id=f"krea/krea-2-{name}", upstream=f"krea-2/{name}", name=title, op=IMAGE, prices=(price(usd, "image"),)
    )


PROVIDER = Provider(
    slug="krea",
    name="Krea",
    docs="https://docs.krea.ai/developers",
    base_url="https://api.krea.ai",
    key_env="KREA_API_KEY",
    auth=bearer,
    error_message=error_message,
    failure_kind=failure_kind,
    models=(
        image_model("large", "Krea 2 Large", "0.06"),
        image_model("medium", "Krea 2 Medium", "0.03"),
        image_model("medium-turbo", "Krea 2 Medium Turbo", "0.015"),
    ),
)
