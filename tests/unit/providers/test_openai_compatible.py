"""The OpenAI-compatible API: reading responses and errors."""

import json
from typing import Any

import pytest

from penstock.providers.openai_compatible import (
    OPERATIONS,
    REFUSAL_CODES,
    STATUS,
    error_message,
    failure_kind,
    form_file,
    read_images,
    read_video,
)
from penstock.providers.spec import Reply, Upload
from penstock.values import InputFile


def reply(body: Any, status: int = 200) -> Reply:
    return Reply(status, {"x-request-id": "r-1"}, json.dumps(body).encode())


# -------------------------------------------------------------------------------------------------------------- reading


def test_images() -> None:
    data = [{"b64_json": "b25l", "revised_prompt": "a red fox"}, {"url": "https://lab.example/a.png"}, {"b64_json": ""}]
    usage = {"input_tokens": 3, "output_tokens": 5, "total_tokens": 8}
    result = read_images(reply({"data": data, "usage": usage}))
    assert [(file.data, file.url, file.revised_prompt) for file in result.files] == [
        ("b25l", None, "a red fox"), (None, "https://lab.example/a.png", None),
    ]  # fmt: skip
    assert (result.usage, result.upstream_id) == ({"input": 3, "output": 5}, "r-1")


@pytest.mark.parametrize("status", STATUS)
def test_videos_in_every_state(status: str) -> None:
    result = read_video(reply({"id": "v", "status": status, "progress": 40}))
    assert (result.status, result.ref, result.progress) == (STATUS[status], {"id": "v"}, 0.4)
    assert bool(result.files) == (result.status == "completed")


@pytest.mark.parametrize("code", [*REFUSAL_CODES, "out_of_memory"])
def test_videos_that_were_refused(code: str) -> None:
    result = read_video(reply({"id": "v", "status": "failed", "error": {"code": code, "message": "No."}}))
    assert (result.failure_kind, result.message) == ("broken" if code == "out_of_memory" else "refused", "No.")


def test_uploads_are_named_for_what_they_are() -> None:
    assert form_file(InputFile(b"x", "image/webp", 1, 1, "mask")) == Upload(b"x", "image/webp", "mask.webp")


def test_every_task_has_an_operation() -> None:
    assert all(op.task == task for task, op in OPERATIONS.items())


# --------------------------------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("body", "text", "kind"),
    [
        ({"error": {"message": "No.", "code": "moderation_blocked"}}, "No.", "refused"),
        ({"error": {"message": "No.", "code": "rate_limit_exceeded"}}, "No.", None),
        ({"error": {"message": "No.", "code": "insufficient_quota"}}, "No.", "broken"),
        ({"error": "No."}, "No.", None),
        ([{"error": {"message": "No.", "status": "NOT_FOUND"}}], "No.", None),
        ([{"error": {"message": "No.", "status": "FAILED_PRECONDITION"}}], "No.", "broken"),
        ({"error": {"message": "No.", "details": [{"reason": "API_KEY_INVALID"}]}}, "No.", "broken"),
        ({"error": {"message": None, "code": 7}}, None, None),
    ],
)
def test_errors(body: Any, text: str | None, kind: str | None) -> None:
    assert (error_message(reply(body, 400)), failure_kind(reply(body, 400))) == (text, kind)


@pytest.mark.parametrize(("hint", "seconds"), [("1500", 1.5), ("", None), ("soon", None), ("-5", None)])
def test_the_pause_before_the_next_poll(hint: str, seconds: float | None) -> None:
    reply = Reply(200, {"openai-poll-after-ms": hint}, b'{"id": "v", "status": "queued"}')
    assert read_video(reply).poll_after_seconds == seconds
