"""What commands print while they wait and when they are done: progress, costs, files and JSON."""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock.client.files import FileWriter

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]


def print_json(value: Any) -> None:
    """Print a value as JSON, indented; amounts of money and paths as text."""
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False, default=str))


def report(text: str, as_json: bool, **fields: Any) -> None:
    """Print what a command did: as a sentence, or as the fields of a JSON object."""
    if as_json:
        print_json(fields)
    else:
        typer.echo(text)


def say(text: str) -> None:
    """Print a line for the person at the terminal; it goes to stderr, so that stdout has results only."""
    typer.echo(text, err=True)


@contextmanager
def waiting(text: str) -> Iterator[None]:
    """Show what the command waits for and for how long; nothing if stderr is not a terminal."""
    with _bar(text, "spinner", "text", "elapsed"):
        yield


@contextmanager
def percentage(text: str) -> Iterator["Bar"]:
    """Show a bar from 0 to 100 percent; nothing if stderr is not a terminal."""
    with _bar(text, "spinner", "text", "bar", "percentage", "elapsed", total=100) as bar:
        yield bar


class Bar:
    """A bar whose text and length change, or none where nobody would see it."""

    def __init__(self, progress: "Progress | None" = None, task: "TaskID | None" = None) -> None:
        self._progress = progress
        self._task = task

    def update(self, **changes: Any) -> None:
        """Change some of `description`, `completed` and `total`."""
        if self._progress is not None and self._task is not None:
            self._progress.update(self._task, **changes)


@contextmanager
def _bar(text: str, *columns: str, total: float | None = None) -> Iterator[Bar]:
    if not sys.stderr.isatty():
        yield Bar()
        return
    from rich import progress as rich_progress  # imported here because only people at a terminal need to wait for it
    from rich.console import Console

    kinds: dict[str, Callable[[], rich_progress.ProgressColumn]] = {
        "spinner": rich_progress.SpinnerColumn,
        "text": lambda: rich_progress.TextColumn("{task.description}"),
        "bar": rich_progress.BarColumn,
        "percentage": rich_progress.TaskProgressColumn,
        "size": rich_progress.DownloadColumn,
        "elapsed": rich_progress.TimeElapsedColumn,
    }
    made = [kinds[name]() for name in columns]
    with rich_progress.Progress(*made, console=Console(stderr=True), transient=True) as progress:
        yield Bar(progress, progress.add_task(text, total=total))


def save_parts(parts: Iterator[tuple[int | None, bytes]], path: Path) -> int:
    """Write the parts of a file to `path` with a bar, and return its size. If they break off, `path` stays as it was.

    A pipe or a device gets the parts as they come; it is never replaced by a file.
    """
    with _bar(f"Saving {path.name}", "text", "bar", "size") as bar, FileWriter(path) as file:
        for total, part in parts:
            file.write(part)
            bar.update(total=total, completed=file.size)
    return file.size


def is_piped_out() -> bool:
    """Whether stdout goes to a program or a file instead of a terminal."""
    return not sys.stdout.isatty()


def read_stdin() -> str | None:
    """Return the text on stdin, or None if stdin is a terminal."""
    return None if sys.stdin is None or sys.stdin.isatty() else sys.stdin.read()


def usd(amount: float | Decimal) -> str:
    """An amount in dollars with as many decimals as it needs, and two at least: $0.04, $0.000125."""
    text = f"{amount:.9f}".rstrip("0")
    whole, _, decimals = text.partition(".")
    return f"${whole}.{decimals:0<2}"


def size_text(size: int) -> str:
    """A number of bytes for people."""
    return f"{size / 1e6:.1f} MB" if size >= 1_000_000 else f"{size / 1e3:.0f} kB"
