"""The command line: all commands and groups of commands."""

import sys

import typer

from penstock.commands import audit, backup, keys, models, orgs, providers, recordings, serve, settings, webhooks
from penstock.errors import Problem
from penstock.store.base import BackupRefused, StorageMisconfigured

app = typer.Typer(
    no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, help="A gateway for media generation."
)
app.command()(serve.serve)
app.command()(serve.worker)
app.command()(models.models)
app.command("settings")(settings.list_settings)
app.command()(audit.audit)
app.command()(backup.backup)
app.add_typer(providers.app, name="providers")
app.add_typer(keys.app, name="keys")
app.add_typer(orgs.orgs, name="orgs")
app.add_typer(orgs.credit, name="credit")
app.add_typer(webhooks.app, name="webhooks")
app.add_typer(recordings.app, name="recordings")


def main() -> None:
    """Run the command line; an expected error is one line on stderr and exit status 1."""
    try:
        app()
    except (Problem, ValueError, RuntimeError, StorageMisconfigured, BackupRefused, OSError) as problem:
        typer.echo(f"penstock: {problem}", err=True)
        sys.exit(1)
