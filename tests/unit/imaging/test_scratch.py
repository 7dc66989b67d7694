"""Folders of living processes stay, those of dead ones go."""

import signal
import subprocess
import sys
from pathlib import Path

from penstock.imaging.scratch import scratch

HOLDER = """
import sys
from pathlib import Path
from penstock.imaging.scratch import scratch
with scratch(Path(sys.argv[1])) as folder:
    (folder / "film.mp4").write_bytes(b"half")
    print(folder, flush=True)
    sys.stdin.read()
"""


def folders(root: Path) -> set[Path]:
    return {path for path in root.iterdir() if path.is_dir()}


def holder(root: Path) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", HOLDER, str(root)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def test_a_folder_of_ones_own(tmp_path: Path) -> None:
    with scratch(tmp_path / "tmp") as one, scratch(tmp_path / "tmp") as other:
        assert folders(tmp_path / "tmp") == {one, other}
        assert one.stat().st_mode & 0o077 == 0
        (one / "half").write_bytes(b"x")
    assert folders(tmp_path / "tmp") == set()


def test_what_older_releases_and_killed_processes_left(tmp_path: Path) -> None:
    (tmp_path / "film").mkdir()
    (tmp_path / "film" / "film.mp4").write_bytes(b"half")
    (tmp_path / "download").write_bytes(b"half")
    with scratch(tmp_path) as mine:
        assert folders(tmp_path) == {mine}
        assert not (tmp_path / "download").exists()


def test_the_living_are_not_disturbed(tmp_path: Path) -> None:
    with holder(tmp_path) as process:
        assert process.stdout is not None
        theirs = Path(process.stdout.readline().strip())
        with scratch(tmp_path) as mine:
            assert folders(tmp_path) == {mine, theirs}
            assert (theirs / "film.mp4").read_bytes() == b"half"
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert theirs.exists()
    with scratch(tmp_path) as mine:
        assert folders(tmp_path) == {mine}
