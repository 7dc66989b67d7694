"""What commands share: options, settings, an opened store, and tables for people or lines for programs."""

import asyncio
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
from rich.console import Console
from rich.table import Table

from penstock import settings
from penstock.app import first_org, opened_store
from penstock.clock import Clock
from penstock.settings import Settings
from penstock.store.base import Store
from penstock.vault import Vault

T = TypeVar("T")

Data = Annotated[Path | None, typer.Option(help="Data folder.")]
Config = Annotated[Path | None, typer.Option(help="Path of penstock.toml.")]
Org = Annotated[str | None, typer.Option(help="Organization; the first one unless said.")]


def chosen(**said: Any) -> Settings:
    return settings.load(said)


def with_store(these: Settings, work: Callable[[Store, Vault], Coroutine[Any, Any, T]]) -> T:
    async def run() -> T:
        async with opened_store(these) as (store, vault):
            return await work(store, vault)

    return asyncio.run(run())


async def org_id(store: Store, named: str | None, these: Settings) -> str:
    """The organization that was named, or the first one, which is made when the gateway never ran here."""
    return named or await first_org(store, these, Clock())


def show(title: str, columns: list[str], rows: list[list[Any]]) -> None:
    """A table for people, tab-separated lines for programs."""
    cells = [["" if cell is None else str(cell) for cell in row] for row in rows]
    if not sys.stdout.isatty():
        for row in cells:
            typer.echo("\t".join(row))
        return
    table = Table(*columns, title=title)
    for row in cells:
        table.add_row(*row)
    Console().print(table)
