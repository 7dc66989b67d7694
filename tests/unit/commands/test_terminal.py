"""What commands share: settings, the default organization, tables and lines."""

import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.commands import terminal
from penstock.settings import Settings
from penstock.store.base import Store
from penstock.vault import Vault
from tests.command_line import penstock


def test_options_come_before_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_PORT", "1234")
    assert terminal.load_settings(data=tmp_path, port=None).port == 1234
    assert terminal.load_settings(data=tmp_path, port=4321).port == 4321


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
        first, again = [await terminal.org_id(store, None, settings) for _ in range(2)]
        return first, again, await terminal.org_id(store, "org_x", settings)

    first, again, named = terminal.with_store(settings, work)
    assert (first[:4], again, named) == ("org_", first, "org_x")


def test_output_to_a_pipe_is_separated_by_tabs(capsys: pytest.CaptureFixture[str]) -> None:
    terminal.show("Things", ["a", "b", "c"], [["x", None, 1], ["y", True, 2.5]])
    assert capsys.readouterr().out == "x\t\t1\ny\tTrue\t2.5\n"


def shown(columns: int, call: str) -> str:
    """What a call of `show` prints on a pseudo-terminal of this width."""
    ours, theirs = pty.openpty()
    code = f"from penstock.commands.terminal import show; {call}"
    with os.fdopen(ours, "rb", buffering=0) as reader:
        environment = {**os.environ, "COLUMNS": str(columns), "TERM": "xterm"}
        subprocess.run([sys.executable, "-c", code], stdout=theirs, check=True, timeout=60, env=environment)
        os.close(theirs)
        return re.sub(r"\x1b\[[0-9;]*m", "", reader.read(65536).decode())  # without styles


def test_output_to_a_terminal_is_a_table() -> None:
    seen = shown(80, "show('Things', ['name', 'size'], [['pear', 3]])")
    assert all(word in seen for word in ("Things", "name", "size", "pear", "3"))
    assert "\t" not in seen


def test_numbers_on_a_terminal_end_below_each_other() -> None:
    seen = shown(80, "show('Costs', ['name', 'cost', 'error'], [['pear', '$12.50', None], ['fig', '$0.5', None]])")
    ends = [line.rstrip() for line in seen.split("\r\n") if "$" in line or "cost" in line]
    assert ends[0].index("cost") + len("cost") == len(ends[1]) == len(ends[2])


def test_an_empty_list_on_a_terminal_says_so() -> None:
    assert shown(80, "show('Things', ['name'], [])") == "Things: none\r\n"


ROWS = [["req_01a1ec2cdd7696f2619bd132099d4ec8", "2026-11-18T01:02:05.686Z", "upstream_failure", None]]


@pytest.mark.parametrize(("columns", "lines"), [(200, 1), (90, 1), (80, 2), (60, 2), (20, 2)])
def test_words_on_a_terminal_are_not_broken(columns: int, lines: int) -> None:
    seen = shown(columns, f"show('Requests', ['id', 'created', 'status', 'error'], {ROWS})").split("\r\n")
    [with_id] = [number for number, line in enumerate(seen) if "req_01a1ec2cdd7696f2619bd132099d4ec8" in line]
    row = " ".join(seen[with_id : with_id + lines]).split(" ")
    texts = ["2026-11-18\u00a001:02", "req_01a1ec2cdd7696f2619bd132099d4ec8", "upstream_failure"]
    assert sorted(filter(None, row)) == texts


def test_a_long_text_on_a_terminal_is_wrapped_and_not_cut() -> None:
    """Beside an id and other columns that leave it little room."""
    text = " ".join(f"word-{number}" for number in range(12))
    rows = [["key_01a1ece6cad919ba29b96a6ad79260ab", "for the web page", "active", "2026-11-18T01:02:05.686Z", text]]
    seen = shown(100, f"show('Keys', ['id', 'name', 'status', 'created', 'limits'], {rows})")
    assert [word for word in seen.split() if word.startswith("word-")] == text.split()
    assert max(map(len, seen.split("\r\n"))) <= 100


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


def test_what_commands_print_as_json_can_be_read(data_folder: Path, tmp_path: Path) -> None:
    for words in (
        ["keys", "create"],
        ["keys", "list"],
        ["orgs", "create", "--name", "second"],
        ["orgs", "list"],
        ["credit", "add", "--usd", "5"],
        ["webhooks", "list"],
        ["webhooks", "rotate"],
        ["recordings", "list"],
        ["recordings", "export", "--to", str(tmp_path / "recordings")],
        ["models"],
        ["providers"],
        ["settings"],
        ["audit"],
        ["init"],
        ["backup", str(tmp_path / "copy")],
        ["secret", "rotate"],
        ["secret", "reseal"],
    ):
        ended = penstock(*words, "--json", "--data", data_folder)
        assert ended.status == 0, (words, ended.err)
        assert isinstance(json.loads(ended.out), dict | list), words
