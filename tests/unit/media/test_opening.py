"""The settings decide where files are stored."""

from pathlib import Path

import pytest

from penstock import package_extras
from penstock.media.bucket import Bucket
from penstock.media.opening import open_storage
from penstock.media.storage import Folder, Storage
from penstock.store.base import StorageMisconfigured


def test_the_url_decides_between_folder_and_bucket(bucket: Storage, tmp_path: Path) -> None:
    assert isinstance(open_storage("", {}, tmp_path), Folder)
    assert isinstance(bucket, Bucket)


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(package_extras, "find_spec", lambda name: None)
    assert isinstance(open_storage("", {}, tmp_path), Folder)
    with pytest.raises(package_extras.ExtraMissing, match=r"pip install '\.\[s3\]'"):
        open_storage("s3://bucket", {}, tmp_path)


@pytest.mark.parametrize(
    ("url", "options"), [("nonesuch://bucket", {}), ("s3://bucket", {"nonesuch": "1"}), ("no url", {})]
)
def test_a_store_that_cannot_be_used_is_one_line(url: str, options: dict[str, str], tmp_path: Path) -> None:
    with pytest.raises(StorageMisconfigured, match="or media_options cannot be used: ") as raised:
        open_storage(url, options, tmp_path)
    assert "\n" not in str(raised.value)
