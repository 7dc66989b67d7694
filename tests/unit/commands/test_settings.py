"""`penstock settings`."""

import json
from pathlib import Path

from penstock.settings import description
from tests.command_line import done


def test_every_setting_is_listed_with_its_value_and_origin(tmp_path: Path) -> None:
    (tmp_path / "penstock.toml").write_text('drain_seconds = 3\negress_allow_hosts = ["a.test", "b.test"]\n')
    variables = {"PENSTOCK_PORT": "8181", "PENSTOCK_DATABASE": "postgresql://u:hidden@db.test/x"}
    shown = {row[0]: row[1:] for row in done("settings", "--data", tmp_path, **variables).lines}
    assert list(shown) == [name for name, *_ in description.rows()]
    assert shown["port"] == ["8181", "environment", "PENSTOCK_PORT", "8080", "Port to listen on."]
    assert shown["data"][:2] == [str(tmp_path), "command line"]
    assert shown["drain_seconds"][:2] == ["3.0", "file"]
    assert shown["egress_allow_hosts"][:2] == ["a.test, b.test", "file"]
    assert shown["worker"][:2] == ["true", "default"]
    assert shown["database"][:2] == ["(secret)", "environment"]
    assert "hidden" not in str(shown)
    (port,) = [row for row in json.loads(done("settings", "--json", **variables).out) if row["name"] == "port"]
    assert (port["value"], port["origin"]) == (8181, "environment")
