"""Look at models, settings and the books."""

import os
from typing import Any

import typer

from penstock import settings
from penstock.accounts.audit import audit as audited
from penstock.accounts.audit import orphans
from penstock.clock import Clock
from penstock.commands.terminal import Config, Data, chosen, show, with_store
from penstock.media.storage import open_storage
from penstock.providers import discover
from penstock.store.base import Store
from penstock.upstream.catalog import Catalog
from penstock.values import Nanos, dollars
from penstock.vault import Vault


def models(data: Data = None, config: Config = None) -> None:
    """List the models that this configuration serves."""
    catalog = Catalog(discover(), chosen(data=data, config=config), os.environ)
    rows = [
        [one["id"], ", ".join(one["modes"]), ", ".join(one["providers"]), _price(one["pricing"])]
        for one in catalog.list()
    ]
    show("Models", ["id", "does", "providers", "price"], rows)


def _price(pricing: list[dict[str, Any]]) -> str:
    first = pricing[0] if pricing else None
    if first is None:
        return "unknown"
    both = f"{first['input_usd']} in, " if "input_usd" in first else ""
    return f"{both}{first['usd']} USD / {first['unit']}"


def show_settings() -> None:
    """List every setting, its variable, its default and its meaning."""
    show("Settings", ["name", "variable", "default", "meaning"], [list(row) for row in settings.rows()])


def audit(data: Data = None, config: Config = None) -> None:
    """Check every promise of the ledger; exit 1 when one is broken."""
    these = chosen(data=data, config=config)

    async def work(store: Store, vault: Vault) -> tuple[list[str], int, Nanos]:
        shelf = open_storage(these.media, these.media_options, these.data)
        return await audited(store, shelf, Clock()), *await orphans(store)

    breaches, count, lost = with_store(these, work)
    for breach in breaches:
        typer.echo(breach, err=True)
    if count:
        typer.echo(f"{count} orphans: made, or perhaps made, for nobody; {dollars(lost):f} USD lost for sure")
    typer.echo(f"{len(breaches)} breaches" if breaches else "audit clean")
    if breaches:
        raise typer.Exit(1)
