"""`penstock orgs` and `penstock credit`."""

from pathlib import Path

import pytest

from tests.command_line import done, penstock


def test_organizations_are_created_and_listed_with_their_balances(data_folder: Path) -> None:
    org = done("orgs", "create", "--name", "Second", "--data", data_folder).out.strip()
    later = done("orgs", "create", "--name", "Third", "--billing", "postpaid", "--data", data_folder).out.strip()
    assert done("credit", "add", "--org", org, "--usd", "2.50", "--data", data_folder).out == "available: $2.50\n"
    assert done("credit", "add", "--org", org, "--usd", "0.000000001", "--data", data_folder).out == (
        "available: $2.500000001\n"
    )
    rows = {row[0]: row[1:] for row in done("orgs", "list", "--data", data_folder).lines}
    assert rows[org][:3] == ["Second", "prepaid", "2.500000001"]
    assert rows[later][:2] == ["Third", "postpaid"]


def test_credit_goes_to_the_first_organization_by_default(data_folder: Path) -> None:
    added = done("credit", "add", "--usd", "1", "--data", data_folder, PENSTOCK_STARTING_CREDIT_USD="5").out
    assert added == "available: $6.00\n"
    ((_, *cells),) = done("orgs", "list", "--data", data_folder).lines
    assert cells == ["default", "prepaid", "6", "0", ""]


def test_the_limits_of_an_organization_are_set_and_removed(data_folder: Path) -> None:
    org = done("orgs", "create", "--name", "Second", "--data", data_folder).out.strip()

    def cells() -> list[str]:
        return {row[0]: row[1:] for row in done("orgs", "list", "--data", data_folder).lines}[org]

    done("orgs", "set", org, "--usd-per-month", "25", "--storage-bytes", "1000", "--data", data_folder)
    assert cells() == ["Second", "prepaid", "0", "0", "25"]
    done("orgs", "set", org, "--usd-per-month", "0", "--data", data_folder)
    assert cells() == ["Second", "prepaid", "0", "0", "0"]
    done("orgs", "set", org, "--name", "New", "--usd-per-month", "none", "--data", data_folder)
    assert cells() == ["New", "prepaid", "0", "0", ""]


@pytest.mark.parametrize("usd", ["0", "-1", "lots", "", "NaN", "Infinity"])
def test_only_positive_amounts_are_added(data_folder: Path, usd: str) -> None:
    ended = penstock("credit", "add", f"--usd={usd}", "--data", data_folder)
    assert ended.status == 1
    assert "--usd must be an amount above 0" in ended.err


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("credit", "add", "--usd", "1", "--org", "org_nonesuch"), "No such organization: org_nonesuch"),
        (("orgs", "create", "--name", "x", "--billing", "barter"), "billing"),
        (("orgs", "set", "org_nonesuch", "--usd-per-month", "1"), "No such organization: org_nonesuch"),
        (("orgs", "set", "org_nonesuch"), "nothing to change"),
        (("orgs", "set", "org_nonesuch", "--usd-per-month", "much"), "--usd-per-month must be an amount from 0"),
        (("orgs", "set", "org_nonesuch", "--usd-per-month=-1"), "--usd-per-month must be an amount from 0"),
        (("orgs", "set", "org_nonesuch", "--usd-per-month", "1000000.01"), "to 1000000, such as 25.00, or `none`"),
        (("orgs", "set", "org_nonesuch", "--storage-bytes", "1G"), "--storage-bytes must be a whole number"),
    ],
)
def test_bad_arguments_are_one_line_and_exit_status_1(data_folder: Path, words: tuple[str, ...], expected: str) -> None:
    ended = penstock(*words, "--data", data_folder)
    assert (ended.status, ended.out) == (1, "")
    assert expected in ended.err
    assert len(ended.err.splitlines()) == 1
