"""`penstock labels`: declare them, and set budgets for their values."""

import json
from pathlib import Path
from typing import Any

from tests.command_line import Ended, done, penstock


def test_labels_are_declared_listed_and_removed(data_folder: Path) -> None:
    def labels(*words: str) -> Ended:
        return done("labels", *words, "--data", data_folder)

    labels("declare", "customer", "--budget")
    labels("declare", "stage", "--value", "test", "--value", "live")
    rows: list[dict[str, Any]] = json.loads(labels("list", "--json").out)
    assert [(row["name"], row["budget"], row["values"]) for row in rows] == [
        ("customer", True, None),
        ("stage", False, ["test", "live"]),
    ]
    labels("budget", "customer", "acme", "50")
    assert labels("budgets").lines[0][:2] == ["customer", "acme"]
    labels("budget", "customer", "acme", "none")
    assert labels("budgets").lines == []
    for words, message in (
        (("budget", "stage", "test", "5"), "not a label that may have budgets"),
        (("declare", "Customer"), "a lowercase letter"),
        (("remove", "nothing"), "not a declared label"),
    ):
        ended = penstock("labels", *words, "--data", data_folder)
        assert (ended.status, message in ended.err) == (1, True), ended
    key = done("keys", "create", "--label", "customer=acme", "--data", data_folder)
    assert key.out.startswith("pk_")
    assert "customer=acme" in done("keys", "list", "--data", data_folder).out
    for name in ("customer", "stage"):
        labels("remove", name)
    assert labels("list").lines == []
