"""Store files in a local folder or in an object store."""

import asyncio
import errno
import os
import re
import secrets
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, GenericError, NotFoundError
from obstore.store import from_url

from penstock.durability import sync_folder
from penstock.errors import StorageUnavailable
from penstock.store.base import StorageMisconfigured

_KEY = re.compile(r"[a-z0-9_]+(?:/[a-z0-9_]+)*")
RECORDING_FILE_PREFIX = "rfl_"  # of the ids of recordings' files; those of requests begin with `med_`
_CHUNK_BYTES = 256 * 1024
_UNFINISHED_SUFFIX = ".part"
_RETRIES = {"max_retries": 3, "retry_timeout": timedelta(seconds=20)}
MAX_URL_SECONDS = 7 * 86_400  # S3 signs none for longer; retrieving the generation gives a new one
_CANNOT_STORE = "The file could not be stored."
_CANNOT_READ = "The stored file could not be read."
_CANNOT_DELETE = "The stored file could not be deleted."
_CANNOT_REACH = "The object store could not be reached."


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

    async def create(self, key: str, data: bytes, content_type: str) -> None:
        """Store a new file; durable when this returns. Raises FileExists, and changes nothing, if the key is taken."""

    async def replace(self, key: str, data: bytes | Path, content_type: str) -> None:
        """Store a file; durable when this returns. Only for the owner of the key, which may have stored it before.

        The owner is the attempt, request or recording from whose id the gateway made the key: after a crash it stores
        the same file again. A file that is given as a path is moved, not copied, where that is possible.
        """

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

    async def create(self, key: str, data: bytes, content_type: str) -> None:
        try:
            await asyncio.to_thread(_write_file, self._path(key), data, _name_new)
        except FileExistsError:
            raise FileExists(key) from None
        except OSError as error:
            raise StorageUnavailable(_CANNOT_STORE) from error

    async def replace(self, key: str, data: bytes | Path, content_type: str) -> None:
        try:
            await asyncio.to_thread(_write_file, self._path(key), data, Path.rename)
        except OSError as error:
            raise StorageUnavailable(_CANNOT_STORE) from error

    async def read(self, key: str, start: int, length: int) -> AsyncIterator[bytes]:
        path = self._path(key)
        try:
            source = await asyncio.to_thread(path.open, "rb")
        except (FileNotFoundError, NotADirectoryError):
            raise FileMissing(key) from None
        except OSError as error:
            raise StorageUnavailable(_CANNOT_READ) from error
        with source:
            source.seek(start)
            while length > 0:
                chunk = await asyncio.to_thread(source.read, min(length, _CHUNK_BYTES))
                if not chunk:
                    return
                length -= len(chunk)
                yield chunk

    async def delete(self, key: str) -> bool:
        try:
            await asyncio.to_thread(self._path(key).unlink)
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
                if path.is_file() and not path.name.endswith(_UNFINISHED_SUFFIX):
                    status = path.stat()
                    key = path.relative_to(self._root).as_posix()
                    files.append(StoredFile(key, status.st_size, now - status.st_mtime))
        return files

    async def delete_unfinished(self, older_than_seconds: float = 0) -> None:
        await asyncio.to_thread(self._delete_unfinished, time.time() - older_than_seconds)

    def _delete_unfinished(self, before: float) -> None:
        for path in self._root.rglob(f"*{_UNFINISHED_SUFFIX}"):
            with suppress(FileNotFoundError):
                if path.stat().st_mtime <= before:
                    path.unlink()

    def _path(self, key: str) -> Path:
        if not _KEY.fullmatch(key):
            raise ValueError(f"not a key: {key!r}")
        return self._root / key


