"""Replay headers: what they may say, what counts as the same call, and when answers are due."""

from typing import Any

import pytest

from penstock.errors import InvalidRequest
from penstock.recordings.recordings import ReplayOptions, due, fingerprint, replay_options, signals
from penstock.schema import Call, Caller, Request, UploadedFile
from penstock.values import REPLAY_MODES

CALLER = Caller("org_1", "key_1")


def call(headers: dict[str, str] | None = None, caller: Caller = CALLER) -> Call:
    named = {f"x-service-replay{name}": value for name, value in (headers or {}).items()}
    return Call(id="req_1", caller=caller, endpoint="/x", at_ms=0, started=0.0, headers=named)


def like(values: dict[str, Any], *, kind: str = "image", model: str = "m", pictures: Any = (), **extras: Any) -> bytes:
    request = Request(task=kind, model=model, values=values, extras=extras)
    return fingerprint(kind, request, model, pictures, b"").standard


@pytest.mark.parametrize("mode", REPLAY_MODES)
def test_d10_every_mode_is_understood(mode: str) -> None:
    assert replay_options(call({"": mode})) == ReplayOptions(mode)


def test_d10_nobody_asked() -> None:
    assert replay_options(call()) is None


def test_d10_a_key_may_have_a_mode_and_the_header_wins() -> None:
    caller = Caller("org_1", "key_1", replay_mode="mock")
    assert replay_options(call(caller=caller)) == ReplayOptions("mock")
    assert replay_options(call({"": "off"}, caller)) == ReplayOptions("off")


@pytest.mark.parametrize(
    ("headers", "param", "word"),
    [
        ({"": "maybe"}, "X-Service-Replay", "replay-or-mock"),
        ({"": "record", "-match": "loose"}, "X-Service-Replay-Match", "strict"),
        ({"": "record", "-match": "specific"}, "X-Service-Replay-Fields", "commas"),
        ({"": "record", "-match": "specific", "-fields": " , "}, "X-Service-Replay-Fields", "required"),
        ({"": "record", "-match": "pinned"}, "X-Service-Replay-Recording", "required"),
        ({"": "record", "-latency": "fast"}, "X-Service-Replay-Latency", "instant"),
        ({"": "record", "-latency": "900,100"}, "X-Service-Replay-Latency", "100,900"),
        ({"": "record", "-latency": "-1,5"}, "X-Service-Replay-Latency", "milliseconds"),
    ],
)
def test_d10_bad_or_missing_companions_say_what_is_missing(headers: dict[str, str], param: str, word: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        replay_options(call(headers))
    assert caught.value.param == param
    assert word in caught.value.message


# ------------------------------------------------------------------------------------------------------------ likeness


@pytest.mark.parametrize(
    "values",
    [
        {"prompt": "other words"},
        {"prompt": "a", "user": "u1"},
        {"prompt": "a", "session_id": "s"},
        {"prompt": "a", "n": 1, "size": "1024x1024", "response_format": "url", "output_format": "png"},
    ],
)
def test_d10_standard_is_blind_to_words_names_and_defaults(values: dict[str, Any]) -> None:
    assert like(values) == like({"prompt": "a"})


@pytest.mark.parametrize(
    "other",
    [
        like({"prompt": "a", "n": 2}),
        like({"prompt": "a", "size": "512x512"}),
        like({"prompt": "a"}, model="other"),
        like({"prompt": "a"}, kind="edit"),
        like({"prompt": "a"}, steps=20),
        like({"prompt": "a"}, pictures=[("image", UploadedFile(b"png"))]),
        like({"prompt": "a"}, pictures=[("image", "https://a.example/x.png")]),
    ],
)
def test_d10_standard_sees_everything_else(other: bytes) -> None:
    assert other != like({"prompt": "a"})


def test_pictures_are_known_by_their_bytes_and_addresses_by_themselves() -> None:
    file = like({"prompt": "a"}, pictures=[("image", UploadedFile(b"png", "one.png"))])
    assert file == like({"prompt": "a"}, pictures=[("image", UploadedFile(b"png", "two.png"))])
    assert file != like({"prompt": "a"}, pictures=[("image", UploadedFile(b"jpg", "one.png"))])
    assert file != like({"prompt": "a"}, pictures=[("mask", UploadedFile(b"png", "one.png"))])


# ------------------------------------------------------------------------------------------------------------- the rest


@pytest.mark.parametrize(
    ("latency", "expected"),
    [("instant", (1000, 1000)), ("real", (1700, 1700)), ("100,400", (1100, 1400)), ("0,0", (1000, 1000))],
)
def test_d10_latency(latency: str, expected: tuple[int, int]) -> None:
    assert due(latency, 700, 1000) == expected


def test_signals() -> None:
    assert signals("live", None) == {"x-service-replay-status": "live"}
    assert signals("replayed", "rec_1") == {
        "x-service-replay-status": "replayed",
        "x-service-replay-recording": "rec_1",
    }
