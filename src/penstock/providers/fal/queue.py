"""fal's queue: submitting, polling, fetching and reading jobs, the same for all models."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec

from penstock.providers.spec import (
    LITELLM,
    FailureKind,
    File,
    Model,
    Operation,
    Param,
    Price,
    Reply,
    Result,
    Source,
    Status,
    Task,
    complete_table,
    passthrough,
    price_list,
)

STATUS: dict[str, Status] = {"IN_QUEUE": "queued", "IN_PROGRESS": "in_progress", "COMPLETED": "completed"}
NOT_RUN = ("request_timeout", "startup_timeout", "runner_", "internal_error")  # fal could not run the model
BROKEN = {"internal_server_error", "generation_timeout", "downstream_service_error", "downstream_service_unavailable"}
PROMPT = passthrough("prompt", required=True)
PRICED = frozenset(
    """upscale_factor upscale_mode target_resolution enable_web_search rendering_speed multi_prompt elements
    voice_ids video_url video_urls reference_video_urls""".split()
)
# How many characters fal's catalogue allows in the prompts of endpoints that begin so: 2026-06-11.
PROMPT_LENGTHS = {
    "fal-ai/kling-video/": 2500,
    "fal-ai/minimax/hailuo-2.3/": 2000,
    "fal-ai/recraft/v3/": 1000,
    "fal-ai/recraft/v4.1/": 10_000,
    "fal-ai/veo3.1": 20_000,
    "fal-ai/vidu/q3/": 2000,
    "xai/grok-imagine-video/": 4096,
}
FILES = ("images", "videos", "image", "video")  # the fields of results that have what was made


def read_job(reply: Reply, fields: Sequence[str] = FILES) -> Result:
    """Read the state of a job, which has a request id, or its result, whose form depends on the model."""
    response = reply.json
    if "request_id" not in response or not {"status", "response_url"} & response.keys():
        return msgspec.structs.replace(read_result(response, fields), usage=read_billed(reply))
    error_type = str(response.get("error_type"))
    status = "failed" if error_type.startswith(NOT_RUN) else STATUS[response.get("status", "IN_QUEUE")]
    return Result(
        status="cancelled" if error_type == "client_cancelled" else status,
        ref={name: response[name] for name in ("status_url", "response_url", "cancel_url") if name in response},
        message=response.get("error"),
        upstream_id=response["request_id"],
    )


def read_billed(reply: Reply) -> dict[str, float]:
    """How many units of the endpoint's price fal says it charges for, if it says so."""
    try:
        return {"billed": float(reply.headers.get("x-fal-billable-units", ""))}
    except ValueError:
        return {}


def read_result(response: Mapping[str, Any], fields: Sequence[str] = FILES) -> Result:
    """Read the outputs. An image that the safety checker refused is black, and flagged."""
    found = [output for name in fields for output in _as_list(response.get(name))]
    outputs = [{"url": output} if isinstance(output, str) else output for output in found]
    flags = response.get("has_nsfw_concepts") or response.get("nsfw_content_detected") or []
    allowed = [
        output
        for number, output in enumerate(outputs)
        if output and output.get("url") and not any(flags[number : number + 1])
    ]
    if any(flags) and not allowed:
        return Result(status="failed", failure_kind="refused", message="The safety checker refused the output.")
    prompt = response.get("revised_prompt")
    files = tuple(
        File(url=output["url"], content_type=output.get("content_type"), revised_prompt=prompt) for output in allowed
    )
    return Result(files=files)


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def error_message(reply: Reply) -> str | None:
    detail = reply.json["detail"]
    return detail if isinstance(detail, str) else detail[0]["msg"]


def failure_kind(reply: Reply) -> FailureKind | None:
    types = {error["type"] for error in reply.json["detail"]}
    return "refused" if "content_policy_violation" in types else "broken" if types & BROKEN else None


def model(name: str, path: str, task: Task, rows: tuple[Param, ...], prices: tuple[Price, ...], **fields: Any) -> Model:
    """One endpoint of fal; several endpoints may share a public model id."""
    op = Operation(
        task=task,
        params=complete_table(task, *(_with_length(path, row) for row in rows)),
        send="POST /{model}",
        poll="GET {status_url}",
        fetch="GET {response_url}",
        cancel="PUT {cancel_url}",
        read=fields.pop("read", read_job),
        priced_extras=PRICED,
        callback_field="?fal_webhook",
        **fields,
    )
    return Model(id=name, upstream=path, op=op, prices=prices, priority=10)


def _with_length(path: str, row: Param) -> Param:
    """A row for a prompt with the length that the endpoint allows, if the row has none."""
    longest = next((length for prefix, length in PROMPT_LENGTHS.items() if path.startswith(prefix)), None)
    is_limited = row.name == "prompt" or (row.name == "negative_prompt" and "kling" in path)
    return replace(row, max_length=longest) if is_limited and longest and row.max_length is None else row


# No price was read at fal itself.
stored_price = price_list(Source("a copy of the model's llms.txt on fal.ai", "2026-11-15"))
litellm_price = price_list(LITELLM)
other_price = price_list(Source("tables in other projects", "2026-11-15", is_second_hand=True))
