"""Settings in force, with the place that each value comes from."""

from pathlib import Path

from penstock.settings.description import in_force, misspelt_variables
from penstock.settings.loading import load


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


def test_a_misspelt_variable_is_found_with_what_was_meant() -> None:
    of_settings = {"PENSTOCK_PORT": "1", "PENSTOCK_SECRET_FILE": "x", "PENSTOCK_KEY": "k", "PENSTOCK_URL": "u"}
    of_others = {"PENSTOCK_SERVICE_HOST": "10.0.0.1", "PENSTOCK_PORT_8080_TCP": "tcp://10.0.0.1", "PROT": "1"}
    assert misspelt_variables({**of_settings, **of_others}) == {}
    assert misspelt_variables({"PENSTOCK_PROT": "1", "PENSTOCK_LOGLEVEL": "info", "PENSTOCK_SECRETS_FILE": "x"}) == {
        "PENSTOCK_LOGLEVEL": "PENSTOCK_LOG_LEVEL",
        "PENSTOCK_PROT": "PENSTOCK_PORT",
        "PENSTOCK_SECRETS": "PENSTOCK_SECRET",
    }
