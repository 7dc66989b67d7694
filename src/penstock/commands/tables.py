"""Print rows: as a table to a terminal, as lines to anything else, or as JSON."""

import re
import sys
from collections.abc import Sequence
from typing import Any

import msgspec
import typer

from penstock.commands.output import print_json


def show_table(
    title: str, columns: list[str], rows: list[list[Any]], as_json: bool = False, *, on_terminal: Sequence[str] = ()
) -> None:
    """Print a table to a terminal, tab-separated lines to anything else, or a JSON array of objects.

    `on_terminal` names the columns of the table, where all of them would not fit on most terminals.
    """
    if as_json:
        names = [column.lower().replace(" ", "_") for column in columns]
        print_json([dict(zip(names, row, strict=True)) for row in rows])
        return
    cells = [[_text(cell) for cell in row] for row in rows]
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


def _text(cell: Any) -> str:
    """A cell as people read it, and programs: lists with commas, objects as JSON."""
    if cell is None:
        return ""
    if isinstance(cell, list | tuple):
        return ", ".join(map(_text, cell))
    return msgspec.json.encode(cell).decode() if isinstance(cell, dict) else str(cell)


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
    if not fits:
        (_print_below_ids if columns[0] == "id" else _print_one_by_one)(title, columns, cells)
        return
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    texts = [max(len(row[place]) for row in [columns, *cells]) for place in range(len(columns))]
    widths = _narrower_widths(texts, words, room)
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


def _print_one_by_one(title: str, columns: list[str], cells: list[list[str]]) -> None:
    """Print each row as lines of a name and a value."""
    width = max(map(len, columns))
    rows = [[f"{name:{width}}  {cell}" for name, cell in zip(columns, row, strict=True) if cell] for row in cells]
    typer.echo("\n\n".join([title, *map("\n".join, rows)]))


def _longest_word(text: str) -> int:
    return max((len(word) for word in text.split(" ")), default=0)
