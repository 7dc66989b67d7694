"""Google's Gemini Omni: films as the outcome of an interaction, which may end with words instead."""

import re
from dataclasses import replace
from typing import Any

from penstock.providers.convert import each_image, plain_base64, with_unit
from penstock.providers.openai_compatible import failure_kind, error_message
from penstock.providers.spec import (
    File,
    Model,
    Operation,
    Price,
    Provider,
    Reply,
    Result,
    Status,
    converted,
    fixed,
    header,
    duration,
    passthrough,
    renamed,
    frame,
    complete_table,
)
from penstock.values import InputImage

STATUS: dict[str, Status] = {
    "queued": "queued",
    "in_progress": "in_progress",
    "requires_continuation": "in_progress",
    "completed": "completed",
    "cancelled": "cancelled",
}
FORM = "response_format"
PRICED = frozenset("generation_config response_format tools input previous_interaction_id".split())


def picture(reference: InputImage) -> dict[str, str]:
    return {"type": "image", "data": plain_base64(reference), "mime_type": reference.content_type}


def order(fields: dict[str, Any]) -> dict[str, Any]:
    """One picture is where the film begins; several are what it is about."""
    pictures, prompt = fields.pop("pictures", []), fields.pop("prompt")
    task = "text_to_video" if not pictures else "image_to_video" if len(pictures) == 1 else "reference_to_video"
    config = {**fields.get("generation_config", {}), "video_config": {"task": task}}
    return {**fields, "input": [{"type": "text", "text": prompt}, *pictures], "generation_config": config}


def read(reply: Reply) -> Result:
    """What it says instead of making a film is why it would not."""
    job = reply.json
    steps = [step for step in job.get("steps") or () if step["type"] == "model_output"]
    parts = [part for step in steps for part in step.get("content") or ()]
    films = tuple(film(part) for part in parts if part["type"] == "video")
    said = " ".join(part["text"] for part in parts if part["type"] == "text")
    told = " ".join(one.get("message") or "" for one in job.get("errors") or ())
    status = STATUS.get(job["status"], "failed")  # incomplete, over budget, or in need of somebody to act
    refused = said or re.search(r"safety|policy|prohibited|blocked", told, re.IGNORECASE)
    return Result(
        status="failed" if status == "completed" and not films else status,
        files=films,
        ref={"id": job["id"]},
        upstream_id=job["id"],
        failure_kind="refused" if refused else "broken",
        message=told or said or None,
    )


def film(part: dict[str, Any]) -> File:
    """A file is fetched by its name, whatever else its address says; a small film may come along at once."""
    kind = part.get("mime_type")
    if part.get("data"):
        return File(data=part["data"], content_type=kind)
    name = re.search(r"files/([a-z0-9]+)", part["uri"])
    return File(url=f"/files/{name[1]}:download?alt=media" if name else part["uri"], private=True, content_type=kind)


def model(name: str, longest: int, pictures: int, *prices: Price) -> Model:
    op = Operation(
        task="video",
        send="POST /interactions",
        poll="GET /interactions/{id}",
        cancel="POST /interactions/{id}/cancel",
        read=read,
        adjust_body=order,
        priced_extras=PRICED,
        params=complete_table(
            "video",
            passthrough("prompt", required=True),
            duration(*range(3, longest + 1), to=f"{FORM}.duration", convert=with_unit("s"), default=8),
            frame("16:9 9:16", "720p", "360p", "1080p", "4k", to=(f"{FORM}.aspect_ratio", f"{FORM}.resolution")),
            converted("input_reference", "pictures", each_image(picture), max_items=pictures),
            renamed("seed", "generation_config.seed"),
            *(fixed(*told) for told in ((f"{FORM}.type", "video"), (f"{FORM}.delivery", "uri"))),
            *(fixed(*told) for told in (("background", True), ("store", True))),
        ),
    )
    return Model(id=name, upstream=name, op=op, prices=prices)


def by_second(note: str, usd: str, others: dict[str, str]) -> tuple[Price, ...]:
    row = Price(unit="second", usd=usd, note=note)
    return (*(replace(row, usd=one, when={f"sent.{FORM}.resolution": size}) for size, one in others.items()), row)


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
        model(
            "gemini-omni-1.2-flash",
            15,
            6,
            *by_second("resellers' lists, 2026-11", "0.0695", {"360p": "0.0232", "1080p": "0.1043", "4k": "0.2085"}),
        ),
        # 17.50 dollars per million tokens, of which a second takes 5792 at 720p. Words and thoughts are not counted.
        model(
            "gemini-omni-1.1-flash",
            10,
            3,
            *by_second(
                "public price table, 2026-11", "0.10136", {"360p": "0.03379", "1080p": "0.15204", "4k": "0.30408"}
            ),
        ),
    ),
    retired={"gemini-omni-flash-preview": "gemini-omni-1.1-flash"},
)
