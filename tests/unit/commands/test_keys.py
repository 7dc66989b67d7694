"""`penstock keys`: create, list, revoke."""

import json
from pathlib import Path

import pytest

from tests.command_line import done, penstock


def test_a_key_is_created_listed_and_revoked(data_folder: Path) -> None:
    key = done("keys", "create", "--name", "for ann", "--data", data_folder).out.strip()
    assert key.startswith("pk_")
    (row,) = done("keys", "list", "--data", data_folder).lines
    assert row[1:4] == ["for ann", key[-4:], "active"]
    assert key not in done("keys", "list", "--data", data_folder).out
    assert done("keys", "revoke", row[0], "--data", data_folder).out == f"revoked {row[0]}\n"
    assert done("keys", "list", "--data", data_folder).lines[0][3] == "revoked"


def test_the_limits_that_are_set_are_listed(data_folder: Path) -> None:
    limits = ["--requests-per-minute", "60", "--concurrent-requests", "3", "--usd-per-day", "2.5", "--model", "flux-*"]
    limits += ["--usd-per-month", "40", "--expires-at", "2099-01-31", "--model", "gpt-image-2"]
    done("keys", "create", "--name", "free", "--data", data_folder)
    done("keys", "create", "--name", "limited", *limits, "--data", data_folder)
    limited, free = done("keys", "list", "--data", data_folder).lines
    expected = "60/minute, 3 at a time, $2.50/day, $40.00/month, only flux-* gpt-image-2, until 2099-01-31"
    assert (limited[5], free[5]) == (expected, "")
    limited, free = json.loads(done("keys", "list", "--json", "--data", data_folder).out)
    assert limited["limits"] == {
        "requests_per_minute": 60,
        "concurrent_requests": 3,
        "usd_per_day": "2.5",
        "usd_per_month": "40",
        "models": ["flux-*", "gpt-image-2"],
        "expires_at": "2099-01-31T00:00:00.000Z",
    }
    assert free["limits"] == {}


def test_more_keys_than_a_page_are_listed_newest_first(data_folder: Path) -> None:
    org = done("orgs", "create", "--name", "busy", "--data", data_folder).out.strip()
    for number in range(3):
        done("keys", "create", "--name", str(number), "--org", org, "--data", data_folder)
    assert [row[1] for row in done("keys", "list", "--org", org, "--data", data_folder).lines] == ["2", "1", "0"]
    assert done("keys", "list", "--data", data_folder).lines == [], "the others' keys are not listed"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("revoke", "key_nonesuch"), "No such key: key_nonesuch"),
        (("create", "--org", "org_nonesuch"), "org_nonesuch"),
        (("create", "--usd-per-day", "lots"), "usd_per_day"),
        (("create", "--requests-per-minute", "0"), "requests_per_minute"),
        (("create", "--concurrent-requests", "-1"), "concurrent_requests"),
        (("create", "--name", "x" * 201), "name"),
    ],
)
def test_bad_arguments_are_one_line_and_exit_status_1(data_folder: Path, words: tuple[str, ...], expected: str) -> None:
    ended = penstock("keys", *words, "--data", data_folder)
    assert (ended.status, ended.out) == (1, "")
    assert expected in ended.err
    assert len(ended.err.splitlines()) == 1
