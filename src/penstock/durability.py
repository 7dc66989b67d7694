"""Make new and renamed files survive a power failure: one by one, or many with one wait for the disk."""

import ctypes
import os
import re
from pathlib import Path

# On these, syncing the file system is as good as syncing each of its files and folders.
_SYNCED_AS_A_WHOLE = frozenset({"ext4", "xfs"})
_OLDEST_LINUX = (5, 8)  # older ones do not report that data could not be written
_MAX_UNWRITTEN_KIB = 64 * 1024
_UNWRITTEN = re.compile(rb"^(?:Dirty|Writeback): +([0-9]+) kB$", re.MULTILINE)


def sync_folder(folder: Path | str) -> None:
    """Write a folder's list of files to the disk. Call it after creating, renaming or deleting a file in it."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class FileSystem:
    """The file system of a folder, which can be synced as a whole on some systems.

    For many files that takes a tenth of the time of syncing each of them. But it also waits for data that other
    programs have written and that is not on the disk yet: so ask `is_quick_to_sync` first.
    """

    def __init__(self, folder: Path) -> None:
        self.device = folder.stat().st_dev
        self._syncfs = _find_syncfs() if _type_of_device(self.device) in _SYNCED_AS_A_WHOLE else None

    @property
    def can_sync(self) -> bool:
        return self._syncfs is not None

    def is_quick_to_sync(self) -> bool:
        """Whether it can be synced, and little data of the whole machine waits to be written."""
        return self.can_sync and unwritten_kib(Path("/proc/meminfo").read_bytes()) <= _MAX_UNWRITTEN_KIB

    def sync(self, descriptor: int) -> None:
        """Write to the disk all that has been written to the file system of an open file or folder.

        Raises OSError if something could not be written since the descriptor was opened.
        """
        assert self._syncfs is not None, "the caller asked before"
        if self._syncfs(descriptor):
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))


def _find_syncfs() -> "ctypes._NamedFuncPointer | None":
    release = re.match(r"(\d+)\.(\d+)", os.uname().release)
    if release is None or (int(release[1]), int(release[2])) < _OLDEST_LINUX:
        return None
    return getattr(ctypes.CDLL(None, use_errno=True), "syncfs", None)


def _type_of_device(device: int) -> str:
    """The type of the file system on a device; empty if the system does not tell."""
    try:
        mounts = Path("/proc/self/mountinfo").read_text(errors="replace")
    except OSError:
        return ""
    return type_of_mount(mounts, f"{os.major(device)}:{os.minor(device)}")


def type_of_mount(mounts: str, device: str) -> str:
    """Find the type of the file system on a device in the text of `mountinfo`; empty if it is not there."""
    for line in mounts.splitlines():
        place, _, source = line.partition(" - ")
        fields = place.split(" ")
        if len(fields) > 2 and fields[2] == device and source:
            return source.split(" ")[0]
    return ""


def unwritten_kib(memory: bytes) -> int:
    """How much data waits to be written to disks, from the text of `meminfo`."""
    return sum(int(size) for size in _UNWRITTEN.findall(memory))
