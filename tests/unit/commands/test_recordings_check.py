"""`penstock recordings check`: what it refuses; tests/unit/commands/test_drift_check.py has what it finds."""

from pathlib import Path

from tests.command_line import penstock


def test_a_file_that_is_no_recording_is_refused_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "notes.json").write_text('{"penstock_recording": 1}')
    ended = penstock("recordings", "check", tmp_path)
    assert (ended.status, "notes.json" in ended.err) == (1, True)


def test_a_folder_without_recordings_has_nothing_to_check(tmp_path: Path) -> None:
    ended = penstock("recordings", "check", tmp_path)
    assert (ended.status, "0 recordings" in ended.err) == (0, True)
