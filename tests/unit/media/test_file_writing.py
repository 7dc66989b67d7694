"""Files that are written together are durable, each for itself, with few waits for the disk."""

import asyncio
import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from penstock import durability, event_loop
from penstock.media import file_writing
from penstock.media.file_writing import FileWriter, NewFile


class Disk:
    """Notes which files were there, drafts and complete ones, at each sync; all that is synced as a whole may fail."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root = root
        self.can_sync = True
        self.is_quick = True
        self.fails = False
        self.device = root.stat().st_dev
        self.whole: list[tuple[int, int]] = []  # drafts and complete files at each sync of everything
        self.single: list[str] = []
        monkeypatch.setattr(file_writing, "FileSystem", lambda _: self)
        fsync = os.fsync

        def sync_one(descriptor: int) -> None:
            self.single.append(Path(f"/proc/self/fd/{descriptor}").readlink().name)
            fsync(descriptor)

        monkeypatch.setattr(os, "fsync", sync_one)

    def is_quick_to_sync(self) -> bool:
        return self.is_quick

    def sync(self, descriptor: int) -> None:
        assert os.path.samestat(os.fstat(descriptor), self.root.stat())
        names = [path.name for path in self.root.rglob("*") if path.is_file()]
        drafts = sum(name.endswith(".part") for name in names)
        self.whole.append((drafts, len(names) - drafts))
        if self.fails:
            raise OSError("the disk failed")


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Disk:
    root = tmp_path / "media"
    for folder in "ab":
        (root / folder).mkdir(parents=True)
    return Disk(root, monkeypatch)


async def write_all(disk: Disk, count: int, give_name: Callable[[str, str], object] = os.rename) -> list[object]:
    """Write one file, and while it is written `count` others."""
    writer = FileWriter(disk.root)
    files = [NewFile(f"{disk.root}/{'ab'[number % 2]}/{number}", b"%d" % number, give_name) for number in range(count)]
    first = NewFile(f"{disk.root}/a/first", b"first", os.rename)
    return list(await asyncio.gather(*map(writer.write, [first, *files]), return_exceptions=True))


async def test_files_that_come_together_are_synced_as_a_whole(disk: Disk) -> None:
    """Drafts are on the disk before they get their names, and the names are before the caller goes on."""
    assert await write_all(disk, 7) == [None] * 8
    assert disk.whole == [(8, 0), (0, 8)]
    assert disk.single == []
    assert {path.name: path.read_bytes() for path in disk.root.rglob("?") if path.is_file()} == {
        f"{number}": b"%d" % number for number in range(7)
    }


@pytest.mark.parametrize("reason", ["failed", "slow", "few", "another disk", "impossible"])
async def test_files_are_synced_one_by_one_where_a_whole_sync_does_not_do(disk: Disk, reason: str) -> None:
    disk.fails = reason == "failed"
    disk.is_quick = reason != "slow"
    disk.can_sync = reason != "impossible"
    disk.device += reason == "another disk"
    count = 0 if reason == "few" else 6
    assert await write_all(disk, count) == [None] * (count + 1)
    assert len(disk.whole) == (2 if reason in ("failed", "another disk") else 0)
    drafts = [name.partition(".")[0] for name in disk.single if name.endswith(".part")]
    assert sorted(drafts) == sorted(["first", *map(str, range(count))])
    folders = {"a", "b"} if count else {"a"}
    assert folders == {name for name in disk.single if not name.endswith(".part")}


async def test_files_that_are_synced_one_by_one_are_shared_out_among_the_threads(
    disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    shares: list[int] = []

    def in_file_thread(write: Callable[..., object], files: list[NewFile]) -> object:
        shares.append(len(files))
        return event_loop.in_file_thread(write, files)

    monkeypatch.setattr(file_writing, "in_file_thread", in_file_thread)
    disk.is_quick = False
    assert await write_all(disk, 19) == [None] * 20
    assert sum(shares) == 20
    assert max(shares) == 3
    assert len(shares) <= event_loop.FILE_THREADS


@pytest.mark.parametrize("is_quick", [True, False])
async def test_a_file_that_cannot_be_written_does_not_harm_the_others(disk: Disk, is_quick: bool) -> None:
    disk.is_quick = is_quick
    (disk.root / "b").rmdir()
    (disk.root / "b").write_text("in the way")
    outcomes = await write_all(disk, 6)
    assert [isinstance(outcome, OSError) for outcome in outcomes] == [False, *[False, True] * 3]
    assert sorted(path.name for path in (disk.root / "a").iterdir()) == ["0", "2", "4", "first"]


async def test_when_nothing_can_be_opened_each_caller_gets_an_error_of_its_own(disk: Disk) -> None:
    """A caller that saw a cancellation instead would end as if it had been cancelled itself."""
    disk.is_quick_to_sync = fail  # type: ignore[method-assign]
    outcomes = await write_all(disk, 6)
    assert [type(outcome) for outcome in outcomes] == [OSError] * 7
    assert len(set(map(id, outcomes))) == 7


def fail() -> bool:
    raise OSError(errno.EMFILE, "Too many open files")


async def test_a_draft_that_gets_no_name_is_deleted(disk: Disk) -> None:
    (disk.root / "a" / "2").write_text("older")
    outcomes = await write_all(disk, 6, file_writing.name_new)
    assert [type(outcome) for outcome in outcomes].count(FileExistsError) == 1
    assert (disk.root / "a" / "2").read_text() == "older"
    assert not list(disk.root.rglob("*.part"))


async def test_a_cancelled_caller_does_not_stop_the_others(disk: Disk) -> None:
    writer = FileWriter(disk.root)
    files = [NewFile(f"{disk.root}/a/{number}", b"x", os.rename) for number in range(6)]
    tasks = [asyncio.create_task(writer.write(file)) for file in files]
    await asyncio.sleep(0)
    tasks[3].cancel()
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes].count(asyncio.CancelledError) == 1
    await writer.write(NewFile(f"{disk.root}/a/last", b"x", os.rename))
    assert {"0", "1", "2", "4", "5", "last"} <= {path.name for path in (disk.root / "a").iterdir()}


def test_the_type_of_a_file_system_and_what_is_unwritten_are_read_from_the_system(tmp_path: Path) -> None:
    mounts = "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n2 1 0:5 / /srv/data\\040x rw shared:3 - overlay none rw\nodd\n"
    assert [durability.type_of_mount(mounts, device) for device in ("8:1", "0:5", "9:9")] == ["ext4", "overlay", ""]
    memory = b"MemFree:  1 kB\nDirty:           340 kB\nWriteback:         2 kB\nWritebackTmp:      9 kB\n"
    assert durability.unwritten_kib(memory) == 342
    file_system = durability.FileSystem(tmp_path)
    if file_system.can_sync:
        with pytest.raises(OSError, match="Bad file descriptor"):
            file_system.sync(-1)
