"""Copy stored files to a folder, and compare each with its SHA-256 on the way."""

import asyncio
import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from penstock.media.rows import FileDigest
from penstock.media.storage import FileMissing, Folder, Storage, storage_key

_AT_ONCE = 8


@dataclass(slots=True)
class CopiedFiles:
    """What became of the files that were to be copied."""

    files: int = 0
    size_bytes: int = 0
    missing: list[str] = field(default_factory=list)  # ids of files that are not there
    damaged: list[str] = field(default_factory=list)  # ids of copied files whose bytes are not those that were stored


async def copy_files(source: Storage, files: Iterable[FileDigest], folder: Path) -> CopiedFiles:
    """Copy files to a folder that can be used as a storage.

    Raises StorageUnavailable when a file can be neither read nor written.
    """
    target = Folder(folder)
    copied = CopiedFiles()
    places = asyncio.Semaphore(_AT_ONCE)

    async def copy(file: FileDigest) -> None:
        async with places:
            await _copy_file(source, file, target, folder, copied)

    async with asyncio.TaskGroup() as group:
        for file in files:
            group.create_task(copy(file))
    return copied


async def _copy_file(source: Storage, file: FileDigest, target: Folder, folder: Path, copied: CopiedFiles) -> None:
    key = storage_key(file.id)
    draft = folder / f"{file.id}.copy"
    digest = hashlib.sha256()
    size_bytes = 0
    try:
        with draft.open("wb") as written:
            async for chunk in source.read(key, 0, file.size_bytes):
                digest.update(chunk)
                size_bytes += len(chunk)
                await asyncio.to_thread(written.write, chunk)
        await target.replace(key, draft, "")
    except FileMissing:
        copied.missing.append(file.id)
        return
    finally:
        draft.unlink(missing_ok=True)
    copied.files += 1
    copied.size_bytes += size_bytes
    if digest.digest() != file.sha256:
        copied.damaged.append(file.id)
