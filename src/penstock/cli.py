"""The command line: all commands and groups of commands."""

import sys
from collections.abc import Iterator, MutableMapping
from dataclasses import dataclass
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from penstock import __version__
from penstock.commands.quick_imports import quick_imports
from penstock.errors import Problem


@dataclass(frozen=True, slots=True)
class _Source:
    """Where a command is defined, and under which heading the help lists it."""

    module: str
    name: str
    heading: str


_GENERATE = "Make something with a running gateway"
_ACCOUNT = "See what was made, and what it cost"
_OPERATE = "Run a gateway"

_SOURCES = {
    "image": _Source("images", "image", _GENERATE),
    "edit": _Source("images", "edit", _GENERATE),
    "upscale": _Source("images", "upscale", _GENERATE),
    "video": _Source("videos", "video", _GENERATE),
    "chat": _Source("chat", "chat", _GENERATE),
    "models": _Source("models", "app", _GENERATE),
    "mcp": _Source("mcp", "mcp", _GENERATE),
    "requests": _Source("requests", "list_requests", _ACCOUNT),
    "spend": _Source("requests", "show_spend", _ACCOUNT),
    "recordings": _Source("recordings", "app", _ACCOUNT),
    "serve": _Source("serve", "serve", _OPERATE),
    "worker": _Source("serve", "worker", _OPERATE),
    "init": _Source("init", "init", _OPERATE),
    "doctor": _Source("doctor", "doctor", _OPERATE),
    "settings": _Source("settings", "list_settings", _OPERATE),
    "providers": _Source("providers", "app", _OPERATE),
    "keys": _Source("keys", "app", _OPERATE),
    "orgs": _Source("orgs", "orgs", _OPERATE),
    "credit": _Source("orgs", "credit", _OPERATE),
    "webhooks": _Source("webhooks", "app", _OPERATE),
    "secret": _Source("secret", "app", _OPERATE),
    "audit": _Source("audit", "audit", _OPERATE),
    "backup": _Source("backup", "backup", _OPERATE),
}


class _Commands(MutableMapping[str, Any]):
    """The commands by name. A command's module is imported when the command is needed, because most commands are
    quick and the modules of some are not.
    """

    def __init__(self) -> None:
        self._loaded: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._loaded:
            self._loaded[name] = _load_command(name, _SOURCES[name])
        return self._loaded[name]

    def __setitem__(self, name: str, command: Any) -> None:
        self._loaded[name] = command

    def __delitem__(self, name: str) -> None:
        del self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter(_SOURCES)

    def __len__(self) -> int:
        return len(_SOURCES)


def _load_command(name: str, source: _Source) -> Any:
    with quick_imports():
        member = getattr(import_module(f"penstock.commands.{source.module}"), source.name)
    if isinstance(member, typer.Typer):
        command: Any = typer.main.get_group(member)
    else:
        single = typer.Typer(add_completion=False)
        single.command(name)(member)
        command = typer.main.get_command(single)
    command.name = name
    command.rich_help_panel = source.heading
    return command


class _Group(TyperGroup):
    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.commands = _Commands()


app = typer.Typer(
    cls=_Group, no_args_is_help=True, pretty_exceptions_enable=False, help="A gateway for media generation."
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"penstock {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """A gateway for media generation."""


def main() -> None:
    """Run the command line; an expected error is one line on stderr and exit status 1."""
    try:
        app()
    except (Problem, ValueError, RuntimeError, OSError) as problem:
        typer.echo(f"penstock: {problem}", err=True)
        sys.exit(1)
