"""The settings, the store and the organizations of the data folder that a command works on."""

from pathlib import Path

import pytest

from penstock.commands import data_folder as folder
from penstock.settings import Settings
from penstock.store.base import Store
from penstock.vault import Vault
from tests.command_line import penstock


def test_options_come_before_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_PORT", "1234")
    assert folder.load_settings(data=tmp_path, port=None).port == 1234
    assert folder.load_settings(data=tmp_path, port=4321).port == 4321


def test_a_configuration_that_is_not_read_is_pointed_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "penstock.toml"
    file.write_text("port = 8181")
    told = penstock("settings")
    assert (told.status, "8181" in told.out) == (0, False)
    assert told.err == "penstock: penstock.toml in this folder is not read; move it to data, or name it with --config\n"
    read = [penstock("settings", "--config", file), penstock("settings", PENSTOCK_CONFIG=str(file))]
    read.append(penstock("settings", "--data", tmp_path))
    assert [(ended.err, "8181" in ended.out) for ended in read] == [("", True)] * 3
    (tmp_path / "data").mkdir()
    file.rename(tmp_path / "data" / "penstock.toml")
    assert penstock("settings").err == ""


def test_a_misspelt_variable_is_pointed_out(tmp_path: Path) -> None:
    told = penstock("settings", "--data", tmp_path, PENSTOCK_PROT="1")
    assert told.status == 0
    assert told.err == "penstock: the variable PENSTOCK_PROT is not a setting; did you mean PENSTOCK_PORT?\n"


def test_the_first_organization_is_the_default(data_folder: Path) -> None:
    settings = Settings(data=data_folder)

    async def work(store: Store, vault: Vault) -> tuple[str, str, str]:
        first, again = [await folder.org_id(store, None, settings) for _ in range(2)]
        return first, again, await folder.org_id(store, first, settings)

    first, again, named = folder.with_store(settings, work)
    assert (first[:4], again, named) == ("org_", first, first)


COMMANDS = [
    ("serve",),
    ("audit",),
    ("backup", "copy"),
    ("keys", "create"),
    ("keys", "list"),
    ("orgs", "create", "--name", "x"),
    ("credit", "add", "--usd", "5"),
    ("webhooks", "rotate"),
    ("recordings", "list"),
]


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_a_missing_or_another_secret_is_refused(
    data_folder: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    monkeypatch.chdir(data_folder.parent)
    data = data_folder
    secret = data / "secret.key"
    secret.unlink()
    refused = penstock(*words, "--data", data)
    assert (refused.status, refused.out) == (1, "")
    assert "secret.key is missing" in refused.err
    assert not secret.exists()
    secret.write_text("w" * 43)
    secret.chmod(0o600)
    refused = penstock(*words, "--data", data)
    assert (refused.status, refused.out) == (1, "")
    assert "another master secret" in refused.err
    assert not (data_folder.parent / "copy").exists()


@pytest.mark.parametrize("words", COMMANDS[1:], ids=" ".join)
def test_a_folder_without_data_is_refused_and_left_empty(tmp_path: Path, words: tuple[str, ...]) -> None:
    """Also by the commands that create something: the gateway that runs elsewhere would know nothing of it."""
    ended = penstock(*words, "--data", tmp_path / "empty")
    assert ended.status == 1
    assert f"there is no Penstock data in {tmp_path / 'empty'}" in ended.err
    assert not (tmp_path / "empty").exists()


@pytest.mark.parametrize(
    "words",
    [
        ("guards",),
        ("drill", "--down", "fal"),
        ("keys", "list"),
        ("labels", "list"),
        ("destinations", "list"),
        ("recordings", "list"),
        ("users", "key-limits"),
    ],
)
def test_an_organization_that_does_not_exist_is_named(data_folder: Path, words: tuple[str, ...]) -> None:
    told = penstock(*words, "--org", "org_none", "--data", data_folder)
    assert (told.status, told.out) == (1, "")
    assert "No such organization: org_none." in told.err
