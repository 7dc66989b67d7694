"""Which calls ask for a result that is kept, and how replay modes apply; the rest is tested with each endpoint."""

from typing import Any

import pytest

from penstock.errors import InvalidRequest, RecordingNotFound
from penstock.generations.kept import asks_for_file, is_async, kept_replay
from penstock.recordings.replay_headers import ReplayOptions
from penstock.schema import Call, Caller
from penstock.values import OrgId


def call(**headers: str) -> Call:
    return Call(id="req_1", caller=Caller(OrgId("org_1"), "key_1"), endpoint="/", at_ms=0, started=0, headers=headers)


@pytest.mark.parametrize(
    ("headers", "fields", "expected"),
    [
        ({}, {}, False),
        ({"prefer": "wait=5"}, {"metadata": {}}, False),
        ({"prefer": "respond-async, wait=5"}, {}, True),
        ({}, {"webhook_url": "https://hooks.example.com"}, True),
        ({}, {"media_retention": None}, False),
        ({}, {"deliver_required": False}, True),
    ],
)
def test_a_file_is_asked_for(headers: dict[str, str], fields: dict[str, Any], expected: bool) -> None:
    assert asks_for_file(call(**headers), fields) is expected
    assert is_async(call(**headers)) is ("respond-async" in headers.get("prefer", ""))


@pytest.mark.parametrize(
    ("mode", "status"), [("mock", "mocked"), ("replay-or-mock", "mocked"), ("replay-or-live", "live")]
)
def test_what_is_kept_may_be_mocked(mode: str, status: str) -> None:
    assert kept_replay(ReplayOptions(mode), "Speech") == status


def test_what_is_kept_is_not_recorded() -> None:
    with pytest.raises(InvalidRequest, match="Speech that is kept is not recorded"):
        kept_replay(ReplayOptions("record"), "Speech")
    with pytest.raises(RecordingNotFound):
        kept_replay(ReplayOptions("replay-or-error"), "Speech")
