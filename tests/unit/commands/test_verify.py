"""`penstock verify`: where files come from, without a gateway."""

import json
from pathlib import Path

import pytest

from tests.command_line import done, penstock
from tests.signed_files import VENDOR_ROOT, damaged, picture, signed_by_vendor


@pytest.fixture
def files(folder: Path) -> Path:
    signed = signed_by_vendor(picture("jpeg"), "image/jpeg")
    (folder / "plain.png").write_bytes(picture("png"))
    (folder / "signed.jpg").write_bytes(signed)
    (folder / "changed.jpg").write_bytes(damaged(signed))
    (folder / "root.pem").write_text(VENDOR_ROOT)
    return folder


def test_files_tell_where_they_come_from(files: Path) -> None:
    rows = done("verify", "plain.png", "signed.jpg").lines
    assert rows[0][:2] == ["plain.png", "none"]
    assert rows[1] == ["signed.jpg", "ai_marked", "Valid", "Penstock (self-made)", "created (lab/image-model)"]
    ended = done("verify", "--json", "signed.jpg", PENSTOCK_PROVENANCE_ANCHORS="root.pem")
    [found] = json.loads(ended.out)
    assert (found["file"], found["content_type"], found["credentials"]["trusted"]) == ("signed.jpg", "image/jpeg", True)
    assert found["explanation"]
    assert not (files / "data").exists(), "no data folder is made"


def test_a_file_that_was_changed_gives_exit_status_1(files: Path) -> None:
    ended = penstock("verify", "plain.png", "changed.jpg")
    assert (ended.status, [row[1] for row in ended.lines]) == (1, ["none", "tampered"])


def test_a_file_that_is_missing_is_named(files: Path) -> None:
    ended = penstock("verify", "nowhere.png")
    assert (ended.status, ended.out) == (1, "")
    assert "nowhere.png" in ended.err
