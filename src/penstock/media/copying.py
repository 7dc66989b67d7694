"""Copy stored files to a folder, and compare each with its SHA-256 on the way."""

import asyncio
import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from penstock.media.storage import FileMissing, Folder, Storage, storage_key
from penstock.store.base import Row

_AT_ONCE = 8


@dataclass(slots=True)
class CopiedFiles:
    """What became of the files that were to be copied."""

    files: int = 0
    size_bytes: int = 0
    missing: list[str] = field(default_factory=list)  # ids of files that are not there
    damaged: list[str] = field(default_factory=list)  # ids of copied files whose bytes are not those that were stored


async def copy_files(source: Storage, rows: Iterable[Row], folder: Path) -> CopiedFiles:
    """Copy files to a folder that can be used as a storage. `rows` have the `id`, `size_bytes` and `sha256` of each.

    Raises StorageUnavailable when a file can be neither read nor written.
    """
    target = Folder(folder)
    copied = CopiedFiles()
    places = asyncio.Semaphore(_AT_ONCE)

    async def copy(row: Row) -> None:
        async with places:
            await _copy_file(source, row, target, folder, copied)

    async with asyncio.TaskGroup() as group:
        for row in rows:
            group.create_task(copy(row))
    return copied


async def _copy_file(source: Storage, row: Row, target: Folder, folder: Path, copied: CopiedFiles) -> None:
    key = storage_key(row["id"])
    draft = folder / f"{row['id']}.copy"
    digest = hashlib.sha256()
    size_bytes = 0
    try:
        with draft.open("wb") as file:
            async for chunk in source.read(key, 0, row["size_bytes"]):
                digest.update(chunk)
                size_bytes += len(chunk)
                await asyncio.to_thread(file.write, chunk)
        await target.replace(key, draft, "")
    except FileMissing:
        copied.missing.append(row["id"])
        return
    finally:
        draft.unlink(missing_ok=True)
    copied.files += 1
    copied.size_bytes += size_bytes
    if digest.digest() != bytes(row["sha256"]):
        copied.damaged.append(row["id"])
