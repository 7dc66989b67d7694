"""`penstock audit`."""

from pathlib import Path

import apsw

from tests.command_line import done, penstock


def test_an_audit_finds_what_does_not_add_up(tmp_path: Path) -> None:
    done("credit", "add", "--usd", "1", "--data", tmp_path)
    assert done("audit", "--data", tmp_path).out == "audit clean\n"
    connection = apsw.Connection(str(tmp_path / "penstock.db"))
    connection.execute("UPDATE orgs SET available = available + 1")
    connection.close()
    ended = penstock("audit", "--data", tmp_path)
    assert ended.status == 1
    assert ended.out.endswith("breaches\n")
    assert "balance" in ended.err
