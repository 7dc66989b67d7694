"""`penstock requests`: records as a list."""

from tests.unit.commands.conftest import Command


def test_requests_are_listed_newest_first(run: Command) -> None:
    for text in ("one", "two"):
        run("chat", text)
    rows = run("requests", "--limit", "2", "--status", "completed").lines
    assert [row[2:4] for row in rows] == [["atelier/echo", "completed"]] * 2
    assert rows[0][1] >= rows[1][1]
    assert run("requests", "--status", "cancelled").lines == []
