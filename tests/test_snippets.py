"""Every command and program of the documentation works, against one gateway with the built-in models."""

import contextlib
import io
import os
import shlex
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from PIL import Image

from tests.command_line import penstock
from tests.fake_providers.scripted import scripted_provider_in_thread
from tests.snippets import ROOT, Block, pages, runnable
from tests.stories.processes import Installation, Serving

# Calls fail the command when the gateway refuses them, and variables are kept for the next block of the page.
PREAMBLE = 'set -euo pipefail; curl() { command curl -sS --fail-with-body "$@"; }; touch .state; . ./.state; set -a\n'
EPILOGUE = "\nset +a; export -p > .state\n"
PLAIN = set("$|><&;()`")


@pytest.fixture(scope="session")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    with scripted_provider_in_thread() as lab:
        yield Installation(tmp_path_factory.mktemp("snippets") / "data", "", lab)


@pytest.fixture(scope="session")
def serving(installation: Installation) -> Iterator[Serving]:
    with installation.serving() as serving:
        yield serving


@pytest.fixture
def environment(serving: Serving, installation: Installation) -> dict[str, str]:
    """What a reader has: the gateway's URL and a key, and on the machine of the gateway its data folder."""
    ours = {name: value for name, value in os.environ.items() if not name.startswith("PENSTOCK_")}
    ours["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{ours['PATH']}"
    return ours | {
        "PENSTOCK_URL": serving.url,
        "PENSTOCK_KEY": serving.key,
        "PENSTOCK_DATA": str(installation.data),
        "PYTHONPATH": str(ROOT / "src"),
    }


def put_files(folder: Path) -> None:
    """Images that pages name: to edit, to enlarge, and a mask whose middle is transparent."""
    for name in ("photo.png", "room.png"):
        Image.new("RGB", (128, 128), "teal").save(folder / name)
    Image.new("RGB", (32, 32), "olive").save(folder / "small.png")
    mask = Image.new("RGBA", (128, 128), "white")
    mask.paste((0, 0, 0, 0), (40, 40, 90, 90))
    mask.save(folder / "window.png")


def commands(code: str) -> list[list[str]] | None:
    """The words of each command, if all are plain commands of ours, which need no process of their own."""
    lines = code.replace("\\\n", " ").strip().splitlines()
    is_plain = all(line.startswith("penstock ") and not PLAIN & set(line) for line in lines)
    return [shlex.split(line, comments=True)[1:] for line in lines] if is_plain else None


def run_shell(block: Block, folder: Path, environment: dict[str, str]) -> str | None:
    """Run commands; return what went wrong."""
    if words := commands(block.code):
        ours = {name: value for name, value in environment.items() if name.startswith("PENSTOCK_")}
        failed = [ended.err for each in words if (ended := penstock(*each, **ours)).status != 0]
        return failed[0] if failed else None
    shell = subprocess.run(
        ["bash", "-c", PREAMBLE + block.code + EPILOGUE],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    return None if shell.returncode == 0 else shell.stdout[-500:] + shell.stderr[-500:]


def run_python(block: Block, names: dict[str, Any], environment: dict[str, str]) -> str | None:
    """Run a program with what the earlier programs of its page have defined; return what went wrong."""
    try:
        with patch.dict(os.environ, environment), contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a reader would see those of the libraries, and go on
            exec(compile(block.code, str(block), "exec"), names)  # noqa: S102 (our own documentation)
    except Exception as problem:
        return repr(problem)
    return None


def close_clients(names: dict[str, Any]) -> None:
    """Close what programs leave open, as the end of their process would."""
    for value in names.values():
        if isinstance(value, contextlib.AbstractContextManager) and hasattr(value, "close"):
            value.close()


@pytest.mark.parametrize("page", [page for page in pages() if runnable(page)], ids=lambda page: page.stem)
@pytest.mark.timeout(600)
@pytest.mark.sweep(3)
def test_what_a_page_says_works(
    page: Path, environment: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_files(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO()))
    names: dict[str, Any] = {}
    failed = []
    for block in runnable(page):
        if block.language == "sh":
            problem = run_shell(block, tmp_path, environment)
        else:
            problem = run_python(block, names, environment)
        if problem is not None:
            failed.append(f"{block}: {problem}")
    close_clients(names)
    assert failed == []
