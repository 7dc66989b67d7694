"""The command line: help texts, and errors in one line."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from penstock import cli
from tests.command_line import done, penstock


def commands(group: Any, *path: str) -> Iterator[tuple[tuple[str, ...], Any]]:
    if subcommands := getattr(group, "commands", None):
        for name, command in subcommands.items():
            yield from commands(command, *path, name)
    else:
        yield path, group


EVERY = dict(commands(typer.main.get_command(cli.app)))


@pytest.mark.parametrize("path", EVERY, ids=" ".join)
def test_every_command_has_a_help_text(path: tuple[str, ...]) -> None:
    command = EVERY[path]
    assert command.help
    assert command.help.strip().endswith(".")
    assert all(parameter.help for parameter in command.params if parameter.param_type_name == "option")
    assert "Usage:" in done(*path, "--help").out


def test_the_list_of_commands_says_of_each_what_its_own_help_says() -> None:
    """The list is made without the modules of the commands."""
    group: Any = typer.main.get_command(cli.app)
    first_paragraphs = {name: command.help.partition("\n\n")[0] for name, command in group.commands.items()}
    listed = {name: source.about for name, source in cli._SOURCES.items()}
    assert listed == {name: " ".join(text.split()) for name, text in first_paragraphs.items()}
    printed = " ".join(done("--help", COLUMNS="200").out.replace("│", " ").split())
    assert [text for text in listed.values() if text not in printed] == []


def test_every_command_that_ends_takes_json() -> None:
    """The others run until they are stopped, and have no result to print; or print JSON in any case."""
    options = {path: {word for each in command.params for word in each.opts} for path, command in EVERY.items()}
    without = {path for path, words in options.items() if "--json" not in words}
    assert without == {("serve",), ("worker",), ("mcp",), ("recordings", "serve"), ("audit-log", "export")}


@pytest.mark.parametrize(
    "path", [("serve",), ("keys", "create"), ("credit", "add"), ("recordings", "export"), ("audit",)]
)
def test_the_main_commands_exist(path: tuple[str, ...]) -> None:
    assert path in EVERY


@pytest.mark.parametrize(
    ("words", "status", "expected"),
    [
        ((), 2, "Usage:"),
        (("fly",), 2, "No such command"),
        (("keys", "revoke"), 2, "Missing argument"),
        (("models", "--config", "/nonexistent/penstock.toml"), 1, "penstock: "),
    ],
)
def test_errors_are_printed_without_a_traceback(words: tuple[str, ...], status: int, expected: str) -> None:
    ended = penstock(*words)
    assert ended.status == status
    assert expected in ended.out + ended.err
    assert "Traceback" not in ended.out + ended.err


def test_a_bad_setting_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "penstock.toml").write_text("prot = 8080\n")
    ended = penstock("models", "--data", tmp_path)
    assert ended.status == 1
    assert ended.err.startswith("penstock: ")
    assert "prot" in ended.err
    assert len(ended.err.splitlines()) == 1


def test_python_m_penstock_runs_the_command_line() -> None:
    command = [sys.executable, "-m", "penstock", "settings"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert "PENSTOCK_DATA" in ended.stdout


# Each takes between a twentieth and half a second to import.
HEAVY = (
    "PIL", "asyncio", "av", "cryptography", "numpy", "obstore", "opentelemetry", "penstock.app", "penstock.gateway",
    "procrastinate", "prometheus_client", "psycopg", "pydantic", "rich", "structlog", "uvicorn", "uvloop",
)  # fmt: skip
# What each of these commands needs of them.
NEEDED = {
    "--version": (),
    "--help": ("rich",),
    "settings": (),
    "keys --help": ("asyncio", "cryptography", "rich"),
    "models --help": ("asyncio", "rich"),
    "image --help": ("asyncio", "rich"),
    "requests --help": ("asyncio", "rich"),
}


def test_quick_commands_import_nothing_heavy(tmp_path: Path) -> None:
    """Each command runs in a fork of one process that has only imported the command line."""
    program = f"""
import os, sys
from penstock.cli import main
for words in {list(NEEDED)!r}:
    if child := os.fork():
        assert os.waitpid(child, 0)[1] == 0
    else:
        sys.argv[1:] = words.split()
        try: main()
        except SystemExit: pass
        print("imported:", words, *[name for name in {HEAVY!r} if name in sys.modules], sep=";")
        break
"""
    ended = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True)
    found = {}
    for line in ended.stdout.splitlines():
        if line.startswith("imported:"):
            _, words, *imported = line.split(";")
            found[words] = sorted(set(imported) - set(NEEDED[words]))
    assert found == {words: [] for words in NEEDED}
