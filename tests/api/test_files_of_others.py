"""A caller who knows the ids and file URLs of another organization can neither change nor delete its files."""

import asyncio
import base64
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import urlopen

import pytest

from penstock.accounts.audit import audit
from penstock.api.asgi import AsgiApp
from penstock.gateway import Gateway
from penstock.media.opening import open_storage
from tests.api.accounts import Account, another_account, first_account, opened
from tests.api.raw_http import RawResponse, Server, serving
from tests.fake_providers.scripted import png
from tests.s3_server import S3Server, run_s3_server

IMAGE = {"model": "atelier/sketch", "prompt": "a pear", "size": "64x48"}
THEIRS = png(8, 8)


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with run_s3_server(tmp_path_factory.mktemp("buckets")) as server:
        yield server


@pytest.fixture(params=["folder", "s3"])
def media(request: pytest.FixtureRequest) -> dict[str, Any]:
    """Settings for a place of files."""
    if request.param == "folder":
        return {}
    server: S3Server = request.getfixturevalue("s3")
    return {"media": server.new_url(), "media_options": server.options}


def _read_url(url: str) -> bytes:
    with urlopen(url) as reply:  # noqa: S310 - the object store of the test
        return bytes(reply.read())


class TwoOrganizations:
    """A served gateway, a victim with files, and an attacker with a plain key of another organization."""

    def __init__(self, gateway: Gateway, served: Server, victim: Account, attacker: Account) -> None:
        self.gateway, self.served, self.victim, self.attacker = gateway, served, victim, attacker

    async def call(
        self, account: Account, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> RawResponse:
        return await self.served.call(method, path, key=account.plain.key, body=body, headers=headers)

    async def attack(self, method: str, path: str, body: Any = None) -> RawResponse:
        return await self.call(self.attacker, method, path, body)

    async def make_image(self) -> str:
        """Let the victim record an image; return its URL."""
        made = await self.call(
            self.victim, "POST", "/compat/v1/images/generations", IMAGE, {"x-service-replay": "record"}
        )
        assert made.status == 200, made
        return str(made.json["data"][0]["url"])

    async def download(self, url: str) -> bytes:
        if urlsplit(url).path.startswith("/m/"):
            response = await self.served.call("GET", f"{urlsplit(url).path}?{urlsplit(url).query}")
            assert response.status == 200, response
            return response.body
        return await asyncio.to_thread(_read_url, url)

    async def every_file(self) -> dict[str, bytes]:
        """The bytes of all stored files by key."""
        settings = self.gateway.settings
        storage = open_storage(settings.media, settings.media_options, settings.data)
        return {
            key: b"".join([chunk async for chunk in storage.read(key, 0, size)])
            for key, size, _ in await storage.list_files()
        }

    async def breaches(self) -> list[str]:
        settings = self.gateway.settings
        storage = open_storage(settings.media, settings.media_options, settings.data)
        return await audit(self.gateway.store, storage, self.gateway.clock)


@asynccontextmanager
async def two_organizations(folder: Path, media: dict[str, Any]) -> AsyncIterator[TwoOrganizations]:
    async with opened(folder, works=True, **media) as gateway:
        victim, attacker = await first_account(gateway), await another_account(gateway)
        async with serving(AsgiApp(gateway), gateway.settings) as served:
            yield TwoOrganizations(gateway, served, victim, attacker)


def recording_file(recording_id: str, content: bytes = THEIRS, **changes: Any) -> dict[str, Any]:
    return {
        "penstock_recording": 1,
        "id": recording_id,
        "kind": "image",
        "task": "image",
        "model": "atelier/sketch",
        "recorded_at": "2026-01-01T00:00:00.000Z",
        "duration_ms": 5,
        "request": {"prompt": "a pear"},
        "provider": "atelier",
        "provider_name": "Atelier",
        "executed_model": "atelier/sketch",
        "files": [{"content_type": "image/png", "data": base64.b64encode(content).decode()}],
        "standard": "00" * 32,
        "strict": "11" * 32,
        **changes,
    }


async def test_an_import_cannot_choose_the_id_of_another_organizations_file(
    tmp_path: Path, media: dict[str, Any]
) -> None:
    async with two_organizations(tmp_path, media) as both:
        url = await both.make_image()
        before = await both.download(url)
        files = await both.every_file()
        for key in files:  # med_<32 digits><position>
            digits = key.rpartition("_")[2][:32]
            imported = await both.attack("POST", "/v1/recordings", recording_file(f"rec_{digits}"))
            assert imported.status == 200, imported
            assert imported.json["id"] != f"rec_{digits}"
            assert files.items() <= (await both.every_file()).items()
            assert (await both.attack("DELETE", f"/v1/recordings/{imported.json['id']}")).status == 200
        assert await both.download(url) == before
        assert await both.every_file() == files
        assert await both.breaches() == []


async def test_ids_of_another_organization_are_unknown_to_every_route(tmp_path: Path) -> None:
    async with two_organizations(tmp_path, {}) as both:
        await both.make_image()
        files = await both.every_file()
        (recording,) = (await both.call(both.victim, "GET", "/v1/recordings")).json["data"]
        request_id = recording["request_id"]
        for method, path in (
            ("GET", f"/v1/recordings/{recording['id']}"),
            ("GET", f"/v1/recordings/{recording['id']}/export"),
            ("DELETE", f"/v1/recordings/{recording['id']}"),
            ("GET", f"/v1/requests/{request_id}"),
            ("GET", f"/v1/requests/{request_id}/payloads"),
            ("DELETE", f"/v1/requests/{request_id}/payloads"),
            ("GET", f"/compat/v1/images/{request_id}"),
            ("GET", f"/compat/v1/videos/{request_id}"),
            ("GET", f"/compat/v1/videos/{request_id}/content"),
            ("DELETE", f"/compat/v1/videos/{request_id}"),
        ):
            assert (await both.attack(method, path)).status == 404, (method, path)
        pinned = {
            "x-service-replay": "replay-or-error",
            "x-service-replay-match": "pinned",
            "x-service-replay-recording": recording["id"],
        }
        replayed = await both.call(both.attacker, "POST", "/compat/v1/images/generations", IMAGE, pinned)
        assert replayed.code == "RECORDING_NOT_FOUND"
        assert await both.every_file() == files


async def test_headers_that_name_an_id_do_not_decide_the_id_of_a_call(tmp_path: Path) -> None:
    async with two_organizations(tmp_path, {}) as both:
        await both.make_image()
        (recording,) = (await both.call(both.victim, "GET", "/v1/recordings")).json["data"]
        taken = recording["request_id"]
        headers = {"x-request-id": taken, "x-service-request-id": taken, "idempotency-key": taken}
        response = await both.call(both.attacker, "POST", "/compat/v1/images/generations", IMAGE, headers)
        assert response.headers["x-request-id"] != taken
