"""`penstock requests`: records as a list."""

import json

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
