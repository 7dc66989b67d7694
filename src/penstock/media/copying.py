"""Copy stored files to a folder, and compare each with its SHA-256 on the way."""

import asyncio
import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from penstock.errors import StorageUnavailable
from penstock.event_loop import cancel_and_wait
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

    Raises StorageUnavailable, which names the file, at the first one that cannot be read or written.
    """
    target = Folder(folder)
    copied = CopiedFiles()
    left = iter(files)
    workers = [asyncio.create_task(_copy_files(source, left, target, folder, copied)) for _ in range(_AT_ONCE)]
    try:
        await asyncio.gather(*workers)
    finally:
        await cancel_and_wait(workers)
    return copied


async def _copy_files(
    source: Storage, left: Iterator[FileDigest], target: Folder, folder: Path, copied: CopiedFiles
) -> None:
    """Copy one file after another until none is left; several of these share one iterator."""
    for file in left:
        await _copy_file(source, file, target, folder, copied)


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
    except (StorageUnavailable, OSError) as error:
        raise StorageUnavailable(f"The file {file.id} could not be copied: {_reason(error)}") from error
    finally:
        draft.unlink(missing_ok=True)
    copied.files += 1
    copied.size_bytes += size_bytes
    if digest.digest() != file.sha256:
        copied.damaged.append(file.id)


def _reason(error: Exception) -> str:
    """The words of the system, such as "Permission denied", where the error has them."""
    cause = error.__cause__ or error
    return (isinstance(cause, OSError) and cause.strerror) or str(cause)
