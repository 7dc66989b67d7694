"""A folder for what is unfinished, one for each process; those of dead processes are cleared away."""

import fcntl
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO

_LOCK = "lock"


@contextmanager
def scratch(root: Path) -> Iterator[Path]:
    """Half downloads and half films. A process holds a lock on its folder for as long as it lives, however it ends."""
    root.mkdir(parents=True, exist_ok=True, mode=0o700)
    with ExitStack() as stack:
        with _locked(root / _LOCK):  # nobody clears away a folder that is just being made
            _clear(root)
            folder = root / f"{os.getpid()}-{secrets.token_hex(4)}"
            folder.mkdir(mode=0o700)
            stack.callback(shutil.rmtree, folder, ignore_errors=True)
            stack.enter_context(_locked(folder / _LOCK))
        yield folder


def _clear(root: Path) -> None:
    for stray in root.iterdir():
        if stray.is_dir() and not _is_held(stray / _LOCK):
            shutil.rmtree(stray, ignore_errors=True)
        elif stray.is_file() and stray.name != _LOCK:
            stray.unlink(missing_ok=True)


@contextmanager
def _locked(path: Path) -> Iterator[IO[bytes]]:
    with path.open("wb") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield handle


def _is_held(path: Path) -> bool:
    try:
        with path.open("rb") as handle:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False
