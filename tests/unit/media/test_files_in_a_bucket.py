"""Files in an object store are served by the gateway, or by the store itself if the settings say so."""

import asyncio
from pathlib import Path
from urllib.request import urlopen

import msgspec

from penstock.api.endpoints.files import download_video
from penstock.values import nanos
from tests.fake_providers.scripted import mp4, png
from tests.gateway import OpenGateway, postgres_only, sqlite_only
from tests.s3_server import S3Server
from tests.unit.media.signed_urls import create_image, open_url, read_body


def fetch(url: str) -> bytes:
    with urlopen(url) as response:  # noqa: S310
        content: bytes = response.read()
        return content


@sqlite_only
async def test_the_gateway_serves_files_in_a_bucket(open_gateway: OpenGateway, s3: S3Server) -> None:
    """Callers need not reach the object store: images, videos, records and webhooks name URLs of the gateway."""
    receiver = "https://receiver.example/hook"
    async with open_gateway(media=s3.new_url(), media_options=s3.options, public_url="http://gateway.test") as running:
        made = [await create_image(running)]
        done = await running.wait_for_video((await running.video(webhook_url=receiver)).json["id"])
        made.append(done["output"]["url"])
        (message,) = await running.rows("SELECT body FROM messages")
        made.append(msgspec.json.decode(message["body"])["data"]["output"]["url"])
        assert {url.partition("/m/")[0] for url in made} == {"http://gateway.test"}
        for url, content in zip(made, (png(64, 64), mp4(), mp4()), strict=True):
            found = await open_url(running, url, "bytes=4-9")
            assert (found.status, await read_body(found)) == (206, content[4:10])


@postgres_only
async def test_files_in_a_bucket(open_gateway: OpenGateway, s3: S3Server, tmp_path: Path) -> None:
    """With Postgres and S3 together nothing is stored on the machine itself."""
    async with open_gateway(media=s3.new_url(), media_options=s3.options, media_urls="store") as running:
        url = await create_image(running)
        assert url.startswith(s3.endpoint)
        assert await asyncio.to_thread(fetch, url) == png(64, 64)
        response = await running.image(response_format="b64_json")
        assert response["data"][0]["b64_json"]
        done = await running.wait_for_video((await running.video(media_retention="30d")).json["id"])
        for query, headers in (({"redirect": "true"}, {}), ({}, {"prefer": "redirect"})):
            found = await download_video(running.gateway, running.call(query=query, headers=headers, id=done["id"]))
            assert found.status == 307
            assert found.headers["location"].startswith(s3.endpoint)
            assert await asyncio.to_thread(fetch, found.headers["location"]) == mp4()
        assert await asyncio.to_thread(fetch, done["output"]["url"]) == mp4()
        assert not [path for path in (tmp_path / "data").rglob("*") if path.is_file() and "lock" not in path.name]
        assert (await running.purge(done["id"]))["media_deleted"] == 1
        assert await running.money() == (nanos("9.52"), 0)
