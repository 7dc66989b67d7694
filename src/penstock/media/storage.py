"""Where files are kept: a local folder written with fsync, or an object store with addresses of its own."""

import asyncio
import os
import re
import secrets
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any, Protocol

import obstore
from obstore.exceptions import BaseError, GenericError, NotFoundError
from obstore.store import from_url

from penstock.errors import StorageUnavailable

_KEY = re.compile(r"[a-z0-9_]+(?:/[a-z0-9_]+)*")
_CHUNK_BYTES = 256 * 1024
_UNFINISHED = ".part"
_RETRIES = {"max_retries": 3, "retry_timeout": timedelta(seconds=20)}
_LONGEST_ADDRESS_SECONDS = 7 * 86_400  # what S3 signs at most; a later look at the video gives a new one


class FileMissing(Exception):
    """No such file."""


class Storage(Protocol):
    """Whole files in, ranges out, under names that we make ourselves."""

    async def put(self, key: str, data: bytes | Path, content_type: str) -> None:
        """Durable when this returns; putting the same key again replaces the file."""

    def read(self, key: str, start: int, length: int) -> AsyncIterator[bytes]: ...

    async def delete(self, key: str) -> bool:
        """Whether there was something to delete."""

    async def address(self, key: str, seconds: int, headers: Mapping[str, str]) -> str | None:
        """Where a caller can fetch the file from the store itself; None when we serve it."""

    async def keys(self) -> list[tuple[str, int, float]]:
        """Every file with its size and age in seconds, for the audit and the sweep of strays."""

    async def tidy(self, older_than_seconds: float = 0) -> None:
        """Remove what killed processes left half written; what is young may be a living one's."""


class Folder:
    """Files in a local folder: written beside, flushed, then renamed, so that a name never shows half a file."""

    def __init__(self, root: Path) -> None:
        self._root = root
        root.mkdir(parents=True, exist_ok=True, mode=0o700)

    async def put(self, key: str, data: bytes | Path, content_type: str) -> None:
        try:
            await asyncio.to_thread(self._put, self._path(key), data)
        except OSError as problem:
            raise StorageUnavailable("There is nowhere to keep the result.") from problem

    @staticmethod
    def _put(path: Path, data: bytes | Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        draft = path.with_name(f"{path.name}.{secrets.token_hex(4)}{_UNFINISHED}")
        try:
            with draft.open("wb") as target:
                if isinstance(data, Path):
                    with data.open("rb") as source:
                        while chunk := source.read(_CHUNK_BYTES):
                            target.write(chunk)
                else:
                    target.write(data)
                target.flush()
                os.fsync(target.fileno())
            draft.rename(path)
        except BaseException:
            draft.unlink(missing_ok=True)
            raise
        _flush(path.parent)

    async def read(self, key: str, start: int, length: int) -> AsyncIterator[bytes]:
        path = self._path(key)
        try:
            source = await asyncio.to_thread(path.open, "rb")
        except (FileNotFoundError, NotADirectoryError):
            raise FileMissing(key) from None
        except OSError as problem:
            raise StorageUnavailable("The store of files cannot be read.") from problem
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
        except OSError as problem:
            raise StorageUnavailable("The store of files cannot be changed.") from problem
        return True

    async def address(self, key: str, seconds: int, headers: Mapping[str, str]) -> str | None:
        return None

    async def keys(self) -> list[tuple[str, int, float]]:
        return await asyncio.to_thread(self._keys)

    def _keys(self) -> list[tuple[str, int, float]]:
        found = []
        now = time.time()
        for path in self._root.rglob("*"):
            with suppress(FileNotFoundError):
                if path.is_file() and not path.name.endswith(_UNFINISHED):
                    facts = path.stat()
                    found.append((path.relative_to(self._root).as_posix(), facts.st_size, now - facts.st_mtime))
        return found

    async def tidy(self, older_than_seconds: float = 0) -> None:
        await asyncio.to_thread(self._tidy, time.time() - older_than_seconds)

    def _tidy(self, before: float) -> None:
        for stray in self._root.rglob(f"*{_UNFINISHED}"):
            with suppress(FileNotFoundError):
                if stray.stat().st_mtime <= before:
                    stray.unlink()

    def _path(self, key: str) -> Path:
        if not _KEY.fullmatch(key):
            raise ValueError(f"not a key: {key!r}")
        return self._root / key


def _flush(folder: Path) -> None:
    """A rename is durable only once its folder is."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


class Bucket:
    """An object store: S3 and whatever speaks it, Google's or Azure's."""

    def __init__(self, url: str, options: Mapping[str, str]) -> None:
        # Which options fit depends on the scheme of the address; the library checks them at run time.
        self._store: Any = from_url(  # type: ignore[call-overload]
            url, config=dict(options), client_options={"allow_http": True}, retry_config=_RETRIES
        )

    async def put(self, key: str, data: bytes | Path, content_type: str) -> None:
        try:
            with _reaching():
                await obstore.put_async(self._store, key, data, attributes={"Content-Type": content_type})
        except FileMissing as problem:  # of the bucket, not of a file
            raise StorageUnavailable("There is nowhere to keep the result.") from problem

    async def read(self, key: str, start: int, length: int) -> AsyncIterator[bytes]:
        if not length:
            return
        with _reaching():
            found, skip = await self._part(key, start, length)
            async for chunk in found.stream(min_chunk_size=_CHUNK_BYTES):
                piece = bytes(chunk)[skip : skip + length]
                skip, length = max(0, skip - len(chunk)), length - len(piece)
                if piece:
                    yield piece
                if not length:
                    return

    async def _part(self, key: str, start: int, length: int) -> tuple[Any, int]:
        """A stream that holds the part, and how much comes before it: not every server that speaks S3 cuts files."""
        try:
            return await obstore.get_async(self._store, key, options={"range": (start, start + length)}), 0
        except GenericError as problem:
            if "NotPartial" not in str(problem):
                raise
        return await obstore.get_async(self._store, key), start

    async def delete(self, key: str) -> bool:
        with suppress(FileMissing), _reaching():
            await obstore.head_async(self._store, key)
            await obstore.delete_async(self._store, key)
            return True
        return False

    async def address(self, key: str, seconds: int, headers: Mapping[str, str]) -> str | None:
        until = timedelta(seconds=min(seconds, _LONGEST_ADDRESS_SECONDS))
        with _reaching():
            signed: str = await obstore.sign_async(self._store, "GET", key, until)
        return signed

    async def keys(self) -> list[tuple[str, int, float]]:
        now = time.time()
        with _reaching():
            return [
                (str(one["path"]), int(one["size"]), now - one["last_modified"].timestamp())
                async for page in obstore.list(self._store)
                for one in page
            ]

    async def tidy(self, older_than_seconds: float = 0) -> None:
        """Nothing: an object is there whole or not at all."""


@contextmanager
def _reaching() -> Iterator[None]:
    """The library's errors in our words."""
    try:
        yield
    except (NotFoundError, FileNotFoundError) as problem:
        raise FileMissing from problem
    except (BaseError, OSError) as problem:
        raise StorageUnavailable("The store of files cannot be reached.") from problem


def key_of(media_id: str) -> str:
    """Spread over folders by the end of what is random in an id, so that none grows without bound; the last two of an
    output's only number it.
    """
    return f"{media_id[-4:-2]}/{media_id}"


def open_storage(media: str, options: Mapping[str, str], data: Path) -> Storage:
    return Bucket(media, options) if media else Folder(data / "media")
