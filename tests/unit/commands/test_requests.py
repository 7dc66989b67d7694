"""`penstock requests`: records as a list."""

import json
from datetime import UTC, datetime, timedelta

from penstock.commands.requests import moment
from tests.unit.commands.conftest import Command


def test_requests_are_listed_newest_first(run: Command) -> None:
    for text in ("one", "two"):
        run("chat", text)
    rows = run("requests", "--limit", "2", "--status", "completed").lines
    assert [row[2:4] for row in rows] == [["atelier/echo", "completed"]] * 2
    assert rows[0][1] >= rows[1][1]
    assert run("requests", "--status", "cancelled").lines == []


def test_spend_is_summed_up_by_model_and_in_all(run: Command) -> None:
    for text in ("one", "two"):
        run("chat", text)
    *groups, total = run("spend", "--by", "kind").lines
    usage = json.loads(run("spend", "--by", "kind", "--json").out)
    assert {row[0]: int(row[1]) for row in groups} == {group["group"]: group["requests"] for group in usage["groups"]}
    assert total[:2] == ["in all", str(usage["total"]["requests"])]
    assert usage["total"]["requests"] >= 2


def test_an_age_is_a_time_and_failed_is_a_status(run: Command) -> None:
    body = ["--model", "atelier/clip", "--size", "320x180", "--seconds", "1"]
    run("video", "a hill [fail]", *body)
    run("image", "a fox", "--size", "64x64", "-o", "/dev/null")
    failed = run("requests", "--status", "failed", "--created-after", "1h").lines
    assert {row[3] for row in failed} == {"upstream_failure"}
    assert {row[2] for row in run("requests", "--model", "atelier/sketch").lines} == {"atelier/sketch"}
    assert run("spend", "--created-after", "7d").lines[-1][1] != "0"
    assert run("requests", "--created-after", "7x").status == 1


def test_an_age_is_counted_back_from_now() -> None:
    found = datetime.fromisoformat(moment("2d") or "")
    assert datetime.now(UTC) - timedelta(days=2, minutes=5) < found < datetime.now(UTC) - timedelta(days=1)
    assert moment("2026-01-01") == "2026-01-01"
    assert moment(None) is None
