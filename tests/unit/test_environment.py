"""Variables whose values are in files."""

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from penstock.environment import Environment
from penstock.models.catalog import Catalog
from penstock.providers import discover
from penstock.settings import Settings
from penstock.settings.loading import load
from penstock.typed_config import Misconfigured


def test_a_file_has_the_value_of_a_variable(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("secret\n")
    environment = Environment({"FAL_KEY_FILE": str(tmp_path / "key"), "OTHER": "x", "EMPTY": "", "EMPTY_FILE": ""})
    assert environment["FAL_KEY"] == "secret", "without the newline"
    assert "FAL_KEY" in environment
    assert (environment["OTHER"], environment["EMPTY"]) == ("x", "")
    assert "MISSING" not in environment
    assert len(environment) == len(list(environment)) == 4


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"FAL_KEY_FILE": "no-such-file"}, "FAL_KEY_FILE: no-such-file cannot be read"),
        ({"FAL_KEY_FILE": "key", "FAL_KEY": "secret"}, "FAL_KEY and FAL_KEY_FILE are both set"),
    ],
)
def test_a_value_that_cannot_be_had_is_an_error(variables: Mapping[str, str], message: str) -> None:
    with pytest.raises(Misconfigured, match=message) as raised:
        Environment(variables)["FAL_KEY"]
    assert "secret" not in str(raised.value)


def test_every_credential_can_be_in_a_file(tmp_path: Path) -> None:
    """All variables that providers need, and every setting that has one."""
    (tmp_path / "value").write_text("https://lab.test\n")
    names = {
        name
        for provider in discover()
        for name in (provider.key_env, provider.base_url_env, provider.callback_key_env)
        if name
    }
    environment = Environment({f"{name}_FILE": str(tmp_path / "value") for name in names})
    catalog = Catalog(discover(), Settings(), environment)
    assert [row["id"] for row in catalog.providers.describe() if not row["on"]] == []
    assert set(catalog.providers.callback_secrets(environment).values()) == {"https://lab.test"}


def test_settings_can_be_in_files(tmp_path: Path) -> None:
    (tmp_path / "database").write_text("postgresql://penstock:secret@db.test/penstock\n")
    (tmp_path / "secret").write_text("s" * 40)
    files = {
        "PENSTOCK_DATABASE_FILE": str(tmp_path / "database"),
        "PENSTOCK_SECRET_FILE": str(tmp_path / "secret"),
        "PENSTOCK_CA_FILE": "ca.pem",  # a setting of its own whose name ends like that
    }
    loaded = load({"data": tmp_path}, files)
    assert loaded.database == "postgresql://penstock:secret@db.test/penstock"
    assert (loaded.secret, loaded.ca_file) == ("s" * 40, "ca.pem")


def test_the_process_environment_is_the_default(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "key").write_text("k")
    monkeypatch.setitem(os.environ, "LAB_KEY_FILE", str(tmp_path / "key"))
    assert Environment()["LAB_KEY"] == "k"
