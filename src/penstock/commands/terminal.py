"""What commands share: options, settings, an open store, and output as a table or as lines."""

import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from penstock import settings as settings_module
from penstock.commands.output import print_json
from penstock.commands.quick_imports import quick_imports
from penstock.environment import ENVIRONMENT
from penstock.settings import Settings
from penstock.values import OrgId

if TYPE_CHECKING:
    from penstock.store.base import Store
    from penstock.vault import Vault

T = TypeVar("T")
URL_FILE = "gateway.url"  # in the data folder: where its gateway listens

Data = Annotated[Path | None, typer.Option(help="Data folder.")]
Config = Annotated[Path | None, typer.Option(help="Path of penstock.toml.")]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Org = Annotated[str | None, typer.Option(help="Id of the organization; by default the first one.")]


def load_settings(**options: Any) -> Settings:
    """Return the settings; options of the command line come before the environment and penstock.toml.

    Says so if the only penstock.toml is in the current folder, where it is not read.
    """
    settings = settings_module.load(options)
    is_named = options.get("config") or settings_module.PREFIX + "CONFIG" in ENVIRONMENT
    if not is_named and Path("penstock.toml").is_file() and not (settings.data / "penstock.toml").is_file():
        message = f"penstock.toml in this folder is not read; move it to {settings.data}, or name it with --config"
        typer.echo(f"penstock: {message}", err=True)
    return settings


def with_store(settings: Settings, work: "Callable[[Store, Vault], Coroutine[Any, Any, T]]") -> T:
    """Open the store and the vault, run `work` with them, and return its result.

    Raises RuntimeError where no gateway has run yet: a database that a command creates by mistake would be a trap.
    """
    check_data(settings)
    with quick_imports():
        import asyncio  # both imported here because some commands need no store

        from penstock.app import open_store_and_vault

    async def run() -> T:
        async with open_store_and_vault(settings) as (store, vault):
            return await work(store, vault)

    return asyncio.run(run())


def check_data(settings: Settings) -> None:
    """Raise RuntimeError if there is no database in the data folder."""
    if not settings.database and not settings.sqlite_file.exists():
        raise RuntimeError(
            f"there is no Penstock data in {settings.data}: start the gateway there first (or run `penstock init`), or "
            "name another folder with --data"
        )


async def org_id(store: "Store", named: str | None, settings: Settings) -> OrgId:
    """Return the named organization, or the first one, which is created if the gateway never ran here."""
    from penstock.app import ensure_first_org
    from penstock.clock import Clock

    return OrgId(named) if named else await ensure_first_org(store, settings, Clock())


def report(text: str, as_json: bool, **fields: Any) -> None:
    """Print what a command did: as a sentence, or as the fields of a JSON object."""
    if as_json:
        print_json(fields)
    else:
        typer.echo(text)


def show(title: str, columns: list[str], rows: list[list[Any]], as_json: bool = False) -> None:
    """Print a table to a terminal, tab-separated lines to anything else, or a JSON array of objects."""
    if as_json:
        names = [column.lower().replace(" ", "_") for column in columns]
        print_json([dict(zip(names, row, strict=True)) for row in rows])
        return
    cells = [["" if cell is None else str(cell) for cell in row] for row in rows]
    if not sys.stdout.isatty():
        for row in cells:
            typer.echo("\t".join(row))
        return
    from rich.console import Console  # imported here because only people who look at a table need to wait for it
    from rich.table import Table

    table = Table(title=title)
    for position, column in enumerate(columns):
        longest = max((len(row[position]) for row in cells), default=0)
        is_id = column == "id"  # never cut off nor broken: other commands take it
        table.add_column(column, no_wrap=is_id, min_width=longest if is_id else None, overflow="fold")
    for row in cells:
        table.add_row(*row)
    Console().print(table)
