"""`penstock accounts`: add, list, rotate and delete, without a credential in sight."""

from pathlib import Path

from tests.command_line import done, penstock


def test_accounts_are_added_listed_rotated_and_deleted(data_folder: Path) -> None:
    file = data_folder / "credential.txt"
    file.write_text("fal-key-of-the-second-account\n")
    added = done("accounts", "add", "fal", "--name", "eu", "--weight", "3", "--from-file", file, "--data", data_folder)
    account = added.out.split()[1]
    [row] = done("accounts", "list", "--data", data_folder).lines
    assert row == [account, "fal", "eu", "on", "3", "0", "ount", "0"]
    again = penstock("accounts", "add", "fal", "--from-file", file, "--data", data_folder)
    assert (again.status, "has this credential already" in again.err) == (1, True)
    file.write_text("fal-key-that-replaces-the-other")
    assert done("accounts", "rotate", account, "--from-file", file, "--data", data_folder).out == f"rotated {account}\n"
    assert done("accounts", "delete", account, "--data", data_folder).out == f"deleted {account}\n"
    assert done("accounts", "list", "--data", data_folder).lines == []
    assert penstock("accounts", "delete", account, "--data", data_folder).status == 1
    assert "of-the-second" not in added.out + added.err + again.out + again.err
