"""Bria: FIBO images and edits, and an upscaler, from models that were trained on licensed data only."""

import re

from penstock.providers.convert import each_image, first_image, plain_base64
from penstock.providers.spec import (
    COMFY,
    FailureKind,
    File,
    Model,
    Operation,
    Param,
    Price,
    Provider,
    Reply,
    Result,
    Source,
    Status,
    Task,
    complete_table,
    converted,
    frame,
    header,
    passthrough,
    price_list,
    renamed,
)

# UNKNOWN is left out on purpose: a request that Bria does not find may have been made. It is polled until its time is
# up.
STATUS: dict[str, Status] = {"IN_PROGRESS": "in_progress", "COMPLETED": "completed", "ERROR": "failed"}
REFUSAL = re.compile(r"moderat|nsfw|safety|inappropriate|policy", re.IGNORECASE)


def read_request(reply: Reply) -> Result:
    """Read a request; a new one has no status."""
    request = reply.json
    result = request.get("result") or {}
    error = request.get("error") or {}
    url = result.get("image_url")
    return Result(
        status=STATUS[request.get("status", "IN_PROGRESS")],
        ref={"id": request["request_id"]},
        upstream_id=request["request_id"],
        files=(File(url=url, revised_prompt=result.get("refined_prompt")),) if url else (),
        failure_kind=error_kind(error),
        message=error.get("message"),
    )


def error_kind(error: dict[str, object]) -> FailureKind:
    """Bria answers 422 to content that it refuses, and to other mistakes: the message decides."""
    if REFUSAL.search(f"{error.get('message')} {error.get('details')}"):
        return "refused"
    return "rejected" if error.get("code") in (400, 422) else "broken"


def error_message(reply: Reply) -> str | None:
    return str(reply.json["error"]["message"])


def failure_kind(reply: Reply) -> FailureKind | None:
    return "refused" if reply.status == 422 and error_kind(reply.json["error"]) == "refused" else None


def model(name: str, path: str, task: Task, rows: tuple[Param, ...], price: Price, title: str, mask: str = "") -> Model:
    """A model is a path of its own."""
    op = Operation(
        task=task,
        send=f"POST /v2/image/{path}",
        poll="GET /v2/status/{id}",
        read=read_request,
        model_field=None,
        params=complete_table(task, *rows),
        poll_seconds=2.0,
        callback_field="webhook_url",
        settings={"mask": mask} if mask else {},
    )
    return Model(id=name, upstream=path, op=op, prices=(price,), name=title)


NEGATIVE_PROMPT = passthrough("negative_prompt")
GENERATE = (
    passthrough("prompt", required=True),
    NEGATIVE_PROMPT,
    frame("1:1 2:3 3:2 3:4 4:3 4:5 5:4 9:16 16:9"),
)
EDIT = (
    renamed("prompt", to="instruction", required=True),
    NEGATIVE_PROMPT,
    passthrough("seed"),
    converted("images", to="images", convert=each_image(plain_base64), required=True, max_items=1),
    converted("mask", to="mask", convert=plain_base64),
)
UPSCALE = (
    converted("images", to="image", convert=first_image(plain_base64), required=True, max_items=1),
    converted("scale_factor", to="desired_increase", convert=int, one_of=(2, 4), default=2),
)

price = price_list(Source("a copy of bria.ai/pricing", "2026-09-20"))
comfy_price = price_list(COMFY)
PROVIDER = Provider(
    slug="bria",
    name="Bria",
    docs="https://docs.bria.ai",
    base_url="https://engine.prod.bria-api.com",
    key_env="BRIA_API_TOKEN",
    auth=header("api_token"),
    error_message=error_message,
    failure_kind=failure_kind,
    models=(
        model("bria/fibo", "generate", "image", GENERATE, price("0.03", "image"), "Bria FIBO"),
        model("bria/fibo-lite", "generate/lite", "image", GENERATE, price("0.02", "image"), "Bria FIBO Lite"),
        model("bria/fibo-edit", "edit", "edit", EDIT, comfy_price("0.04", "image"), "Bria FIBO Edit", mask="white"),
        model(
            "bria/increase-resolution",
            "edit/increase_resolution",
            "upscale",
            UPSCALE,
            comfy_price("0.02", "image"),
            "Bria Increase Resolution",
        ),
    ),
)
