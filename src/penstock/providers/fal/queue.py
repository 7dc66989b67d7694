"""fal's queue: whatever the model, a job is submitted, asked after, fetched and read alike."""

from typing import Any

from penstock.providers.spec import (
    File,
    FailureKind,
    Model,
    Operation,
    Param,
    Price,
    Reply,
    Result,
    Status,
    Task,
    passthrough,
    price_list,
    complete_table,
)

STATUS: dict[str, Status] = {"IN_QUEUE": "queued", "IN_PROGRESS": "in_progress", "COMPLETED": "completed"}
GAVE_UP = ("request_timeout", "startup_timeout", "runner_", "internal_error")  # it could not run the model at all
BROKEN = {"internal_server_error", "generation_timeout", "downstream_service_error", "downstream_service_unavailable"}


def read(reply: Reply) -> Result:
    """The queue speaks of a request and its status; a result is in the model's own words."""
    answer = reply.json
    if "request_id" not in answer:
        return read_result(answer)
    told = str(answer.get("error_type"))
    status = "failed" if told.startswith(GAVE_UP) else STATUS[answer.get("status", "IN_QUEUE")]
    return Result(
        status="cancelled" if told == "client_cancelled" else status,
        ref={name: answer[name] for name in ("status_url", "response_url", "cancel_url") if name in answer},
        message=answer.get("error"),
        upstream_id=answer["request_id"],
    )


def read_result(answer: Any) -> Result:
    """What its checker objects to comes back as a black picture."""
    made = [*(answer.get("images") or answer.get("videos") or ()), answer.get("image"), answer.get("video")]
    flagged = answer.get("has_nsfw_concepts") or []
    fine = [one for number, one in enumerate(made) if one and one.get("url") and not any(flagged[number : number + 1])]
    if any(flagged) and not fine:
        return Result(status="failed", failure_kind="refused", message="The safety checker objected to what was made.")
    words = answer.get("revised_prompt")
    return Result(files=tuple(File(one["url"], None, one.get("content_type"), words) for one in fine))


def error(reply: Reply) -> str | None:
    detail = reply.json["detail"]
    return detail if isinstance(detail, str) else detail[0]["msg"]


def kind(reply: Reply) -> FailureKind | None:
    types = {one["type"] for one in reply.json["detail"]}
    return "refused" if "content_policy_violation" in types else "broken" if types & BROKEN else None


PRICED = frozenset(
    """upscale_factor upscale_mode target_resolution enable_web_search rendering_speed multi_prompt elements
    voice_ids""".split()
)
PROMPT = passthrough("prompt", required=True)


def model(name: str, path: str, task: Task, rows: tuple[Param, ...], prices: tuple[Price, ...], **more: Any) -> Model:
    """One endpoint; several may go by one public name."""
    op = Operation(
        task=task,
        params=complete_table(task, *rows),
        send="POST /{model}",
        poll="GET {status_url}",
        fetch="GET {response_url}",
        cancel="PUT {cancel_url}",
        read=read,
        priced_extras=PRICED,
        callback_field="?fal_webhook",
        **more,
    )
    return Model(id=name, upstream=path, op=op, prices=prices, priority=10)


# How each price is known: none was read at fal itself.
usd = price_list("a stored copy of the model's llms.txt on fal.ai, looked up 2026-11-15")
listed = price_list("litellm 1.108.4's price table, looked up 2026-11-15; not checked with fal")
hearsay = price_list("tables in other projects, looked up 2026-11-15; not checked with fal")
