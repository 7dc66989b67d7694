"""The command line in the test's own process: words in, what was printed and the exit status out."""

import io
import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

import structlog

from penstock import cli


@dataclass(frozen=True, slots=True)
class Ended:
    status: int
    out: str
    err: str

    @property
    def lines(self) -> list[list[str]]:
        """A list as programs see it."""
        return [line.split("\t") for line in self.out.splitlines()]


def penstock(*words: str | Path, **environment: str) -> Ended:
    """As `penstock WORDS` would run, with nothing of the tester's own settings."""
    out, err = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.TextIOWrapper(io.BytesIO(), "utf-8")
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PENSTOCK_")}
    status = 0
    with (
        restored_logs(),
        redirect_stdout(out),
        redirect_stderr(err),
        patch.dict(os.environ, {**clean, **environment}, clear=True),
        patch.object(sys, "argv", ["penstock", *map(str, words)]),
    ):
        try:
            cli.main()
        except SystemExit as end:
            status = end.code if isinstance(end.code, int) else int(end.code is not None)
    return Ended(status, _text(out), _text(err))


@contextmanager
def restored_logs() -> Iterator[None]:
    """A command such as `serve` configures the logs of its process; here they are those of all tests."""
    structured, handlers, level = structlog.get_config(), logging.root.handlers[:], logging.root.level
    try:
        yield
    finally:
        structlog.configure(**structured)
        logging.root.handlers[:] = handlers
        logging.root.setLevel(level)


def done(*words: str | Path, **environment: str) -> Ended:
    """The same, for what has to work."""
    ended = penstock(*words, **environment)
    assert ended.status == 0, ended
    return ended


def _text(stream: io.TextIOWrapper) -> str:
    stream.seek(0)
    return stream.read()
