"""Method, URL and headers are checked before anything is sent, and only once for requests that have them in common."""

import pytest

from penstock.net import request_start as module
from penstock.net.errors import NotSent
from penstock.net.http1 import Http1Client, TimeLimits
from penstock.net.request_start import FixedHeaders, Origin, request_start
from penstock.providers.spec import HttpRequest

URL = "http://provider.test:8080/v1/chat?a=b"


def test_the_start_of_a_request() -> None:
    start = request_start(HttpRequest("POST", URL, {"x-a": "b"}))
    assert start.origin == Origin(is_tls=False, host="provider.test", port=8080)
    assert start.lines.startswith("POST /v1/chat?a=b HTTP/1.1\r\nhost: provider.test:8080\r\n")
    assert start.lines.endswith("x-a: b\r\n")


@pytest.mark.parametrize(
    ("method", "url", "headers"),
    [("TRACE", URL, {}), ("GET", "ftp://provider.test/", {}), ("GET", URL, {"x": "a\r\ny: b"}), ("GET", "http://", {})],
)
def test_what_cannot_be_sent(method: str, url: str, headers: dict[str, str]) -> None:
    with pytest.raises(NotSent, match=r"^the request has a URL or a header that cannot be sent$"):
        request_start(HttpRequest(method, url, FixedHeaders(headers)))


async def look_up(host: str, port: int, seconds: float) -> list[str]:
    return []


async def test_fixed_headers_and_their_url_are_checked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    checked = []

    def counting(request: HttpRequest) -> module.RequestStart:
        checked.append((request.method, request.url))
        return request_start(request)

    monkeypatch.setattr("penstock.net.http1.request_start", counting)
    client = Http1Client(look_up, None, idle_seconds=20)
    headers = FixedHeaders({"x-a": "b"})
    for _ in range(3):
        assert client.exchange(HttpRequest("POST", URL, headers, b"{}"), TimeLimits(1, 1)).origin.port == 8080
    assert checked == [("POST", URL)]
    other = client.exchange(HttpRequest("POST", "http://other.test/", headers, b"{}"), TimeLimits(1, 1))
    assert other.origin.host == "other.test", "headers are kept, and an old URL is not"
    client.exchange(HttpRequest("GET", "http://other.test/", headers), TimeLimits(1, 1))
    assert checked[1:] == [("POST", "http://other.test/"), ("GET", "http://other.test/")]
    client.exchange(HttpRequest("GET", "http://other.test/", {"x-a": "b"}), TimeLimits(1, 1))
    assert len(checked) == 4, "other headers are checked each time"
