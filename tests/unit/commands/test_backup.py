"""`penstock backup`."""

from pathlib import Path

from tests.command_line import done, penstock


def test_a_backup_is_a_usable_data_folder(data_folder: Path, tmp_path: Path) -> None:
    data, copy = data_folder, tmp_path / "kept" / "copy"
    made = done("keys", "create", "--data", data, "--name", "first").lines[0][0]
    assert "Media files are not included" in done("backup", copy, "--data", data).out
    assert (copy.stat().st_mode & 0o777, (copy / "secret.key").stat().st_mode & 0o777) == (0o700, 0o600)
    assert done("keys", "list", "--data", copy).lines == done("keys", "list", "--data", data).lines
    assert made not in (copy / "penstock.db").read_bytes().decode("latin-1")
    assert done("audit", "--data", copy).out.splitlines()[-1] == "audit clean"


def test_an_existing_folder_is_not_overwritten(data_folder: Path, tmp_path: Path) -> None:
    refused = penstock("backup", tmp_path, "--data", data_folder)
    assert refused.status == 1
    assert "exists" in refused.err
