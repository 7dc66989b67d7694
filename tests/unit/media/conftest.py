"""Fixtures for files: an S3 server, and a bucket on it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.media.opening import open_storage
from penstock.media.storage import Storage
from tests.s3_server import S3Server, run_s3_server


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with run_s3_server(tmp_path_factory.mktemp("buckets")) as s3:
        yield s3


@pytest.fixture
def bucket(s3: S3Server) -> Storage:
    return open_storage(s3.new_url(), s3.options, Path("/nowhere"), url_endpoint="")
