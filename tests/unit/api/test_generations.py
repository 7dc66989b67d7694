"""Query parameters and headers of generations are those of the interface."""

from penstock.api.generations import DRY_RUN, REPLAY, VIDEOS_QUERY


def test_a_dry_run_is_off_unless_asked_for() -> None:
    [row] = DRY_RUN
    assert (row.name, row.type, row.default) == ("dryRun", "boolean", False)


def test_replay_headers_are_those_of_the_interface() -> None:
    found = {row.name: row for row in REPLAY}
    assert set(found) == {f"X-Service-Replay{rest}" for rest in ("", "-Match", "-Fields", "-Recording", "-Latency")}
    assert set(found["X-Service-Replay"].one_of) == {
        "record", "replay-or-mock", "replay-or-error", "replay-or-live", "replay-or-record", "mock", "off",
    }  # fmt: skip
    assert found["X-Service-Replay-Match"].one_of == ("standard", "strict", "specific", "pinned")


def test_videos_are_listed_newest_first() -> None:
    assert {row.name: row.default for row in VIDEOS_QUERY} == {"limit": 20, "after": None, "order": "desc"}
