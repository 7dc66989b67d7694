"""What commands print while they wait and when they are done: progress, costs, files and JSON."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, SpinnerColumn, TaskProgressColumn, TextColumn
from rich.progress import TimeElapsedColumn as Elapsed

_errors = Console(stderr=True)


def print_json(value: Any) -> None:
    """Print a value as JSON, indented; amounts of money and paths as text."""
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False, default=str))


def say(text: str) -> None:
    """Print a line for the person at the terminal; it goes to stderr, so that stdout has results only."""
    _errors.print(text, markup=False, highlight=False, soft_wrap=True)


@contextmanager
def waiting(text: str) -> Iterator[None]:
    """Show what the command waits for and for how long; nothing if stderr is not a terminal."""
    columns = (SpinnerColumn(), TextColumn("{task.description}"), Elapsed())
    with Progress(*columns, console=_errors, transient=True, disable=not _errors.is_terminal) as progress:
        progress.add_task(text, total=None)
        yield


@contextmanager
def percentage(text: str) -> Iterator["Percentage"]:
    """Show a bar from 0 to 100 percent; nothing if stderr is not a terminal."""
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), Elapsed())
    with Progress(*columns, console=_errors, transient=True, disable=not _errors.is_terminal) as progress:
        yield Percentage(progress, text)


class Percentage:
    """A bar whose text and percentage change."""

    def __init__(self, progress: Progress, text: str) -> None:
        self._progress = progress
        self._task = progress.add_task(text, total=100)

    def update(self, text: str, percent: int) -> None:
        self._progress.update(self._task, description=text, completed=percent)


def save_parts(parts: Iterator[tuple[int | None, bytes]], path: Path) -> int:
    """Write the parts of a file to `path` with a bar, and return its size; leave no part of a file that breaks off."""
    unfinished = path.with_name(f"{path.name}.part")
    columns = (TextColumn(f"Saving {path.name}"), BarColumn(), DownloadColumn())
    size = 0
    try:
        with (
            Progress(*columns, console=_errors, transient=True, disable=not _errors.is_terminal) as progress,
            unfinished.open("wb") as file,
        ):
            task = progress.add_task("", total=None)
            for total, part in parts:
                file.write(part)
                size += len(part)
                progress.update(task, total=total, completed=size)
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)
    return size


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
