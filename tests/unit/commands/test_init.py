"""`penstock init`: a data folder for commands before the first start."""

from pathlib import Path

from tests.command_line import done


def test_keys_can_be_created_before_the_first_start(tmp_path: Path) -> None:
    data = tmp_path / "new"
    org = done("init", "--data", data).out.strip()
    assert done("init", "--data", data).out.strip() == org, "a second time it changes nothing"
    assert [row[0] for row in done("orgs", "list", "--data", data).lines] == [org]
    assert done("keys", "create", "--data", data).out.startswith("pk_")
