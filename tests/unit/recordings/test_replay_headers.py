"""Replay headers: their values, when responses are due, and what responses say."""

import pytest

from penstock.errors import InvalidRequest
from penstock.recordings.replay_headers import ReplayOptions, replay_options, replay_times, response_headers
from penstock.values import REPLAY_MODES


def options(headers: dict[str, str], key_mode: str | None = None) -> ReplayOptions | None:
    """The options of a call with these headers, named without what all their names begin with."""
    return replay_options({f"x-service-replay{name}": value for name, value in headers.items()}, key_mode)


@pytest.mark.parametrize("mode", REPLAY_MODES)
def test_every_mode_is_accepted(mode: str) -> None:
    assert options({"": mode}) == ReplayOptions(mode)


def test_without_headers_there_are_no_options() -> None:
    assert options({}) is None


def test_a_key_may_have_a_mode_and_the_header_wins() -> None:
    assert options({}, "mock") == ReplayOptions("mock")
    assert options({"": "off"}, "mock") == ReplayOptions("off")


@pytest.mark.parametrize(
    ("headers", "param", "word"),
    [
        ({"": "maybe"}, "X-Service-Replay", "replay-or-mock"),
        ({"": "record", "-match": "loose"}, "X-Service-Replay-Match", "strict"),
        ({"": "record", "-match": "specific"}, "X-Service-Replay-Fields", "commas"),
        ({"": "record", "-match": "specific", "-fields": " , "}, "X-Service-Replay-Fields", "required"),
        ({"": "record", "-fields": ",".join(f"f{n}" for n in range(65))}, "X-Service-Replay-Fields", "64"),
        ({"": "record", "-match": "pinned"}, "X-Service-Replay-Recording", "required"),
        ({"": "record", "-latency": "fast"}, "X-Service-Replay-Latency", "instant"),
        ({"": "record", "-latency": "900,100"}, "X-Service-Replay-Latency", "100,900"),
        ({"": "record", "-latency": "-1,5"}, "X-Service-Replay-Latency", "milliseconds"),
        ({"": "record", "-latency": "0,60001"}, "X-Service-Replay-Latency", "60000"),
        ({"": "record", "-latency": "0,9999999"}, "X-Service-Replay-Latency", "60000"),
        ({"": "record", "-latency": "١,٢"}, "X-Service-Replay-Latency", "60000"),
    ],
)
def test_a_bad_or_missing_header_is_named(headers: dict[str, str], param: str, word: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        options(headers)
    assert caught.value.param == param
    assert word in caught.value.message


@pytest.mark.parametrize(
    ("latency", "expected"),
    [
        ("instant", (1000, 1000)),
        ("real", (1700, 1700)),
        ("100,400", (1100, 1400)),
        ("100, 400", (1100, 1400)),
        ("0,0", (1000, 1000)),
    ],
)
def test_latency(latency: str, expected: tuple[int, int]) -> None:
    assert replay_options({"x-service-replay-latency": latency}, "mock")
    assert replay_times(latency, 700, 1000) == expected


def test_a_recorded_duration_is_waited_for_within_limits() -> None:
    assert replay_times("real", 10**17, 0) == (60_000, 60_000)
    assert replay_times("real", 200_000, 0, is_video=True) == (200_000, 200_000)
    assert replay_times("real", 10**17, 0, is_video=True) == (600_000, 600_000)


def test_response_headers() -> None:
    assert response_headers("live", None) == {"x-service-replay-status": "live"}
    assert response_headers("replayed", "rec_1") == {
        "x-service-replay-status": "replayed",
        "x-service-replay-recording": "rec_1",
    }