def _write_file(path: Path, data: bytes | Path, give_name: Callable[[Path, Path], object]) -> None:
    """Write a draft beside the file and give it its name when it is complete and on the disk."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    draft = path.with_name(f"{path.name}.{secrets.token_hex(4)}{_UNFINISHED_SUFFIX}")
    try:
        if not (isinstance(data, Path) and _move(data, draft)):
            _write_draft(draft, data)
        give_name(draft, path)
    finally:
        draft.unlink(missing_ok=True)  # it is still there if something failed, or if the name is a link to it
    sync_folder(path.parent)


def _move(source: Path, draft: Path) -> bool:
    """Move a complete file, so that it needs no room twice. Returns False if it is on another disk."""
    with source.open("rb") as opened:
        os.fsync(opened.fileno())
    try:
        source.rename(draft)
    except OSError as error:
        if error.errno == errno.EXDEV:
            return False
        raise
    return True


def _write_draft(draft: Path, data: bytes | Path) -> None:
    with draft.open("wb") as target:
        if isinstance(data, Path):
            with data.open("rb") as source:
                while chunk := source.read(_CHUNK_BYTES):
                    target.write(chunk)
        else:
            target.write(data)
        target.flush()
        os.fsync(target.fileno())


def _name_new(draft: Path, path: Path) -> None:
    """Give a draft a name that no file has; raise FileExistsError otherwise."""
    try:
        os.link(draft, path)
    except FileExistsError:
        raise
    except OSError:  # a file system without links, where two processes could do this at the same moment
        if path.exists():
            raise FileExistsError(path) from None
        draft.rename(path)


class Bucket:
    """Files in an object store: S3 or a compatible server, Google Cloud Storage, or Azure Blob Storage."""

    def __init__(self, url: str, options: Mapping[str, str]) -> None:
        # Which options are valid depends on the scheme of the URL; the library checks them at run time.
        try:
            self._store: Any = from_url(  # type: ignore[call-overload]
                url, config=dict(options), client_options={"allow_http": True}, retry_config=_RETRIES
            )
        except (BaseError, ValueError) as problem:
            reason = str(problem).partition("\n")[0]
            raise StorageMisconfigured(f"media = {url!r} or media_options cannot be used: {reason}") from None

    async def create(self, key: str, data: bytes, content_type: str) -> None:
        # Some servers that speak S3 ignore or refuse the condition of a conditional write, so look first.
        if await self._exists(key):
            raise FileExists(key)
        try:
            await self._put(key, data, content_type, "create")
        except AlreadyExistsError:
            raise FileExists(key) from None
        except StorageUnavailable as error:
            if "NotImplemented" not in str(error.__cause__):
                raise
            await self._put(key, data, content_type, "overwrite")  # a server that refuses conditional writes

    async def replace(self, key: str, data: bytes | Path, content_type: str) -> None:
        await self._put(key, data, content_type, "overwrite")

    async def _put(self, key: str, data: bytes | Path, content_type: str, mode: Literal["create", "overwrite"]) -> None:
        try:
            with _translated_errors():
                await obstore.put_async(self._store, key, data, attributes={"Content-Type": content_type}, mode=mode)
        except FileMissing as error:  # here it means that the bucket is missing
            raise StorageUnavailable(_CANNOT_STORE) from error

    async def _exists(self, key: str) -> bool:
        with suppress(FileMissing), _translated_errors():
            await obstore.head_async(self._store, key)
            return True
        return False

    async def read(self, key: str, start: int, length: int) -> AsyncIterator[bytes]:
        if not length:
            return
        with _translated_errors():
            response, skip = await self._get_range(key, start, length)
            async for chunk in response.stream(min_chunk_size=_CHUNK_BYTES):
                piece = bytes(chunk)[skip : skip + length]
                skip = max(0, skip - len(chunk))
                length -= len(piece)
                if piece:
                    yield piece
                if not length:
                    return

    async def _get_range(self, key: str, start: int, length: int) -> tuple[Any, int]:
        """Return a response that contains the range, and how many bytes come before it.

        Some servers that speak S3 do not support ranges and send the whole file.
        """
        try:
            return await obstore.get_async(self._store, key, options={"range": (start, start + length)}), 0
        except GenericError as error:
            if "NotPartial" not in str(error):
                raise
        return await obstore.get_async(self._store, key), start

    async def delete(self, key: str) -> bool:
        if not await self._exists(key):
            return False
        with _translated_errors():
            await obstore.delete_async(self._store, key)
        return True

    async def signed_url(self, key: str, seconds: int) -> str | None:
        duration = timedelta(seconds=min(seconds, MAX_URL_SECONDS))
        with _translated_errors():
            url: str = await obstore.sign_async(self._store, "GET", key, duration)
        return url

    async def list_files(self) -> list[StoredFile]:
        now = time.time()
        with _translated_errors():
            return [
                StoredFile(str(item["path"]), int(item["size"]), now - item["last_modified"].timestamp())
                async for page in obstore.list(self._store)
                for item in page
            ]

    async def delete_unfinished(self, older_than_seconds: float = 0) -> None:
        """Do nothing: an object store has no half written files."""


@contextmanager
def _translated_errors() -> Iterator[None]:
    """Raise the errors of the library as FileMissing or StorageUnavailable."""
    try:
        yield
    except (NotFoundError, FileNotFoundError) as error:
        raise FileMissing from error
    except AlreadyExistsError:
        raise
    except (BaseError, OSError) as error:
        raise StorageUnavailable(_CANNOT_REACH) from error


def storage_key(file_id: str) -> str:
    """Return the key of a file: a folder named by two random characters of the id, so that no folder grows too large.

    They are the two before the last; the last two only number the outputs of a generation. The files of recordings are
    in a folder of their own.
    """
    folder = "recordings/" if file_id.startswith(RECORDING_FILE_PREFIX) else ""
    return f"{folder}{file_id[-4:-2]}/{file_id}"


def open_storage(media: str, options: Mapping[str, str], data: Path) -> Storage:
    """Open the object store at the URL `media`; without one, the folder `media` in the data folder."""
    return Bucket(media, options) if media else Folder(data / "media")
