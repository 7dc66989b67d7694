"""What commands share: options, settings, an open store, and output as a table or as lines."""

import asyncio
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
from rich.console import Console
from rich.table import Table

from penstock import settings as settings_module
from penstock.app import ensure_first_org, open_store_and_vault
from penstock.clock import Clock
from penstock.settings import Settings
from penstock.store.base import Store
from penstock.vault import Vault

T = TypeVar("T")

Data = Annotated[Path | None, typer.Option(help="Data folder.")]
Config = Annotated[Path | None, typer.Option(help="Path of penstock.toml.")]
Org = Annotated[str | None, typer.Option(help="Id of the organization; by default the first one.")]


def load_settings(**options: Any) -> Settings:
    """Return the settings; options of the command line come before the environment and penstock.toml."""
    return settings_module.load(options)


def with_store(settings: Settings, work: Callable[[Store, Vault], Coroutine[Any, Any, T]]) -> T:
    """Open the store and the vault, run `work` with them, and return its result."""

    async def run() -> T:
        async with open_store_and_vault(settings) as (store, vault):
            return await work(store, vault)

    return asyncio.run(run())


async def org_id(store: Store, named: str | None, settings: Settings) -> str:
    """Return the named organization, or the first one, which is created if the gateway never ran here."""
    return named or await ensure_first_org(store, settings, Clock())


def show(title: str, columns: list[str], rows: list[list[Any]]) -> None:
    """Print a table to a terminal, and tab-separated lines to anything else."""
    cells = [["" if cell is None else str(cell) for cell in row] for row in rows]
    if not sys.stdout.isatty():
        for row in cells:
            typer.echo("\t".join(row))
        return
    table = Table(*columns, title=title)
    for row in cells:
        table.add_row(*row)
    Console().print(table)
