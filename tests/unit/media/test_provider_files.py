"""Files of providers are downloaded from where a provider's own host sends us, without its credential elsewhere."""

import io

import pytest

from penstock.media.provider_files import DownloadFailed, ProviderFiles, UnusableFile
from penstock.net.checked_urls import EgressRules
from penstock.upstream.urls import DownloadSource
from tests.http_client import SECRET, client_and_server
from tests.tcp_server import Connection, TcpServer

LOCALHOST = EgressRules(allow_hosts=("localhost",))


def source(server: TcpServer, path: str) -> DownloadSource:
    return DownloadSource(f"{server.url}{path}", {"authorization": f"Bearer {SECRET}"}, trusted=True)


async def redirecting(connection: Connection) -> None:
    """Send `/a` to `/b`, `/other` to the same path on another host name, `/round` to itself, `/b` as a file."""
    request = await connection.read_request()
    path = request.split(b" ")[1].decode()
    port = request.partition(b"127.0.0.1:")[2].partition(b"\r\n")[0].decode()  # of the header `host`
    to = {"/a": "/b", "/round": "/round", "/other": f"http://localhost:{port}/b", "/bad": "http://[x/"}.get(path)
    if to:
        await connection.respond(b"moved", f"location: {to}", "connection: close", status=302)
    else:
        await connection.respond(b"bytes; secret" if SECRET.encode() in request else b"bytes", "connection: close")


async def download(files: ProviderFiles, server: TcpServer, path: str) -> bytes:
    """Download a file both ways: into memory, and to a writer."""
    written = io.BytesIO()
    await files.write(source(server, path), written, max_bytes=100, timeout_seconds=20.0)
    data = await files.read(source(server, path), max_bytes=100, timeout_seconds=20.0)
    assert written.getvalue() == data
    return bytes(data)


async def test_redirects_of_the_providers_own_host_are_followed() -> None:
    async with client_and_server(redirecting) as (client, server):
        files = ProviderFiles(client, LOCALHOST)
        assert await download(files, server, "/a") == b"bytes; secret", "the credential goes to the same host"
        assert await download(files, server, "/other") == b"bytes", "and to no other host"


async def test_a_redirect_that_cannot_be_followed() -> None:
    async with client_and_server(redirecting) as (client, server):
        files = ProviderFiles(client, EgressRules())
        with pytest.raises(DownloadFailed, match="status 302"):
            await download(files, server, "/round")
        for path in ("/other", "/bad"):
            with pytest.raises(UnusableFile, match="egress rules"):
                await download(files, server, path)
