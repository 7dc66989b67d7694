"""Replay modes on chat: served as a mock, live and said so, or refused."""

import msgspec
import pytest

from penstock.chat.mock import chat_replay, with_replay_header
from penstock.errors import InvalidRequest, Problem, RecordingNotFound
from penstock.schema import Call, Caller, Response
from penstock.values import OrgId


def call(mode: str | None = None, key_mode: str | None = None, **headers: str) -> Call:
    sent = {f"x-service-replay-{name}": value for name, value in headers.items()}
    caller = Caller(OrgId("org_1"), "key_1", replay_mode=key_mode)
    return Call(
        id="req_1",
        caller=caller,
        endpoint="/",
        at_ms=0,
        started=0.0,
        headers={**sent, "x-service-replay": mode} if mode else sent,
    )


@pytest.mark.parametrize(
    ("mode", "expected"),
    [(None, None), ("off", None), ("mock", "mocked"), ("replay-or-mock", "mocked"), ("replay-or-live", "live")],
)
def test_modes_that_are_honoured(mode: str | None, expected: str | None) -> None:
    assert chat_replay(call(mode)) == expected
    assert chat_replay(call(None, mode)) == expected
    assert chat_replay(call("off", mode)) is None


@pytest.mark.parametrize(
    ("mode", "kind"),
    [
        ("record", InvalidRequest),
        ("replay-or-record", InvalidRequest),
        ("replay-or-error", RecordingNotFound),
        ("nonsense", InvalidRequest),
    ],
)
def test_modes_that_are_refused(mode: str, kind: type[Problem]) -> None:
    with pytest.raises(kind):
        chat_replay(call(mode))


@pytest.mark.parametrize(
    "header", [{"match": "exact"}, {"match": "specific"}, {"match": "pinned"}, {"latency": "fast"}]
)
def test_a_wrong_header_is_refused_also_without_a_mode_and_in_a_dry_run(header: dict[str, str]) -> None:
    for mode in (None, "mock", "off"):
        for is_dry_run in (False, True):
            asked = msgspec.structs.replace(call(mode, **header), query={"dryRun": "true"} if is_dry_run else {})
            with pytest.raises(InvalidRequest):
                chat_replay(asked)


def test_a_mock_is_instant() -> None:
    with pytest.raises(InvalidRequest):
        chat_replay(call("mock", latency="100,900"))


def test_the_header_says_how_a_response_was_made() -> None:
    plain = Response(body=b"{}", headers={"a": "b"})
    assert with_replay_header(plain, None) is plain
    assert with_replay_header(plain, "mocked").headers == {"a": "b", "x-service-replay-status": "mocked"}
