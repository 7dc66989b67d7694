"""Novita: Kling 3 videos as tasks, and open chat models over an OpenAI-compatible endpoint.

Novita shut down its other image and video models in 2026, the last of them on 2026-09-30.
"""

import re
from typing import Any

from penstock.providers.chat_models import DEVELOPER_AS_SYSTEM, MAX_TOKENS, chat_models, chat_operation
from penstock.providers.convert import data_uri, first_and_last
from penstock.providers.reported import fraction_at
from penstock.providers.spec import (
    LITELLM,
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
    bearer,
    complete_table,
    converted,
    duration,
    frame,
    passthrough,
    price_list,
    renamed,
)

STATUS: dict[str, Status] = {
    "TASK_STATUS_QUEUED": "queued",
    "TASK_STATUS_PROCESSING": "in_progress",
    "TASK_STATUS_SUCCEED": "completed",
    "TASK_STATUS_FAILED": "failed",
}
# From novita.ai/docs/api-reference/basic-error-code: reasons whose HTTP status is misleading.
FAILURE_KINDS: dict[str, FailureKind] = {
    "ILLEGAL_PROMPT": "refused",
    "ILLEGAL_IMAGE_CONTENT": "refused",
    "BILLING_BALANCE_NOT_ENOUGH": "broken",
    "MISSING_API_KEY": "broken",
}
# A task that was refused for its content has no code, only a text.
REFUSAL = re.compile(r"illegal|risk control|sensitive|moderat|nsfw|polic|violat", re.IGNORECASE)


def read_task(reply: Reply) -> Result:
    """Read a new task, of which there is only the id, or the state of one."""
    task = reply.json.get("task") or {"task_id": reply.json["task_id"], "status": "TASK_STATUS_QUEUED"}
    videos = reply.json.get("videos") or ()
    reason = str(task.get("reason") or "")
    return Result(
        status=STATUS[task["status"]],
        ref={"id": task["task_id"]},
        upstream_id=task["task_id"],
        files=tuple(File(url=video["video_url"], content_type="video/mp4") for video in videos),
        failure_kind="refused" if REFUSAL.search(reason) else "broken",
        message=reason or None,
        progress=fraction_at(task, "progress_percent") or 0.0,
    )


def error_message(reply: Reply) -> str | None:
    return str(reply.json["message"])


def failure_kind(reply: Reply) -> FailureKind | None:
    return FAILURE_KINDS.get(reply.json["reason"])


def silent_by_default(fields: dict[str, Any]) -> dict[str, Any]:
    return {"sound": False, **fields}


def video_models(name: str, tier: str, *prices: Price) -> list[Model]:
    """A model with an endpoint for text and one for images, whose videos have the aspect ratio of the first image."""
    text = operation(frame("16:9 9:16 1:1"))
    image = operation(frame(), FRAMES)
    return [
        Model(id=name, upstream=f"kling-v3.0-{tier}-{kind}", op=op, prices=prices, priority=20)
        for kind, op in (("t2v", text), ("i2v", image))
    ]


def operation(*rows: Param) -> Operation:
    return Operation(
        task="video",
        send="POST /v3/async/{model}",
        poll="GET /v3/async/task-result?task_id={id}",
        read=read_task,
        model_field=None,
        adjust_body=silent_by_default,
        params=complete_table("video", *KLING, *rows),
        priced_extras=frozenset({"sound", "multi_prompt"}),
    )


KLING = (
    passthrough("prompt", required=True, max_length=2500),
    passthrough("negative_prompt", max_length=2500),
    duration(*range(3, 16), default=5),
    renamed("generate_audio", to="sound", one_of=(True, False)),
    passthrough("cfg_scale", low=0, high=1),
)
FRAMES = converted(
    "input_reference",
    to=("image", "end_image"),
    convert=first_and_last(data_uri),
    required=True,
    max_items=2,
    max_bytes=10_000_000,
)

CHAT = chat_operation(DEVELOPER_AS_SYSTEM, MAX_TOKENS, send="POST /openai/v1/chat/completions")
# Dollars for a million tokens of input, output and cached input; `chat_models` describes the columns.
CHAT_MODELS = """
    z-ai/glm-5.3=zai-org/glm-5.3      1.4  4.4  0.26
    z-ai/glm-5.2=zai-org/glm-5.2      1.4  4.4  0.26
    moonshotai/kimi-k3                3    15   0.3
    moonshotai/kimi-k2.7-code         0.95 4    0.19
    moonshotai/kimi-k2.6              0.8  3.4  0.16
    minimax/minimax-m3                0.3  1.2  0.06
    deepseek/deepseek-v4-pro-0813     1.32 3.96 0.132
    deepseek/deepseek-v4-flash        0.14 0.28 0.028
    qwen/qwen3.8-max                  2    6    0.25
    qwen/qwen3.7-max                  1.25 3.75 0.25
    qwen/qwen3.6-27b                  0.6  3.6
    tencent/hy3                       0.14 0.58 0.035
    google/gemma-4-31b-it             0.14 0.4
"""

price = price_list(Source("novita.ai/pricing, as others recorded it", "2026-10-07", is_second_hand=True))
PROVIDER = Provider(
    slug="novita",
    name="Novita",
    docs="https://novita.ai/docs/api-reference",
    base_url="https://api.novita.ai",
    key_env="NOVITA_API_KEY",
    auth=bearer,
    error_message=error_message,
    failure_kind=failure_kind,
    models=(
        *video_models("kling-3", "std", price("0.126", sound=True), price("0.084")),
        *video_models("kling-3-pro", "pro", price("0.168", sound=True), price("0.112")),
        *chat_models("novita", LITELLM, CHAT_MODELS, CHAT, priority=10),
    ),
)
