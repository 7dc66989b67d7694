"""What commands share: options, settings, an open store, and output as a table or as lines."""

import re
import sys
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from penstock import settings as settings_module
from penstock.commands.output import print_json
from penstock.commands.quick_imports import quick_imports
from penstock.environment import ENVIRONMENT
from penstock.settings import Settings
from penstock.settings_description import misspelt_variables
from penstock.values import OrgId

if TYPE_CHECKING:
    from penstock.store.base import Store
    from penstock.vault import Vault

T = TypeVar("T")
URL_FILE = "gateway.url"  # in the data folder: where its gateway listens

Data = Annotated[Path | None, typer.Option(help="Data folder. Default: PENSTOCK_DATA, else ./data.")]
Config = Annotated[
    Path | None, typer.Option(help="Path of penstock.toml. Default: PENSTOCK_CONFIG, else in the data folder.")
]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Org = Annotated[str | None, typer.Option(help="Id of the organization; by default the first one.")]


def load_settings(**options: Any) -> Settings:
    """Return the settings; options of the command line come before the environment and penstock.toml.

    Says so if the only penstock.toml is in the current folder, where it is not read, and if a variable of the
    environment has the name of no setting, but almost.
    """
    settings = settings_module.load(options)
    for variable, near in misspelt_variables().items():
        typer.echo(f"penstock: the variable {variable} is not a setting; did you mean {near}?", err=True)
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
            f"there is no Penstock data in {settings.data.absolute()}: start the gateway there first (or run "
            "`penstock init`), or name another folder with --data"
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


def show(
    title: str, columns: list[str], rows: list[list[Any]], as_json: bool = False, *, on_terminal: Sequence[str] = ()
) -> None:
    """Print a table to a terminal, tab-separated lines to anything else, or a JSON array of objects.

    `on_terminal` names the columns of the table, where all of them would not fit on most terminals.
    """
    if as_json:
        names = [column.lower().replace(" ", "_") for column in columns]
        print_json([dict(zip(names, row, strict=True)) for row in rows])
        return
    cells = [["" if cell is None else str(cell) for cell in row] for row in rows]
    if not sys.stdout.isatty():
        for row in cells:
            typer.echo("\t".join(row))
        return
    if not cells:
        typer.echo(f"{title}: none")
        return
    places = [columns.index(column) for column in on_terminal or columns]
    cells = [[_TIME.sub("\\1\u00a0\\2", row[place]) for place in places] for row in cells]
    _print_table(title, [columns[place] for place in places], cells)


_TIME = re.compile(r"^(\d{4}-\d\d-\d\d)T(\d\d:\d\d):\d\d(?:\.\d+)?Z$")
_NUMBER = re.compile(r"^\$?\d[\d.]*$")
_COLUMN_GAP = 3  # that Rich leaves between two columns


def _print_table(title: str, columns: list[str], cells: list[list[str]]) -> None:
    """Print a table without breaking words: where ids leave too little room, each has a line of its own."""
    from rich import box  # imported here because only people who look at a table need to wait for it
    from rich.console import Console
    from rich.table import Table

    console = Console()
    words = [max(_longest_word(row[place]) for row in [columns, *cells]) for place in range(len(columns))]
    room = console.width - _COLUMN_GAP * len(columns)
    fits = sum(words) <= room
    if columns[0] == "id" and not fits:
        _print_below_ids(title, columns, cells)
        return
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    texts = [max(len(row[place]) for row in [columns, *cells]) for place in range(len(columns))]
    widths = _narrower_widths(texts, words, room) if fits else [None] * len(columns)
    for place, (column, width) in enumerate(zip(columns, widths, strict=True)):
        texts_here = [row[place] for row in cells if row[place]]
        are_numbers = bool(texts_here) and all(map(_NUMBER.match, texts_here))
        table.add_column(column, width=width, overflow="fold", justify="right" if are_numbers else "left")
    for row in cells:
        table.add_row(*row)
    console.print(table)


def _narrower_widths(widths: list[int], least: list[int], room: int) -> list[int]:
    """Widths that fit into the room together: the widest columns lose most, and none gets less than its least."""
    widths = [*widths]
    while sum(widths) > room:
        _, place = max((width, place) for place, width in enumerate(widths) if width > least[place])
        widths[place] -= 1
    return widths


def _print_below_ids(title: str, columns: list[str], cells: list[list[str]]) -> None:
    """Print each row in two lines: its id, and the other cells in columns."""
    rows = [row[1:] for row in [columns, *cells]]
    widths = [max(len(row[place]) for row in rows) for place in range(len(columns) - 1)]
    heading, *lines = ["  " + "  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
    typer.echo(f"{title}\n\nid\n{heading}\n")
    for row, line in zip(cells, lines, strict=True):
        typer.echo(f"{row[0]}\n{line}")


def _longest_word(text: str) -> int:
    return max((len(word) for word in text.split(" ")), default=0)
