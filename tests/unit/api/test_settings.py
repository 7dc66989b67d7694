"""Settings in force over HTTP."""

from pathlib import Path

from penstock.api.settings import in_force
from penstock.settings import Settings, load
from tests.api.running import running


async def test_operators_see_values_and_never_secrets(tmp_path: Path) -> None:
    async with running(tmp_path) as here:
        response = await here.admin("GET", "/v1/settings")
        listed = {row["name"]: row for row in response.json["data"]}
        assert list(listed) == list(Settings.__struct_fields__)
        assert (listed["port"]["value"], listed["port"]["variable"]) == (here.gateway.settings.port, "PENSTOCK_PORT")
        for name in ("secret", "database", "media_options", "providers", "alert_url"):
            assert (listed[name]["value"], listed[name]["is_secret"]) == (None, True)
        secret = here.gateway.settings.secret
        assert not secret or secret not in response.body.decode()


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
