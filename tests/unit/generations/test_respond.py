"""The JSON of responses: every field of the interface, present and absent."""

from decimal import Decimal
from typing import Any

import msgspec
import pytest

from penstock.generation_jobs.rows import GenerationRow, Plan
from penstock.generations import respond
from penstock.schema import AttemptSummary, Component, GenerationResult, Output, PlannedCandidate, Quote, Request
from penstock.values import Nanos, OrgId, nanos

NAMES = {"lab": "The Lab"}
VIDEO = Output("med_1", "video/mp4", 1234, 1280, 720)
PLAN = Plan(
    (
        PlannedCandidate("lab", "video-1", "reel-2", hold=nanos("0.4")),
        PlannedCandidate("annex", "video-1", "r", hold=nanos("9")),
    )
)
REQUEST = Request(task="video", model="video-1", values={"prompt": "waves", "seconds": 4, "size": "16:9"})


def generation_result(*outputs: Output, **changes: Any) -> GenerationResult:
    usual = {"provider": "lab", "provider_name": "The Lab", "executed_model": "lab/reel-2", "cost": nanos("0.3")}
    return GenerationResult(**{**usual, "outputs": outputs or (VIDEO,), **changes})


def row(
    status: str = "queued",
    request: Request | None = REQUEST,
    result: GenerationResult | None = None,
    *,
    error_code: str | None = None,
    error_message: str | None = None,
) -> GenerationRow:
    is_completed = status == "completed"
    return GenerationRow(
        id="req_1",
        org_id=OrgId("org_1"),
        task="video",
        status=status,
        model="video-1",
        request=msgspec.json.encode(request) if request else None,
        plan=msgspec.json.encode(PLAN),
        result=msgspec.json.encode(result) if result else None,
        hold=nanos("0.4"),
        created_at_ms=1_700_000_000_999,
        deadline_ms=1_700_003_600_999,
        completed_at_ms=1_700_000_060_999 if is_completed else None,
        expires_at_ms=1_700_086_460_999 if is_completed else None,
        retention_seconds=86_400,
        webhook_url=None,
        idempotency_key=None,
        body_digest=None,
        error_code=error_code,
        error_message=error_message,
        progress=100 if is_completed else 0,
        cancel_requested=0,
        lease_token=1,
        lease_until_ms=0,
        crashes=0,
        payload_expires_at_ms=None,
    )


def video(row: GenerationRow, urls: list[str] | None = None, upstream_id: str | None = None) -> dict[str, Any]:
    return respond.video(row, NAMES, urls=urls, upstream_id=upstream_id)


# ------------------------------------------------------------------------------------------------------------- dry runs


def test_a_dry_run_lists_what_it_adds_up() -> None:
    lines = (
        Component("output", "second", 8, 8, "0.1", nanos("0.8")),
        Component("input", "image", 1, 1, "0.0000004", nanos("0.0000004")),
        Component("input", "token", 12.5, 12.5, "0.0000015", nanos("0.00001875")),
    )
    response = respond.estimate("video-1", "lab", Quote(lines, Nanos(sum(line.total for line in lines))), [], [])
    assert response.status == 200
    assert response.json == {
        "estimated": True,
        "model": "video-1",
        "provider": "lab",
        "total_cost_micros": 800_019,
        "currency": "USD",
        "components": [
            {"type": "output", "metric": "second", "quantity": 8, "billable_quantity": 8,
             "unit_price": Decimal("0.1"), "total_cost": 800_000},
            {"type": "input", "metric": "image", "quantity": 1, "billable_quantity": 1,
             "unit_price": Decimal("0.0000004"), "total_cost": 0},
            {"type": "input", "metric": "token", "quantity": 12.5, "billable_quantity": 12.5,
             "unit_price": Decimal("0.0000015"), "total_cost": 19},
        ],
        "candidates": [],
        "left_out": [],
    }  # fmt: skip
    assert response.json["total_cost_micros"] == sum(line["total_cost"] for line in response.json["components"])


def test_a_dry_run_of_something_free() -> None:
    response = respond.estimate("video-1", "lab", Quote(components=()), [], [])
    assert (response.json["total_cost_micros"], response.json["components"]) == (0, [])


