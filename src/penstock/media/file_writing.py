"""Write files to a local folder so that they survive a power failure, several of them with few waits for the disk."""

import asyncio
import errno
import math
import os
import random
from collections.abc import Callable, Sequence
from contextlib import suppress
from contextvars import Context
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from penstock.durability import FileSystem, sync_folder
from penstock.event_loop import FILE_THREADS, LONG_FILE_BYTES, in_file_thread, settle
from penstock.long_bodies.buffers import Buffer

UNFINISHED_SUFFIX = ".part"
_AT_ONCE = 64  # files that are open at the same time
_WORTH_SYNCING_ALL = 2  # files
_COPY_BYTES = 256 * 1024


class NewFile(NamedTuple):
    """A file that is to be written. One that is given as a path is moved, not copied, where that is possible and
    `keeps_source` does not forbid it.

    Its own path is a text: a `Path` would take three times as long as the rest of the work in Python on a small file.
    """

    path: str
    data: Buffer | Path
    give_name: Callable[[str, str], object]  # gives a complete draft its name
    keeps_source: bool = False


class FileWriter:
    """Writes files to a folder. Small ones that come while others are being written are written together, after those.

    Where it is quick, the file system is synced as a whole for all of them.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._file_system = FileSystem(root)
        self._waiting: list[tuple[NewFile, asyncio.Future[None]]] = []
        self._writing: asyncio.Task[None] | None = None

    async def write(self, file: NewFile) -> None:
        """Write a file; it is durable when this returns. Raises OSError.

        The file may be written although its caller was cancelled.
        """
        if not self._file_system.can_sync or isinstance(file.data, Path) or len(file.data) > LONG_FILE_BYTES:
            (failure,) = await in_file_thread(write_files, [file])
            if failure is not None:
                raise failure
            return
        loop = asyncio.get_running_loop()
        written: asyncio.Future[None] = loop.create_future()
        self._waiting.append((file, written))
        if self._writing is None:
            # An empty context, because the task writes for many callers and not only for the one that starts it.
            self._writing = loop.create_task(self._write_waiting(), context=Context())
        await written

    async def _write_waiting(self) -> None:
        try:
            while self._waiting:
                group = self._waiting[:_AT_ONCE]
                del self._waiting[:_AT_ONCE]
                try:
                    await self._write_group(group)
                finally:
                    for _, written in group:
                        written.cancel()  # those without an outcome: this task was cancelled
        finally:
            self._writing = None
            for _, written in self._waiting:
                written.cancel()
            self._waiting.clear()

    async def _write_group(self, group: Sequence[tuple[NewFile, "asyncio.Future[None]"]]) -> None:
        files = [file for file, _ in group]
        failures: list[BaseException | None]
        try:
            if len(files) >= _WORTH_SYNCING_ALL and self._file_system.is_quick_to_sync():
                failures = [*await in_file_thread(write_files, files, self._root, self._file_system)]
            else:  # several threads sync them at the same time
                share = math.ceil(len(files) / FILE_THREADS)
                starts = range(0, len(files), share)
                shares = [in_file_thread(write_files, files[start : start + share]) for start in starts]
                failures = [failure for outcome in await asyncio.gather(*shares) for failure in outcome]
        except OSError as error:  # for example because no more files can be opened
            failures = [OSError(error.errno, error.strerror) for _ in files]
        for (_, written), failure in zip(group, failures, strict=True):
            settle(written, None, failure)


# ------------------------------------------------------------------------------------------------------- in the thread


class _Draft:
    """A file under a temporary name beside its own."""

    def __init__(self, file: NewFile) -> None:
        self.file = file
        self.device = -1  # known if devices are synced as a whole
        self.failure: Exception | None = None
        # Not from `secrets`: that asks the system, and this thread would have to wait for the interpreter once more.
        self._path = f"{file.path}.{random.getrandbits(32):08x}{UNFINISHED_SUFFIX}"
        self._descriptor = -1

    def step(self, work: Callable[[], None]) -> None:
        """Do the next step, unless one before it failed. After a failure the draft is deleted."""
        if self.failure is not None:
            return
        try:
            work()
        except Exception as error:
            self.failure = error
            self.close()
            with suppress(OSError):
                os.unlink(self._path)

    def fill(self) -> None:
        data = self.file.data
        if not (isinstance(data, Path) and not self.file.keeps_source and self._move(data)):
            self._create(data)

    def _create(self, data: Buffer | Path) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        try:
            self._descriptor = os.open(self._path, flags, 0o666)
        except FileNotFoundError:  # the first file of its folder
            self._make_folder()
            self._descriptor = os.open(self._path, flags, 0o666)
        if isinstance(data, Path):
            with data.open("rb") as source:
                while chunk := source.read(_COPY_BYTES):
                    self._write(chunk)
        else:
            self._write(data)

    def _move(self, source: Path) -> bool:
        """Move a complete file, so that it needs no room twice. Returns False if it is on another disk."""
        try:
            try:
                os.rename(source, self._path)
            except FileNotFoundError:  # the first file of its folder
                self._make_folder()
                os.rename(source, self._path)
        except OSError as error:
            if error.errno == errno.EXDEV:
                return False
            raise
        self._descriptor = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        return True

    def _make_folder(self) -> None:
        folder = Path(self.file.path).parent
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        sync_folder(folder.parent)

    def _write(self, data: Buffer) -> None:
        left = memoryview(data)
        while left:
            left = left[os.write(self._descriptor, left) :]

    def sync(self, synced: frozenset[int]) -> None:
        """Sync the contents, unless they are on a device that was synced as a whole."""
        if synced:
            self.device = os.fstat(self._descriptor).st_dev
        if self.device not in synced:
            os.fsync(self._descriptor)
        self.close()

    def close(self) -> None:
        if self._descriptor >= 0:
            descriptor, self._descriptor = self._descriptor, -1
            os.close(descriptor)

    def name(self) -> None:
        self.file.give_name(self._path, self.file.path)


def write_files(
    files: Sequence[NewFile], root: Path | None = None, file_system: FileSystem | None = None
) -> list[Exception | None]:
    """Write drafts beside the files, and give them their names when they are complete and on the disk.

    Returns for each file why it was not written, or None. With a file system, which is that of `root`, it is synced as
    a whole: once for the drafts and once for the names. If that fails, each file is synced, so that it is known which
    one is not on the disk.
    """
    drafts = [_Draft(file) for file in files]
    with _Sync(root, file_system) as sync:
        for draft in drafts:
            draft.step(draft.fill)
        synced = sync.devices()
        for draft in drafts:
            draft.step(partial(draft.sync, synced))
        for draft in drafts:
            draft.step(draft.name)
        synced = sync.devices()
    folders: dict[str, Exception | None] = {}
    for draft in drafts:
        if draft.failure is None and draft.device not in synced:
            folder = os.path.dirname(draft.file.path)
            if folder not in folders:
                folders[folder] = _sync_failure(folder)
            draft.failure = folders[folder]
    return [draft.failure for draft in drafts]


class _Sync:
    """Syncs a file system, if there is one that can be synced as a whole."""

    def __init__(self, root: Path | None, file_system: FileSystem | None) -> None:
        self._root = root
        self._file_system = file_system
        self._descriptor = -1

    def __enter__(self) -> Self:
        if self._root is not None:  # opened before anything is written: failures since then are reported
            self._descriptor = os.open(self._root, os.O_RDONLY | os.O_CLOEXEC)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)

    def devices(self) -> frozenset[int]:
        """Sync the file system; return the devices whose files need not be synced any more."""
        if self._file_system is None:
            return frozenset()
        try:
            self._file_system.sync(self._descriptor)
        except OSError:
            return frozenset()
        return frozenset({self._file_system.device})


def _sync_failure(folder: str) -> Exception | None:
    try:
        sync_folder(folder)
    except OSError as error:
        return error
    return None


def name_new(draft: str, path: str) -> None:
    """Give a draft a name that no file has; raise FileExistsError otherwise."""
    try:
        os.link(draft, path)
    except FileExistsError:
        raise
    except OSError:  # a file system without links, where two processes could do this at the same moment
        if os.path.exists(path):
            raise FileExistsError(path) from None
        os.rename(draft, path)
    else:
        os.unlink(draft)
