"""The settings decide where files are stored."""

import re
from contextlib import suppress
from pathlib import Path

import obstore
import pytest

from penstock import package_extras
from penstock.media.bucket import _CONNECTION_OPTIONS, Bucket
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
    ("url", "options"),
    [
        ("nonesuch://bucket", {}),
        ("no url", {}),
        ("memory:///", {}),
        ("file:///tmp", {}),
        ("https://files.example.test/bucket", {}),
        ("s3://bucket", {"nonesuch": "1"}),
        ("s3://bucket", {"regoin": "us-east-1"}),
        ("s3://bucket", {"google_bucket": "1"}),
        ("s3://bucket", {"timeout": "soon"}),
        ("s3://bucket", {"allow_http": "perhaps"}),
        ("gs://bucket", {"region": "1"}),
        ("az://bucket", {"account_name": "1", "http2_only": "perhaps"}),
    ],
)
def test_a_store_that_cannot_be_used_is_one_line(url: str, options: dict[str, str], tmp_path: Path) -> None:
    with pytest.raises(StorageMisconfigured, match="or media_options cannot be used: ") as raised:
        open_storage(url, options, tmp_path)
    assert "\n" not in str(raised.value)


def test_every_option_of_the_connection_is_an_option_of_media_options(tmp_path: Path) -> None:
    """Among the options of the store, where a reader of its documentation puts them, they would crash the library."""
    values = {"allow_http": "true", "timeout": "30s", "pool_max_idle_per_host": "8", "proxy_url": "http://proxy.test"}
    numbers = {"http2_max_frame_size": "20000"}
    for name in sorted(_CONNECTION_OPTIONS):
        usual = "30s" if name.endswith(("timeout", "interval")) else "true"
        value = (values | numbers).get(name, usual)
        for url, prefix in (("s3://bucket", "aws_"), ("gs://bucket", "google_"), ("az://box", "azure_")):
            options = {"account_name": "lab"} if prefix == "azure_" else {}
            for spelling in (name, name.upper(), prefix + name):
                with suppress(StorageMisconfigured):  # a certificate that is none
                    assert isinstance(open_storage(url, {**options, spelling: value}, tmp_path), Bucket)


def test_every_connection_option_that_the_library_knows_is_known() -> None:
    stub = Path(obstore.__file__).with_name("_store") / "_client.pyi"
    named = set(re.findall(r"^    (\w+): (?!.*=)", stub.read_text(), re.MULTILINE))
    assert len(named) > 15
    assert named - _CONNECTION_OPTIONS == {"default_headers", "root_certificate"}, "those are no text"
