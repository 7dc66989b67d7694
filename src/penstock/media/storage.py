"""What a place for files can do, and the place that needs nothing else: a local folder."""

import asyncio
import os
import re
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from io import BufferedReader
from pathlib import Path
from typing import NamedTuple, Protocol

from penstock.errors import StorageUnavailable
from penstock.event_loop import in_file_thread
from penstock.long_bodies.buffers import Buffer
from penstock.media.file_writing import UNFINISHED_SUFFIX, FileWriter, NewFile, name_new

_KEY = re.compile(r"[a-z0-9_]+(?:/[a-z0-9_]+)*")
RECORDING_FILE_PREFIX = "rfl_"  # of the ids of recordings' files; those of requests begin with `med_`
CHUNK_BYTES = 256 * 1024
MAX_URL_SECONDS = 7 * 86_400  # S3 signs none for longer; retrieving the generation gives a new one
CANNOT_STORE = "The file could not be stored."
_CANNOT_READ = "The stored file could not be read."
_CANNOT_DELETE = "The stored file could not be deleted."


class FileMissing(Exception):
    """There is no file with this key."""


class FileExists(Exception):
    """There is a file with this key already."""


class StoredFile(NamedTuple):
    """One line of a listing."""

    key: str
    size_bytes: int
    age_seconds: float


class Storage(Protocol):
    """A place for files; every method raises StorageUnavailable when it fails."""

    async def create(self, key: str, data: Buffer, content_type: str) -> None:
        """Store a new file; durable when this returns. Raises FileExists, and changes nothing, if the key is taken."""

    async def replace(self, key: str, data: Buffer | Path, content_type: str) -> None:
        """Store a file; durable when this returns. Only for the owner of the key, which may have stored it before.

        The owner is the attempt, request or recording from whose id the gateway made the key: after a crash it stores
        the same file again. A file that is given as a path is moved, not copied, where that is possible.
        """

    async def copy(self, source: str, key: str) -> None:
        """Store a copy of a file, as `replace` would, without reading the whole file into memory; raise FileMissing."""

    def read(self, key: str, start: int, length: int) -> AsyncIterator[bytes]:
        """Yield a part of a file in chunks; raise FileMissing when there is none."""

    async def delete(self, key: str) -> bool:
        """Delete a file; return whether there was one."""

    async def signed_url(self, key: str, seconds: int) -> str | None:
        """Return a URL at which the object store itself serves the file; None when the gateway has to."""

    async def list_files(self) -> list[StoredFile]:
        """List every file."""

    async def delete_unfinished(self, older_than_seconds: float = 0) -> None:
        """Delete files that killed processes left half written; younger ones may belong to a running process."""


class Folder:
    """Files in a local folder: each is written to a temporary name, flushed, and renamed when it is complete."""

    def __init__(self, root: Path) -> None:
        self._root = root
        root.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._writer = FileWriter(root)

    async def create(self, key: str, data: Buffer, content_type: str) -> None:
        try:
            await self._writer.write(NewFile(self._place(key), data, name_new))
        except FileExistsError:
            raise FileExists(key) from None
        except OSError as error:
            raise StorageUnavailable(CANNOT_STORE) from error

    async def replace(self, key: str, data: Buffer | Path, content_type: str) -> None:
        try:
            await self._writer.write(NewFile(self._place(key), data, os.rename))
        except OSError as error:
            raise StorageUnavailable(CANNOT_STORE) from error

    async def copy(self, source: str, key: str) -> None:
        path = self._path(source)
        try:
            await self._writer.write(NewFile(self._place(key), path, os.rename, keeps_source=True))
        except OSError as error:
            if isinstance(error, FileNotFoundError | NotADirectoryError) and not path.exists():
                raise FileMissing(source) from None
            raise StorageUnavailable(CANNOT_STORE) from error

    async def read(self, key: str, start: int, length: int) -> AsyncIterator[bytes]:
        path = self._path(key)
        try:
            source = await _open(path)
        except (FileNotFoundError, NotADirectoryError):
            raise FileMissing(key) from None
        except OSError as error:
            raise StorageUnavailable(_CANNOT_READ) from error
        with source:
            source.seek(start)
            while length > 0:
                chunk = await in_file_thread(source.read, min(length, CHUNK_BYTES))
                if not chunk:
                    return
                length -= len(chunk)
                yield chunk

    async def delete(self, key: str) -> bool:
        try:
            await in_file_thread(self._path(key).unlink)
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError as error:
            raise StorageUnavailable(_CANNOT_DELETE) from error
        return True

    async def signed_url(self, key: str, seconds: int) -> str | None:
        return None

    async def list_files(self) -> list[StoredFile]:
        return await asyncio.to_thread(self._list_files)

    def _list_files(self) -> list[StoredFile]:
        files = []
        now = time.time()
        for path in self._root.rglob("*"):
            with suppress(FileNotFoundError):
                if path.is_file() and not path.name.endswith(UNFINISHED_SUFFIX):
                    status = path.stat()
                    key = path.relative_to(self._root).as_posix()
                    files.append(StoredFile(key, status.st_size, now - status.st_mtime))
        return files

    async def delete_unfinished(self, older_than_seconds: float = 0) -> None:
        await asyncio.to_thread(self._delete_unfinished, time.time() - older_than_seconds)

    def _delete_unfinished(self, before: float) -> None:
        for path in self._root.rglob(f"*{UNFINISHED_SUFFIX}"):
            with suppress(FileNotFoundError):
                if path.stat().st_mtime <= before:
                    path.unlink()

    def _path(self, key: str) -> Path:
        return Path(self._place(key))

    def _place(self, key: str) -> str:
        if not _KEY.fullmatch(key):
            raise ValueError(f"not a key: {key!r}")
        return f"{self._root}/{key}"


def storage_key(file_id: str) -> str:
    """Return the key of a file: a folder named by two random characters of the id, so that no folder grows too large.

    They are the two before the last; the last two only number the outputs of a generation. The files of recordings are
    in a folder of their own.
    """
    folder = "recordings/" if file_id.startswith(RECORDING_FILE_PREFIX) else ""
    return f"{folder}{file_id[-4:-2]}/{file_id}"


async def _open(path: Path) -> BufferedReader:
    """Open a file for reading, in a thread; if the caller is cancelled meanwhile, it is closed again."""
    opening = in_file_thread(path.open, "rb")
    try:
        return await asyncio.shield(opening)
    except asyncio.CancelledError:
        opening.add_done_callback(_close_opened)
        raise


def _close_opened(opening: "asyncio.Future[BufferedReader]") -> None:
    if opening.exception() is None:
        opening.result().close()