# --------------------------------------------------------------------------------------------------------------- images


def test_an_image_result() -> None:
    made = generation_result(
        Output("med_1", "image/webp", 10, 640, 480), Output("med_2", "image/png", 10, 1, 1), upstream_id="up-1"
    )
    shown = respond.images(row(), made, [{"url": "https://a"}, {"url": "https://b"}])
    assert shown == {
        "id": "req_1",
        "created": 1_700_000_000,
        "size": "640x480",
        "output_format": "webp",
        "data": [{"url": "https://a"}, {"url": "https://b"}],
        "metadata": {
            "provider_name": "The Lab",
            "provider": "lab",
            "upstream_id": "up-1",
            "model": "video-1",
            "executed_model": "lab/reel-2",
            "cost": Decimal("0.3"),
            "cost_currency": "USD",
        },
    }


@pytest.mark.parametrize("kind", ["jpeg", "png", "webp", "gif", "avif"])
def test_the_format_is_that_of_the_file(kind: str) -> None:
    assert (
        respond.images(row(), generation_result(Output("med_1", f"image/{kind}", 1, 1, 1)), [])["output_format"] == kind
    )


def test_attempts_are_listed_when_there_were_several() -> None:
    tries = (AttemptSummary("annex", "r", "broken", "It broke."), AttemptSummary("lab", "reel-2", "made"))
    image = Output("med_1", "image/png", 1, 1, 1)
    assert respond.images(row(), generation_result(image, attempts=tries), [])["metadata"]["attempts"] == [
        {"provider": "annex", "model": "r", "outcome": "broken", "message": "It broke."},
        {"provider": "lab", "model": "reel-2", "outcome": "made"},
    ]
    assert "attempts" not in respond.images(row(), generation_result(image, attempts=tries[1:]), [])["metadata"]


@pytest.mark.parametrize(
    ("revised", "options", "shown"),
    [
        (None, {"url": "https://a"}, {"url": "https://a"}),
        (None, {"b64_json": "AA=="}, {"b64_json": "AA=="}),
        ("A red fox.", {"url": "https://a"}, {"url": "https://a", "revised_prompt": "A red fox."}),
    ],
)
def test_an_image_has_one_form_and_perhaps_a_revised_prompt(
    revised: str | None, options: Any, shown: dict[str, str]
) -> None:
    assert respond.image(Output("med_1", "image/png", 1, 1, 1, revised), **options) == shown


def test_the_status_of_an_asynchronous_image() -> None:
    assert respond.image_status(row()) == {
        "id": "req_1", "object": "image.generation", "created": 1_700_000_000, "status": "queued", "model": "video-1",
    }  # fmt: skip
    failed = respond.image_status(row("failed", error_code="UPSTREAM_ERROR", error_message="It broke."))
    assert failed["error"] == {"code": "UPSTREAM_ERROR", "message": "It broke."}


# --------------------------------------------------------------------------------------------------------------- videos

UNFINISHED = {
    "provider_name": "The Lab",
    "provider": "lab",
    "upstream_id": "",
    "model": "video-1",
    "executed_model": "lab/reel-2",
    "cost_currency": "USD",
    "cost_estimate": Decimal("0.4"),
}


def test_creation_returns_part_of_the_object() -> None:
    assert respond.video_created(row(), NAMES) == {
        "id": "req_1",
        "object": "video",
        "created_at": 1_700_000_000,
        "status": "queued",
        "model": "video-1",
        "seconds": "4",
        "size": "16:9",
        "metadata": UNFINISHED,
    }


@pytest.mark.parametrize("status", ["queued", "in_progress"])
def test_an_unfinished_video(status: str) -> None:
    shown = video(row(status), upstream_id="video_9")
    assert {name: shown[name] for name in ("completed_at", "expires_at", "output", "error")} == dict.fromkeys(
        ("completed_at", "expires_at", "output", "error")
    )
    assert (shown["status"], shown["prompt"]) == (status, "waves")
    assert shown["metadata"] == {**UNFINISHED, "upstream_id": "video_9"}
    assert "outputs" not in shown


