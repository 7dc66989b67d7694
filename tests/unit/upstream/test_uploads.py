"""Files that are put at URLs which a provider named: where they go, and that no credential goes with them."""

from collections.abc import Mapping
from typing import Any, cast

import pytest

from penstock.net.checked_urls import NO_EXCEPTIONS
from penstock.net.client import HttpClient
from penstock.net.errors import UrlBlocked
from penstock.providers.spec import HttpRequest, Reply
from penstock.upstream.uploads import put_file
from penstock.values import InputFile
from tests.http_client import LOOPBACK, open_client, responding
from tests.tcp_server import serve

VIDEO = InputFile(b"frames", "video/mp4", 64, 48, seconds=2.0, frames=8)


class Client:
    """Notes in which way a file was sent."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, str, Mapping[str, str], bytes]] = []

    async def send(self, request: HttpRequest, **_: Any) -> Reply:
        self.sent.append(("own", request.url, request.headers, request.whole_body))
        return Reply(200)

    async def send_guarded(self, request: HttpRequest, **_: Any) -> Reply:
        self.sent.append(("guarded", request.url, request.headers, request.whole_body))
        return Reply(200)


async def test_other_hosts_than_the_providers_are_guarded_and_none_gets_the_credential() -> None:
    client = Client()
    for url in ("https://api.acme.test/up/1", "https://files.acme.test/up/1", "https://api.acme.test.evil.test/up"):
        http = cast(HttpClient, client)
        await put_file(http, "https://api.acme.test", url, VIDEO, egress=NO_EXCEPTIONS, seconds=5)
    assert [way for way, *_ in client.sent] == ["own", "guarded", "guarded"]
    assert all((headers, body) == ({"content-type": "video/mp4"}, b"frames") for _, _, headers, body in client.sent)


async def test_a_file_is_put_at_a_url_that_the_egress_rules_allow() -> None:
    async with serve(responding(b"", 'etag: "tag-1"')) as server, open_client() as client:
        for egress in (LOOPBACK, NO_EXCEPTIONS):
            call = put_file(client, "https://api.acme.test", f"{server.url}/up", VIDEO, egress=egress, seconds=5)
            if egress is NO_EXCEPTIONS:
                with pytest.raises(UrlBlocked):
                    await call
            else:
                assert (await call).headers["etag"] == '"tag-1"'
    (request,) = server.requests
    assert request.startswith(b"PUT /up HTTP/1.1\r\n")
    assert b"content-type: video/mp4\r\n" in request.lower()
