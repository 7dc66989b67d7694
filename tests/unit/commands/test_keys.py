"""`penstock keys`: create, list, revoke."""

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
