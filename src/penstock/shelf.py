"""Where files are kept: a local folder written with fsync, or an object store with addresses of its own."""

import asyncio
import os
import re
import secrets
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any, Protocol

import obstore
from obstore.store import from_url

from penstock.errors import StorageUnavailable

_KEY = re.compile(r"[a-z0-9_]+(?:/[a-z0-9_]+)*")
_CHUNK_BYTES = 256 * 1024
_UNFINISHED = ".part"


class Missing(Exception):
    """No such file."""


class Shelf(Protocol):
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


class Folder:
    """Files in a local folder: written beside, flushed, then renamed, so that a name never shows half a file."""

    def __init__(self, root: Path) -> None:
        self._root = root
        root.mkdir(parents=True, exist_ok=True, mode=0o700)
        for stray in root.rglob(f"*{_UNFINISHED}"):
            stray.unlink(missing_ok=True)

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
        except FileNotFoundError:
            raise Missing(key) from None
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
        except FileNotFoundError:
            return False
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
        self._store: Any = from_url(url, config=dict(options), client_options={"allow_http": True})  # type: ignore[call-overload]

    async def put(self, key: str, data: bytes | Path, content_type: str) -> None:
        try:
            await obstore.put_async(self._store, key, data, attributes={"Content-Type": content_type})
        except Exception as problem:
            raise StorageUnavailable("There is nowhere to keep the result.") from problem

    async def read(self, key: str, start: int, length: int) -> AsyncIterator[bytes]:
        if not length:
            return
        try:
            found = await obstore.get_async(self._store, key, options={"range": (start, start + length)})
        except FileNotFoundError:
            raise Missing(key) from None
        async for chunk in found.stream(min_chunk_size=_CHUNK_BYTES):
            yield bytes(chunk)

    async def delete(self, key: str) -> bool:
        try:
            await obstore.head_async(self._store, key)
        except FileNotFoundError:
            return False
        await obstore.delete_async(self._store, key)
        return True

    async def address(self, key: str, seconds: int, headers: Mapping[str, str]) -> str | None:
        signed: str = await obstore.sign_async(self._store, "GET", key, timedelta(seconds=seconds))
        return signed

    async def keys(self) -> list[tuple[str, int, float]]:
        now = time.time()
        return [
            (str(one["path"]), int(one["size"]), now - one["last_modified"].timestamp())
            async for page in obstore.list(self._store)
            for one in page
        ]


def key_of(media_id: str) -> str:
    """Spread over folders by the random end of the id, so that none grows without bound."""
    return f"{media_id[-2:]}/{media_id}"


def open_shelf(media: str, options: Mapping[str, str], data: Path) -> Shelf:
    return Bucket(media, options) if media else Folder(data / "media")
