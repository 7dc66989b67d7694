"""Settings in force, with the place that each value comes from."""

from pathlib import Path

from penstock.settings import load
from penstock.settings_in_force import in_force


def test_each_value_says_where_it_comes_from(tmp_path: Path) -> None:
    (tmp_path / "penstock.toml").write_text('log_level = "debug"\nport = 1\nhost = "a.test"\n')
    environ = {"PENSTOCK_PORT": "2", "PENSTOCK_HOST": "b.test", "PENSTOCK_SECRET": "s" * 32}
    listed = {row["name"]: row for row in in_force(load({"data": tmp_path, "host": "c.test"}, environ))}
    origins = {name: listed[name]["origin"] for name in ("log_level", "port", "host", "worker", "secret")}
    assert origins == {
        "log_level": "file",
        "port": "environment",
        "host": "command line",
        "worker": "default",
        "secret": "environment",
    }
    assert (listed["port"]["value"], listed["host"]["value"], listed["data"]["value"]) == (2, "c.test", str(tmp_path))
    assert (listed["secret"]["value"], listed["secret"]["is_set"], listed["database"]["is_set"]) == (None, True, False)
