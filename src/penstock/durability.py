"""Make the names of new and renamed files survive a power failure."""

import os
from pathlib import Path


def sync_folder(folder: Path) -> None:
    """Write a folder's list of files to the disk. Call it after creating, renaming or deleting a file in it."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
