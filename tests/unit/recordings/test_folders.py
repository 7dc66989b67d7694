"""Recording files in folders; test_files.py writes and reads whole ones."""

import json
from pathlib import Path

from penstock.recordings import folders


def test_names_that_lead_to_another_folder_are_ignored(tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("secret")
    inner = tmp_path / "recordings"
    inner.mkdir()
    (inner / "x.json").write_text(json.dumps({"files": [{"file": "../secret.txt"}, {"file": str(tmp_path)}]}))
    _, media = folders.load_recording(inner / "x.json")
    assert media == {}
