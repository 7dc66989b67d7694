"""The pytest fixture, used by a separate test file and pytest: first it records, then it replays."""

import subprocess
import sys
from pathlib import Path

from tests.other_plugins import WITHOUT_OTHER_PLUGINS

TEST = """
import base64, json, urllib.request

def call(penstock, body):
    request = urllib.request.Request(
        penstock.base_url + "/images/generations",
        data=json.dumps(body).encode(),
        headers={"authorization": f"Bearer {penstock.api_key}", "content-type": "application/json"},
    )
    with urllib.request.urlopen(request) as response:
        return response.headers["x-service-replay-status"], json.load(response)

def test_image(penstock):
    status, result = call(penstock, {"model": "atelier/sketch", "prompt": "a fox", "size": "64x64",
                                     "response_format": "b64_json"})
    assert base64.b64decode(result["data"][0]["b64_json"]).startswith(b"\\x89PNG")
    assert result["metadata"]["provider"] == "atelier"
    print("status:", status)
"""


def run(folder: Path, *options: str) -> str:
    command = [sys.executable, "-m", "pytest", "-q", "-s", "-p", "no:cacheprovider", "-c", "/dev/null", *options]
    command += [*WITHOUT_OTHER_PLUGINS, "test_fox.py"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def test_recordings_are_written_beside_the_test_and_replayed(tmp_path: Path) -> None:
    (tmp_path / "test_fox.py").write_text(TEST)
    missing = run(tmp_path)
    assert "1 failed" in missing
    assert "404" in missing
    assert "status: recorded" in (recorded := run(tmp_path, "--penstock-record")), recorded
    folder = tmp_path / "recordings" / "test_fox"
    names = sorted(path.suffix for path in folder.iterdir())
    assert names == [".json", ".png"]
    assert "status: replayed" in (replayed := run(tmp_path)), replayed
    assert sorted(path.suffix for path in folder.iterdir()) == names
