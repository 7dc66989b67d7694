"""Fixtures for files: a bucket on an S3 server."""

from pathlib import Path

import pytest

from penstock.media.opening import open_storage
from penstock.media.storage import Storage
from tests.s3_server import S3Server


@pytest.fixture
def bucket(s3: S3Server) -> Storage:
    return open_storage(s3.new_url(), s3.options, Path("/nowhere"), url_endpoint="")
