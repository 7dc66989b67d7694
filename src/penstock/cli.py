"""The command line: all commands and groups of commands."""

import sys
from collections.abc import Iterator, MutableMapping
from dataclasses import dataclass
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from penstock import __version__
from penstock.commands.quick_imports import quick_imports
from penstock.errors import Problem


@dataclass(frozen=True, slots=True)
class _Source:
    """Where a command is defined, and how the list of commands shows it: without its module, which may be slow."""

    module: str
    name: str
    heading: str
    about: str


_GENERATE = "Make something with a running gateway"
_ACCOUNT = "See what was made, and what it cost"
_OPERATE = "Run a gateway"

_SOURCES = {
    "image": _Source("images", "image", _GENERATE, "Generate images from a prompt."),
    "edit": _Source("images", "edit", _GENERATE, "Edit images: pass them with --input and describe the change."),
    "upscale": _Source("images", "upscale", _GENERATE, "Enlarge an image."),
    "video": _Source("videos", "video", _GENERATE, "Make a video: start it, wait until it is done, and save it."),
    "speech": _Source("speech", "speech", _GENERATE, "Speak a text, and save the sound while it arrives."),
    "sound": _Source("sound", "sound", _GENERATE, "Make a sound from its description, and save it."),
    "music": _Source("sound", "music", _GENERATE, "Make music from its description or its words, and save it."),
    "transcribe": _Source(
        "transcribe", "transcribe", _GENERATE, "Write down what is said in a file, with times if you ask for subtitles."
    ),
    "voices": _Source("speech", "voices", _GENERATE, "List voices, and which of OpenAI's voices they speak for."),
    "chat": _Source(
        "chat", "chat", _GENERATE, "Send a message to a chat model, and print its response while it arrives."
    ),
    "batch": _Source("batches", "app", _GENERATE, "Run many calls from a file: priced first, paid once each."),
    "trial": _Source("trials", "app", _GENERATE, "Compare models on the same prompts, with figures."),
    "models": _Source("models", "app", _GENERATE, "List models, or search for one."),
    "mcp": _Source(
        "mcp",
        "mcp",
        _GENERATE,
        "Let agents make images, videos, speech and sounds with a gateway, over the Model Context Protocol.",
    ),
    "requests": _Source("requests", "list_requests", _ACCOUNT, "List requests with their cost, newest first."),
    "spend": _Source(
        "requests",
        "show_spend",
        _ACCOUNT,
        "Show what was spent, by model, provider, key, kind, user, session or label.",
    ),
    "verify": _Source(
        "verify",
        "verify",
        _ACCOUNT,
        "Show where files come from; exit with status 1 if one was changed after it was signed.",
    ),
    "drill": _Source(
        "drill",
        "drill",
        _ACCOUNT,
        "Say what would have become of past requests if a provider had been down, slow or dearer.",
    ),
    "recordings": _Source("recordings", "app", _ACCOUNT, "List, show, export, import and delete recordings."),
    "serve": _Source("serve", "serve", _OPERATE, "Run the gateway."),
    "worker": _Source(
        "serve",
        "worker",
        _OPERATE,
        "Run a worker: it runs jobs and delivers webhooks for gateways that share its Postgres database.",
    ),
    "init": _Source(
        "init",
        "init",
        _OPERATE,
        "Create the database, the master secret and the first organization, so that keys can be created before the "
        "first start.",
    ),
    "doctor": _Source(
        "doctor",
        "doctor",
        _OPERATE,
        "Check configuration, data folder, database, storage, port and credentials; exit with status 1 on a problem.",
    ),
    "settings": _Source(
        "settings",
        "list_settings",
        _OPERATE,
        "List every setting: its value in force, where that comes from, its default and its meaning.",
    ),
    "providers": _Source(
        "providers", "app", _OPERATE, "List providers and what is missing for those that are off, or check one."
    ),
    "accounts": _Source(
        "accounts",
        "app",
        _OPERATE,
        "Add, list, rotate and delete accounts: several credentials per vendor.",
    ),
    "destinations": _Source(
        "destinations", "app", _OPERATE, "Add, list, check, rotate and delete buckets for outputs."
    ),
    "keys": _Source("keys", "app", _OPERATE, "Create, list and revoke API keys."),
    "labels": _Source("labels", "app", _OPERATE, "Declare labels, and set budgets for their values."),
    "guards": _Source(
        "guards",
        "list_guards",
        _OPERATE,
        "List guards: what each watches, and how often it let calls pass, flagged, refused or did not answer.",
    ),
    "orgs": _Source("orgs", "orgs", _OPERATE, "Create, change and list organizations."),
    "credit": _Source("orgs", "credit", _OPERATE, "Add credit to an organization."),
    "webhooks": _Source(
        "webhooks", "app", _OPERATE, "List webhook messages and send them again; show and rotate the signing secret."
    ),
    "secret": _Source("secret", "app", _OPERATE, "Rotate the master secret."),
    "provenance": _Source(
        "provenance", "app", _OPERATE, "Show who signs outputs, and the root certificate of this gateway."
    ),
    "audit": _Source(
        "audit",
        "audit",
        _OPERATE,
        "Check that balances, requests, files and messages agree, and exit with status 1 if they do not.",
    ),
    "users": _Source("users", "app", _OPERATE, "List people who sign in with the issuer, and change their roles."),
    "audit-log": _Source("audit_log", "app", _OPERATE, "List, export and verify the audit log: who changed what."),
    "backup": _Source(
        "backup", "backup", _OPERATE, "Copy the database and the master secret, which is needed to use it."
    ),
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
    """All commands. Their list is made without loading them."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.commands = _Commands()
        self._is_listing = False

    def list_commands(self, ctx: Any) -> list[str]:
        return list(_SOURCES)

    def format_help(self, *arguments: Any) -> None:
        self._is_listing = True
        try:
            super().format_help(*arguments)
        finally:
            self._is_listing = False

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if self._is_listing:
            source = _SOURCES[cmd_name]
            return TyperCommand(cmd_name, help=source.about, rich_help_panel=source.heading)
        return super().get_command(ctx, cmd_name)


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
        typer.echo(f"penstock: {_words(problem)}", err=True)
        sys.exit(1)


def _words(problem: Exception) -> str:
    """What went wrong, without the number of the system's error."""
    if isinstance(problem, OSError) and problem.strerror and problem.filename:
        return f"{problem.filename}: {problem.strerror}"
    return str(problem)
