"""What Runway's videos and images share: tasks, prompts, input images, and prices in credits of a cent."""

from penstock.providers.reported import number_at
from penstock.providers.spec import (
    FailureKind,
    File,
    Operation,
    Reply,
    Result,
    Source,
    Status,
    passthrough,
    price_list,
    renamed,
)

STATUS: dict[str, Status] = {
    "PENDING": "queued",
    "THROTTLED": "queued",
    "RUNNING": "in_progress",
    "SUCCEEDED": "completed",
    "FAILED": "failed",
    "CANCELLED": "cancelled",
}


def read_task(reply: Reply) -> Result:
    """Read a task. A new one has no status; a finished one has its cost, which may be less than the estimate."""
    task = reply.json
    credits = number_at(task, "cost", "credits")
    return Result(
        status=STATUS[task.get("status", "PENDING")],
        ref={"id": task["id"]},
        upstream_id=task["id"],
        files=tuple(File(url=url) for url in task.get("output") or ()),
        failure_kind=code_kind(task.get("failureCode") or ""),
        message=task.get("failure"),
        cost_usd=None if credits is None else str(credits / 100),
        progress=task.get("progress"),
    )


def code_kind(code: str) -> FailureKind:
    """Codes with the part `SAFETY` are about content: `SAFETY.INPUT.TEXT`, `INPUT_PREPROCESSING.SAFETY.TEXT`."""
    if "SAFETY" in code.split("."):
        return "refused"
    return "rejected" if code.startswith(("INPUT_PREPROCESSING", "ASSET")) else "broken"


def error_message(reply: Reply) -> str | None:
    return str(reply.json["error"])


def size_labels(sizes: str) -> dict[str, str]:
    """Runway's labels for sizes: `1280:720` for 1280x720."""
    return {size: size.replace("x", ":") for size in sizes.split()}


MAX_INPUT_BYTES = 3_700_000  # in base64, the limit of a data URI is 5 MB
PROMPT = renamed("prompt", to="promptText", required=True, max_length=1000, counts_utf16=True)
SEED = passthrough("seed", low=0, high=2**32 - 1)
TASK = Operation(
    task="video",
    send="POST /text_to_video",
    poll="GET /tasks/{id}",
    cancel="DELETE /tasks/{id}",
    read=read_task,
    params=(),
    poll_seconds=6.0,
    priced_extras=frozenset({"outputFormat", "proresProfile"}),
)
price = price_list(
    Source("docs.dev.runwayml.com/guides/pricing, as others quote it", "2026-11-15", is_second_hand=True)
)
