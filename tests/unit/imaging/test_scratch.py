"""Scratch folders of running processes stay, those of dead processes are deleted."""

import signal
import subprocess
import sys
from pathlib import Path

from penstock.imaging.scratch import scratch_folder

PROGRAM = """
import sys
from pathlib import Path
from penstock.imaging.scratch import scratch_folder
with scratch_folder(Path(sys.argv[1])) as folder:
    (folder / "video.mp4").write_bytes(b"part")
    print(folder, flush=True)
    sys.stdin.read()
"""


def folders(root: Path) -> set[Path]:
    return {path for path in root.iterdir() if path.is_dir()}


def start_process(root: Path) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", PROGRAM, str(root)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def test_each_use_has_its_own_private_folder(tmp_path: Path) -> None:
    with scratch_folder(tmp_path / "tmp") as first, scratch_folder(tmp_path / "tmp") as second:
        assert folders(tmp_path / "tmp") == {first, second}
        assert first.stat().st_mode & 0o077 == 0
        (first / "part").write_bytes(b"x")
    assert folders(tmp_path / "tmp") == set()


def test_folders_and_files_without_a_lock_are_deleted(tmp_path: Path) -> None:
    (tmp_path / "abandoned").mkdir()
    (tmp_path / "abandoned" / "video.mp4").write_bytes(b"part")
    (tmp_path / "download").write_bytes(b"part")
    with scratch_folder(tmp_path) as mine:
        assert folders(tmp_path) == {mine}
        assert not (tmp_path / "download").exists()


def test_the_folder_of_a_running_process_stays_until_it_dies(tmp_path: Path) -> None:
    with start_process(tmp_path) as process:
        assert process.stdout is not None
        theirs = Path(process.stdout.readline().strip())
        with scratch_folder(tmp_path) as mine:
            assert folders(tmp_path) == {mine, theirs}
            assert (theirs / "video.mp4").read_bytes() == b"part"
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert theirs.exists()
    with scratch_folder(tmp_path) as mine:
        assert folders(tmp_path) == {mine}
