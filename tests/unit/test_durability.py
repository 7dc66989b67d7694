"""The list of files in a folder is written to the disk."""

import os
from pathlib import Path

import pytest

from penstock.durability import sync_folder


def test_the_folder_itself_is_synced_and_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[tuple[int, bool]] = []
    folder = tmp_path.stat()
    monkeypatch.setattr(os, "fsync", lambda handle: synced.append((handle, os.path.samestat(os.fstat(handle), folder))))
    sync_folder(tmp_path)
    ((handle, is_the_folder),) = synced
    assert is_the_folder
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(handle)


def test_a_missing_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        sync_folder(tmp_path / "missing")