def test_a_completed_video() -> None:
    result = generation_result(
        seconds=4.5, upstream_id="video_9", provider="annex", provider_name="Annex", executed_model="annex/r"
    )
    shown = video(row("completed", result=result), ["https://gateway.example/m/1"])
    assert shown == {
        "id": "req_1",
        "object": "video",
        "created_at": 1_700_000_000,
        "completed_at": 1_700_000_060,
        "expires_at": 1_700_086_460,
        "status": "completed",
        "model": "video-1",
        "progress": 100,
        "prompt": "waves",
        "seconds": "4.5",
        "size": "1280x720",
        "output": {"url": "https://gateway.example/m/1", "content_type": "video/mp4", "size_bytes": 1234},
        "error": None,
        "metadata": {
            "provider_name": "Annex",
            "provider": "annex",
            "upstream_id": "video_9",
            "model": "video-1",
            "executed_model": "annex/r",
            "cost": Decimal("0.3"),
            "cost_currency": "USD",
        },
    }


def test_a_failed_video_costs_nothing_and_says_why() -> None:
    shown = video(row("failed", error_code="CANCELLED", error_message="The generation was cancelled."))
    assert shown["error"] == {"code": "CANCELLED", "message": "The generation was cancelled."}
    assert not {"cost", "cost_estimate"} & shown["metadata"].keys()
    assert (shown["output"], shown["completed_at"]) == (None, None)


def test_several_videos_are_one_object() -> None:
    several = msgspec.structs.replace(REQUEST, values={**REQUEST.values, "n": 3})
    result = generation_result(VIDEO, msgspec.structs.replace(VIDEO, size_bytes=99))
    shown = video(row("completed", several, result), ["https://a", "https://b"])
    assert [output["url"] for output in shown["outputs"]] == ["https://a", "https://b"]
    assert shown["output"] == shown["outputs"][0]
    assert [output["size_bytes"] for output in shown["outputs"]] == [1234, 99]


def test_the_callers_metadata_is_kept_and_loses_a_clash() -> None:
    mine = msgspec.structs.replace(
        REQUEST, metadata={"order": "17", "provider": "me", "cost": "free", "cost_estimate": "0"}
    )
    before, after = video(row(request=mine)), video(row("completed", mine, generation_result()), ["https://a"])
    assert before["metadata"] == {**UNFINISHED, "order": "17"}  # also a name that is still to come
    assert (after["metadata"]["order"], after["metadata"]["provider"]) == ("17", "lab")
    assert after["metadata"]["cost"] == Decimal("0.3")


def test_a_video_whose_payload_was_purged_keeps_what_it_cost() -> None:
    result = msgspec.structs.replace(generation_result(seconds=4), outputs=())
    shown = video(row("completed", None, result))
    assert (shown["prompt"], shown["output"], shown["seconds"]) == ("", None, "4")
    assert shown["metadata"]["cost"] == Decimal("0.3")


def test_a_video_whose_files_expired_is_still_completed() -> None:
    shown = video(row("completed", result=generation_result()), None)
    assert (shown["status"], shown["output"]) == ("completed", None)


@pytest.mark.parametrize(
    ("values", "seconds", "size"),
    [
        ({"seconds": 8, "size": "1280x720"}, "8", "1280x720"),
        ({"seconds": 7.5, "aspect_ratio": "32:18"}, "7.5", "16:9"),
        ({"resolution": "720p"}, "", "16:9"),
        ({}, "", ""),
    ],
)
def test_seconds_and_size_are_strings(values: dict[str, Any], seconds: str, size: str) -> None:
    shown = video(row(request=Request(task="video", model="video-1", values=values)))
    assert (shown["seconds"], shown["size"]) == (seconds, size)


@pytest.mark.parametrize(
    ("status", "headers"),
    [
        ("queued", {"openai-poll-after-ms": "1000"}),
        ("in_progress", {"openai-poll-after-ms": "1000"}),
        ("completed", {}),
        ("failed", {}),
    ],
)
def test_poll_headers_of_each_status(status: str, headers: dict[str, str]) -> None:
    assert respond.poll_headers(row(status)) == headers


def test_money_is_a_json_number() -> None:
    encode = msgspec.json.Encoder(decimal_format="number").encode
    shown = video(row("completed", result=generation_result(cost=nanos("0.1"))), ["https://a"])
    assert b'"cost":0.1,' in encode(shown)
