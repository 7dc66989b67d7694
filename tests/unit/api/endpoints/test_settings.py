"""Settings in force over HTTP."""

from pathlib import Path

from penstock.settings import Settings
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
