"""`penstock audit-log`: list, export and verify, also a row that was deleted by hand."""

import json
from contextlib import closing
from pathlib import Path

import apsw

from tests.command_line import done, penstock


def test_a_row_that_was_deleted_by_hand_is_noticed(data_folder: Path) -> None:
    key_id = json.loads(done("keys", "create", "--json", "--data", data_folder).out)["id"]
    done("keys", "revoke", key_id, "--data", data_folder)
    rows = done("audit-log", "list", "--target", key_id, "--data", data_folder).lines
    assert [row[3] for row in rows] == ["key.revoked", "key.created"]
    assert rows[0][2].startswith("command:")
    exported = [json.loads(line) for line in done("audit-log", "export", "--data", data_folder).out.splitlines()]
    assert exported[-1]["action"] == "key.revoked"
    verified = json.loads(done("audit-log", "verify", "--json", "--data", data_folder).out)
    assert verified == {"events": len(exported), "head": exported[-1]["hash"], "problem": None}
    done("audit-log", "verify", "--head", exported[0]["hash"], "--data", data_folder)
    assert "no event has" in penstock("audit-log", "verify", "--head", "f" * 64, "--data", data_folder).out
    with closing(apsw.Connection(str(data_folder / "penstock.db"))) as connection:
        connection.execute("DROP TRIGGER audit_events_remain")
        connection.execute("DELETE FROM audit_events WHERE id = ?", (exported[-2]["id"],))
    noticed = penstock("audit-log", "verify", "--data", data_folder)
    assert (noticed.status, f"{exported[-2]['id']} is missing" in noticed.out) == (1, True)
