"""Hold the bytes of a video or a sound while they arrive: few in memory, more in a temporary file."""

import os
import secrets
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

from penstock.event_loop import LONG_FILE_BYTES, in_file_thread
from penstock.media.container import VideoFile, inspect_bytes, inspect_video

_MEMORY_BYTES = LONG_FILE_BYTES  # thousands of videos may end at the same time


class Download:
    """Takes the bytes of a file as they arrive. Leaving the context deletes the temporary file, if there is one."""

    def __init__(self, scratch: Path) -> None:
        self._scratch = scratch
        self._pieces: list[bytes] = []
        self._size_bytes = 0
        self._file: BinaryIO | None = None
        self._path: Path | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None and self._path is not None:
            self._file.close()
            self._path.unlink(missing_ok=True)

    @property
    def size_bytes(self) -> int:
        return self._size_bytes

    def write(self, data: bytes) -> None:
        """Add the next bytes. Raises OSError when the disk is full."""
        self._size_bytes += len(data)
        if self._file is None and self._size_bytes > _MEMORY_BYTES:
            self._open_file()
        if self._file is None:
            self._pieces.append(data)
        else:
            self._file.write(data)

    def _open_file(self) -> None:
        self._path = self._scratch / f"{secrets.token_hex(8)}.part"
        descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        self._file = os.fdopen(descriptor, "wb")
        self._file.writelines(self._pieces)
        self._pieces.clear()

    async def finish(self) -> tuple[VideoFile, bytes | Path]:
        """Return what the complete file is, and its bytes, or the path of the temporary file that has them."""
        if self._file is None or self._path is None:
            data = b"".join(self._pieces)
            return inspect_bytes(data), data
        self._file.close()
        return await in_file_thread(_inspect_path, self._path), self._path

    async def head(self, size_bytes: int) -> bytes:
        """The first bytes of the complete file."""
        return await self._read(size_bytes)

    async def read(self) -> bytes:
        """All bytes of the complete file."""
        return await self._read(-1)

    async def _read(self, size_bytes: int) -> bytes:
        if self._path is None:
            data = b"".join(self._pieces)
            return data if size_bytes < 0 else data[:size_bytes]
        return await in_file_thread(_read_path, self._path, size_bytes)


def _read_path(path: Path, size_bytes: int) -> bytes:
    with path.open("rb") as file:
        return file.read(size_bytes)


def _inspect_path(path: Path) -> VideoFile:
    with path.open("rb") as file:
        return inspect_video(file)
