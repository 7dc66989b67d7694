"""The calls that are made of what a caller asks for."""

from pathlib import Path
from typing import Any

from penstock.client import calls

PIXEL = "data:image/png;base64,AA=="


def body(call: calls.Call) -> dict[str, Any]:
    return dict(call.body or {})


def test_a_paid_call_has_a_key_of_its_own_unless_one_is_given() -> None:
    first, second = (calls.image("a fox", "m", {}) for _ in range(2))
    assert first.may_be_repeated
    assert first.headers["Idempotency-Key"] != second.headers["Idempotency-Key"]
    given = calls.image("a fox", "m", {"idempotency_key": "order-7"})
    assert (given.headers, body(given)) == ({"Idempotency-Key": "order-7"}, {"model": "m", "prompt": "a fox"})


def test_any_other_field_goes_along_and_absent_ones_do_not() -> None:
    call = calls.upscale(PIXEL, "m", None, {"labels": {"customer": "a"}, "extra": {"creativity": 0.5}})
    assert body(call) == {"model": "m", "image": [PIXEL], "labels": {"customer": "a"}, "creativity": 0.5}


def test_frames_and_references_of_a_video_have_roles() -> None:
    call = calls.video("x", "m", {"image": PIXEL, "last_frame": PIXEL, "references": [PIXEL], "seconds": 2})
    roles = [each["role"] for each in body(call)["input_reference"]]
    assert (roles, body(call)["seconds"]) == (["first_frame", "last_frame", "reference"], 2)
    assert "image" not in body(call)
    assert "input_reference" not in body(calls.video("x", "m", {}))


def test_a_video_is_edited_and_one_that_is_enlarged_needs_no_prompt(tmp_path: Path) -> None:
    (tmp_path / "fox.mp4").write_bytes(b"video")
    call = calls.video("", "m", {"video": tmp_path / "fox.mp4", "video_role": "extend"})
    reference = {"video_url": "data:video/mp4;base64,dmlkZW8=", "role": "extend"}
    assert body(call) == {"model": "m", "input_reference": reference}


def test_streamed_speech_and_dry_runs_have_no_key() -> None:
    assert not calls.streamed_speech("Hello", "m", {}).may_be_repeated
    asked = calls.dry_run(calls.for_price("speech", "Hello", "m", {}))
    assert (asked.path, asked.headers) == ("/compat/v1/audio/speech?dryRun=true", {})


def test_parameters_are_written_as_the_gateway_reads_them() -> None:
    path = calls.with_query("/v1/requests", {"summary": True, "user": None, "search": "a b"})
    assert path == "/v1/requests?summary=true&search=a+b"
    assert calls.with_query("/v1/balance", {}) == "/v1/balance"
