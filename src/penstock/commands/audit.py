"""Check from the command line that balances, requests, files and messages agree."""

from typing import Annotated

import typer

from penstock.accounts import audit as checks
from penstock.clock import Clock
from penstock.commands.data_folder import Config, Data, load_settings, with_store
from penstock.commands.output import Json, report, usd
from penstock.media.opening import open_storage
from penstock.store.base import Store
from penstock.values import Nanos, dollars
from penstock.vault import Vault


def audit(
    data: Data = None,
    config: Config = None,
    files: Annotated[bool, typer.Option("--files", help="Read every file too, and compare its SHA-256.")] = False,
    as_json: Json = False,
) -> None:
    """Check that balances, requests, files and messages agree, and exit with status 1 if they do not."""
    settings = load_settings(data=data, config=config)

    async def work(store: Store, vault: Vault) -> tuple[list[str], int, Nanos]:
        storage = open_storage(settings.media, settings.media_options, settings.data)
        return await checks.audit(store, storage, Clock(), reads_files=files), *await checks.count_orphans(store)

    breaches, count, lost = with_store(settings, work)
    for breach in breaches:
        typer.echo(breach, err=True)
    if count and not as_json:
        typer.echo(
            f"{count} orphans: attempts without a request that could use their output; {usd(dollars(lost))} known lost"
        )
    summary = f"{len(breaches)} breaches" if breaches else "audit clean"
    report(summary, as_json, breaches=breaches, orphans=count, lost_usd=dollars(lost))
    if breaches:
        raise typer.Exit(1)
