"""The command line: every group of commands in one place."""

import sys

import typer

from penstock.commands import backup, keys, look, orgs, providers, recordings, serve, webhooks
from penstock.errors import Problem
from penstock.store.base import BackupRefused, StorageMisconfigured

app = typer.Typer(
    no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, help="A gateway for media generation."
)
app.command()(serve.serve)
app.command()(serve.worker)
app.command()(look.models)
app.command("settings")(look.show_settings)
app.command()(look.audit)
app.command()(backup.backup)
app.add_typer(providers.app, name="providers")
app.add_typer(keys.app, name="keys")
app.add_typer(orgs.orgs, name="orgs")
app.add_typer(orgs.credit, name="credit")
app.add_typer(webhooks.app, name="webhooks")
app.add_typer(recordings.app, name="recordings")


def main() -> None:
    """Expected trouble is one line on stderr and a non-zero exit."""
    try:
        app()
    except (Problem, ValueError, RuntimeError, StorageMisconfigured, BackupRefused, OSError) as problem:
        typer.echo(f"penstock: {problem}", err=True)
        sys.exit(1)
