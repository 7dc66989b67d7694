"""What is special about an object store: signed URLs, and servers that cannot be reached."""

import asyncio
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from penstock.errors import StorageUnavailable
from penstock.media.bucket import Bucket
from penstock.media.storage import FileMissing, Storage
from tests.s3_server import S3Server

KEY = "ab/med_1"
PNG = "image/png"


def fetch(url: str, **headers: str) -> tuple[int, bytes, str]:
    with urlopen(Request(url, headers=headers)) as response:  # noqa: S310
        return response.status, response.read(), response.headers["content-type"]


async def test_a_bucket_signs_urls(bucket: Storage, s3: S3Server) -> None:
    await bucket.replace(KEY, b"0123456789", PNG)
    url = await bucket.signed_url(KEY, 60)
    assert url is not None
    assert url.startswith(f"{s3.endpoint}/")
    assert await asyncio.to_thread(fetch, url) == (200, b"0123456789", PNG)
    assert (await asyncio.to_thread(fetch, url, Range="bytes=2-4"))[1] == b"234"


async def test_a_bucket_has_browsers_save_vector_images(bucket: Storage) -> None:
    """A signed URL is not the gateway's, so no header of ours keeps a browser from opening an SVG as a page."""
    await bucket.replace(KEY, b"<svg/>", "image/svg+xml")
    url = await bucket.signed_url(KEY, 60) or ""
    with await asyncio.to_thread(urlopen, url) as response:
        assert response.headers["content-disposition"] == "attachment"


async def test_an_altered_url_is_refused(bucket: Storage) -> None:
    await bucket.replace(KEY, b"0123456789", PNG)
    await bucket.replace("ab/med_2", b"another's", PNG)
    url = await bucket.signed_url(KEY, 60) or ""
    with pytest.raises(HTTPError, match="403") as refused:
        await asyncio.to_thread(fetch, url.replace("med_1", "med_2"))
    refused.value.close()


async def test_signed_urls_are_valid_for_at_most_a_week(bucket: Storage) -> None:
    await bucket.replace(KEY, b"x", PNG)
    url = await bucket.signed_url(KEY, 30 * 86_400) or ""
    assert "X-Amz-Expires=604800" in url
    assert (await asyncio.to_thread(fetch, url))[0] == 200


async def test_urls_are_signed_for_the_endpoint_that_callers_reach(s3: S3Server) -> None:
    """The signature covers the host's name, so a URL for another endpoint cannot be made from a signed one."""
    options = {**s3.options, "aws_endpoint": "http://store.invalid:9000"}
    media = s3.new_url()
    await Bucket(media, s3.options).replace(KEY, b"0123456789", PNG)
    url = await Bucket(media, options, s3.endpoint).signed_url(KEY, 60) or ""
    assert url.startswith(f"{s3.endpoint}/")
    assert await asyncio.to_thread(fetch, url) == (200, b"0123456789", PNG)
    elsewhere = await Bucket(media, s3.options, "https://files.example.test").signed_url(KEY, 60) or ""
    assert elsewhere.startswith("https://files.example.test/penstock/")


async def test_without_an_endpoint_for_callers_the_gateway_has_to_serve_files(s3: S3Server) -> None:
    assert await Bucket(s3.new_url(), s3.options).signed_url(KEY, 60) is None


async def test_an_unreachable_bucket_means_storage_unavailable(s3: S3Server) -> None:
    options = {**s3.options, "aws_endpoint": "http://127.0.0.1:1"}
    unreachable = Bucket("s3://unreachable", options)
    with pytest.raises(StorageUnavailable):
        await unreachable.replace(KEY, b"x", PNG)
    with pytest.raises(StorageUnavailable):
        await anext(unreachable.read(KEY, 0, 1))
    with pytest.raises(StorageUnavailable):
        await unreachable.delete(KEY)
    with pytest.raises(StorageUnavailable):
        await unreachable.list_files()


async def test_a_missing_bucket_means_storage_unavailable(s3: S3Server) -> None:
    with pytest.raises(StorageUnavailable):
        await Bucket("s3://missing", s3.options).replace(KEY, b"x", PNG)


async def test_files_outside_the_prefix_are_not_listed(s3: S3Server) -> None:
    ours = Bucket(s3.new_url(), s3.options)
    other = Bucket(s3.new_url(), s3.options)
    await other.replace(KEY, b"x", PNG)
    assert await ours.list_files() == []
    with pytest.raises(FileMissing):
        await anext(ours.read(KEY, 0, 1))
