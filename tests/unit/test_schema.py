"""Requests, calls and callers: what they derive from their fields."""

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from penstock.schema import Call, Caller, Input, Request
from penstock.values import OrgId

# ------------------------------------------------------------------------------------------------------------- requests


@pytest.mark.parametrize(
    ("task", "values", "size"),
    [
        ("image", {}, "1024x1024"),
        ("edit", {}, "1024x1024"),
        ("upscale", {}, None),  # that of the image
        ("video", {}, None),
        ("upscale", {"size": "2:1"}, "2:1"),
        ("video", {"aspect_ratio": "1:1"}, "1:1"),
        ("video", {"resolution": "720p"}, "16:9"),
        ("image", {"resolution": "720p"}, "1:1"),
        ("video", {"size": "640x360", "aspect_ratio": "1:1", "resolution": "1080p"}, "640x360"),
        ("video", {"size": "9:16", "aspect_ratio": "1:1"}, "9:16"),
    ],
)
def test_the_frame_of_a_request(task: str, values: dict[str, Any], size: str | None) -> None:
    frame = Request(task=task, model="m", values=values).frame
    assert (frame.size if frame else None) == size


@pytest.mark.parametrize(
    ("task", "values", "size"),
    [
        ("edit", {"size": "auto"}, "300x201"),
        ("edit", {"size": "auto", "resolution": "720p"}, "100:67"),
        ("edit", {"size": "auto", "aspect_ratio": "1:1"}, "1:1"),
        ("edit", {}, "1024x1024"),
        ("edit", {"size": "64x64"}, "64x64"),
        ("upscale", {"size": "auto"}, None),
    ],
)
def test_the_frame_of_an_edit_may_be_that_of_its_first_image(
    task: str, values: dict[str, Any], size: str | None
) -> None:
    sides = {"mask": (9, 9), "image": (300, 201)}
    inputs = tuple(Input(role, "med_1", "image/png", *sides[role], 1) for role in ("mask", "image"))
    frame = Request(task=task, model="m", values=values, inputs=inputs).frame
    assert (frame.size if frame else None) == size


def test_the_size_auto_without_an_image_is_the_default() -> None:
    frame = Request(task="edit", model="m", values={"size": "auto"}).frame  # before its images were loaded
    assert frame is not None
    assert frame.size == "1024x1024"


def test_a_request_can_be_stored_and_read_again() -> None:
    request = Request(
        task="video",
        model="m",
        values={"prompt": "🦊", "seconds": 7.5, "n": 2},
        extras={"seed": 42, "nested": [{"a": None}]},
        inputs=(Input("reference", "med_1", "image/png", 4, 3, 99),),
        metadata={"order": "17"},
    )
    assert msgspec.json.decode(msgspec.json.encode(request), type=Request) == request
    assert (request.n, request.seconds) == (2, 7.5)


# ---------------------------------------------------------------------------------------------------------------- calls

CALL = Call(id="req_1", caller=Caller(OrgId("org_1"), "key_1"), endpoint="", at_ms=0, started=0.0)


@pytest.mark.parametrize(
    ("query", "dry"),
    [({}, False), ({"dryRun": "true"}, True), ({"dryRun": "TRUE"}, True), ({"dryRun": "false"}, False)],
)
def test_the_query_can_ask_for_a_dry_run(query: dict[str, str], dry: bool) -> None:
    assert msgspec.structs.replace(CALL, query=query).dry_run is dry


@pytest.mark.parametrize("limit", ["requests_per_minute", "concurrent_requests", "nanos_per_day"])
def test_a_key_has_no_limits_unless_one_is_set(limit: str) -> None:
    assert not Caller(OrgId("org_1"), "key_1").is_limited
    limits: dict[str, Any] = {limit: 0}
    assert replace(Caller(OrgId("org_1"), "key_1"), **limits).is_limited
