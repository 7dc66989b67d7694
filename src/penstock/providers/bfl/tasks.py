"""What BFL's images and videos share: tasks, which are polled at a URL on one of its clusters."""

from decimal import Decimal
from typing import Any

from penstock.providers.reported import number_at
from penstock.providers.spec import (
    File,
    Operation,
    Param,
    Reply,
    Result,
    Source,
    Status,
    Task,
    complete_table,
    passthrough,
    price_list,
)

# "Task not found" is left out on purpose: a cluster that does not know a new task yet says so too. It is polled again.
STATUS: dict[str, Status] = {
    "Pending": "queued",
    "Reasoning": "in_progress",
    "Generating": "in_progress",
    "Ready": "completed",
    "Request Moderated": "failed",
    "Content Moderated": "failed",
    "Error": "failed",
    "Failed": "failed",
}
USD_PER_CREDIT = Decimal("0.01")


def read_task(reply: Reply) -> Result:
    """Read a new task, which has a poll URL, or the state of a task. A failed task also comes with 422 or 503."""
    task = reply.json
    if "polling_url" in task:
        return Result(status="queued", ref={"polling_url": task["polling_url"]}, upstream_id=task["id"])
    state = task["status"]
    output = task.get("result") or {}
    credits = number_at(task, "cost")
    return Result(
        status=STATUS[state],
        files=(File(url=output["sample"], revised_prompt=output.get("prompt")),) if output.get("sample") else (),
        failure_kind="refused" if "Moderated" in state else "broken",
        message=f"{state}. {_details_text(task.get('details'))}".strip(),
        cost_usd=None if credits is None else f"{credits * USD_PER_CREDIT:f}",
        progress=task.get("progress"),
    )


def _details_text(details: Any) -> str:
    return ", ".join(details.get("Moderation Reasons", ())) if isinstance(details, dict) else details or ""


def error_message(reply: Reply) -> str | None:
    error = reply.json.get("detail") or reply.json["message"]
    return error if isinstance(error, str) else error[0]["msg"]


PROMPT = passthrough("prompt", required=True)
price = price_list(Source("docs.bfl.ai/quick_start/pricing", "2026-11-15"))


def task_operation(task: Task, *rows: Param, poll_seconds: float = 1.0, **fields: Any) -> Operation:
    """An operation whose jobs are tasks. The prompt is required, unless one of the rows is for the prompt."""
    if not any(row.name == "prompt" for row in rows):
        rows = (PROMPT, *rows)
    return Operation(
        task=task,
        send="POST /v1/{model}",
        poll="GET {polling_url}",
        read=read_task,
        read_http_errors=True,
        params=complete_table(task, *rows),
        poll_seconds=poll_seconds,
        **fields,
    )
