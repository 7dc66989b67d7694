"""Folders for unfinished files, one for each process; the folders of dead processes are deleted."""

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
def scratch_folder(root: Path) -> Iterator[Path]:
    """Create a folder for partial downloads and videos, and delete it at the end.

    The process locks its folder until it ends, so that other processes recognise the folders of dead ones.
    """
    root.mkdir(parents=True, exist_ok=True, mode=0o700)
    with ExitStack() as stack:
        with _lock(root / _LOCK):  # while this is held, no other process deletes the new folder before it is locked
            _delete_abandoned(root)
            folder = root / f"{os.getpid()}-{secrets.token_hex(4)}"
            folder.mkdir(mode=0o700)
            stack.callback(shutil.rmtree, folder, ignore_errors=True)
            stack.enter_context(_lock(folder / _LOCK))
        yield folder


def _delete_abandoned(root: Path) -> None:
    for entry in root.iterdir():
        if entry.is_dir() and not _is_locked(entry / _LOCK):
            shutil.rmtree(entry, ignore_errors=True)
        elif entry.is_file() and entry.name != _LOCK:
            entry.unlink(missing_ok=True)


@contextmanager
def _lock(path: Path) -> Iterator[IO[bytes]]:
    with path.open("wb") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield handle


def _is_locked(path: Path) -> bool:
    try:
        with path.open("rb") as handle:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False
