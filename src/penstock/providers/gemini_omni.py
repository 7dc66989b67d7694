"""Google Gemini Omni: videos as the output of an interaction, which may end with text instead."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from penstock.providers.convert import plain_base64, with_unit
from penstock.providers.openai_compatible import error_message, failure_kind
from penstock.providers.spec import (
    ALWAYS_SOUND,
    LITELLM,
    File,
    Model,
    Operation,
    Price,
    Provider,
    Reply,
    Result,
    Source,
    Status,
    complete_table,
    converted,
    duration,
    fixed,
    frame,
    header,
    passthrough,
    renamed,
)
from penstock.values import FIRST_FRAME, InputFile

# All other states are failures: incomplete, over budget, or waiting for an action of the user.
STATUS: dict[str, Status] = {
    "queued": "queued",
    "in_progress": "in_progress",
    "requires_continuation": "in_progress",
    "completed": "completed",
    "cancelled": "cancelled",
}
REFUSAL = re.compile(r"safety|policy|prohibited|blocked", re.IGNORECASE)
RESOLUTION_FIELD = "response_format.resolution"


def image_object(image: InputFile) -> dict[str, object]:
    return {"type": "image", "data": plain_base64(image), "mime_type": image.content_type}


def build_input(fields: dict[str, Any]) -> dict[str, Any]:
    """Put the prompt and the images into one list, and the task where it belongs."""
    images = fields.pop("input", {}).get("images", [])
    prompt = fields.pop("prompt")
    config = {"video_config": {"task": "text_to_video"}, **fields.get("generation_config", {})}
    return {**fields, "input": [{"type": "text", "text": prompt}, *images], "generation_config": config}


def images_and_task(images: Sequence[InputFile]) -> tuple[Any, str]:
    """The images, and what they are for: frames that the video begins and ends with, or references."""
    task = "image_to_video" if images[0].role == FIRST_FRAME else "reference_to_video"
    return [image_object(image) for image in images], task


def read_interaction(reply: Reply) -> Result:
    """Read an interaction. If it ends with a text and no video, the text says why it was refused."""
    job = reply.json
    steps = [step for step in job.get("steps") or () if step["type"] == "model_output"]
    parts = [part for step in steps for part in step.get("content") or ()]
    videos = tuple(video_file(part) for part in parts if part["type"] == "video")
    text = " ".join(part["text"] for part in parts if part["type"] == "text")
    errors = " ".join(error.get("message") or "" for error in job.get("errors") or ())
    status = STATUS.get(job["status"], "failed")
    return Result(
        status="failed" if status == "completed" and not videos else status,
        files=videos,
        ref={"id": job["id"]},
        upstream_id=job["id"],
        failure_kind="refused" if text or REFUSAL.search(errors) else "broken",
        message=errors or text or None,
    )


def video_file(part: Mapping[str, Any]) -> File:
    """A video in the response, or one that is downloaded by the name of its file."""
    content_type = part.get("mime_type")
    if part.get("data"):
        return File(data=part["data"], content_type=content_type)
    name = re.search(r"files/([a-z0-9]+)", part["uri"])
    url = f"/files/{name[1]}:download?alt=media" if name else part["uri"]
    return File(url=url, private=True, content_type=content_type)


# Each of these could ask for more or other outputs, or for what is billed beside them.
PRICED = frozenset(
    """generation_config response_format response_modalities response_mime_type tools environment input cached_content
    previous_interaction_id continuation_token""".split()
)


def video_model(name: str, *prices: Price, max_seconds: int) -> Model:
    op = Operation(
        task="video",
        send="POST /interactions",
        poll="GET /interactions/{id}",
        cancel="POST /interactions/{id}/cancel",
        read=read_interaction,
        adjust_body=build_input,
        priced_extras=PRICED,
        params=complete_table(
            "video",
            passthrough("prompt", required=True),
            duration(*range(3, max_seconds + 1), to="response_format.duration", convert=with_unit("s"), default=8),
            frame(
                "16:9 9:16",
                "720p",
                "360p",
                "1080p",
                "4k",
                to=("response_format.aspect_ratio", RESOLUTION_FIELD),
            ),
            converted(
                "input_reference",
                to=("input.images", "generation_config.video_config.task"),
                convert=images_and_task,
                max_items=14,
            ),
            ALWAYS_SOUND,
            renamed("seed", to="generation_config.seed"),
            fixed("response_format.type", "video"),
            fixed("response_format.delivery", "uri"),
            fixed("background", True),
            fixed("store", True),
        ),
    )
    return Model(id=name, upstream=name, op=op, prices=prices)


def prices_by_resolution(source: Source, usd: str, others: Mapping[str, str]) -> tuple[Price, ...]:
    """Dollars per second: of 720p, and of the other resolutions by name."""
    base = Price(unit="second", usd=usd, source=source)
    return (
        *(replace(base, usd=other, when={f"sent.{RESOLUTION_FIELD}": name}) for name, other in others.items()),
        base,
    )


RESELLERS = Source("resellers' lists", "2026-11", is_second_hand=True)
PRICES_1_2 = prices_by_resolution(RESELLERS, "0.0695", {"360p": "0.0232", "1080p": "0.1043", "4k": "0.2085"})
# 17.50 dollars per million tokens; a second takes 5792 tokens at 720p. Text and thinking tokens are not counted.
PRICES_1_1 = prices_by_resolution(LITELLM, "0.10136", {"360p": "0.03379", "1080p": "0.15204", "4k": "0.30408"})
PROVIDER = Provider(
    slug="gemini-omni",
    name="Google Gemini Omni",
    docs="https://ai.google.dev/gemini-api/docs/video",
    base_url="https://generativelanguage.googleapis.com/v1beta",
    key_env="GEMINI_API_KEY",
    auth=header("x-goog-api-key"),
    error_message=error_message,
    failure_kind=failure_kind,
    models=(
        video_model("gemini-omni-1.2-flash", *PRICES_1_2, max_seconds=15),
        video_model("gemini-omni-1.1-flash", *PRICES_1_1, max_seconds=10),
    ),
    retired={"gemini-omni-flash-preview": "gemini-omni-1.1-flash"},
)
