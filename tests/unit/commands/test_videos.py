"""`penstock video`: wait, save, fetch again."""

import json
from pathlib import Path

from tests.fake_providers import faults
from tests.stories.processes import Installation
from tests.unit.commands.conftest import Command


def test_a_video_is_awaited_and_saved_and_can_be_fetched_again(run: Command, folder: Path) -> None:
    ended = run("video", "a train", "-m", "video-1", "--seconds", "4", "--size", "1280x720", "-o", "train.mp4")
    assert ended.status == 0, ended.err
    video = (folder / "train.mp4").read_bytes()
    assert video[4:8] == b"ftyp"
    (record,) = json.loads(run("requests", "--limit", "1", "--json").out)["data"]
    ended = run("video", "--resume", record["id"], "--json", "-o", "again.mp4")
    assert json.loads(ended.out)["files"] == ["again.mp4"]
    assert (folder / "again.mp4").read_bytes() == video
    assert sorted(path.name for path in folder.iterdir()) == ["again.mp4", "train.mp4"], "no unfinished file is left"


def test_a_video_that_fails_says_why(run: Command, folder: Path, served_installation: Installation) -> None:
    assert served_installation.lab
    served_installation.lab.videos.next(faults.video_states("queued", "failed", code="moderation_blocked"))
    ended = run("video", "a train", "-m", "video-1", "-o", "train.mp4")
    assert ended.status == 1
    assert "(CONTENT_POLICY_VIOLATION)" in ended.err
    assert list(folder.iterdir()) == []
