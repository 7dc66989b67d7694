"""Where a request goes, and the first lines of it: checked, and kept for requests whose headers are always the same."""

import re
from functools import lru_cache
from typing import NamedTuple

from penstock.net.errors import NotSent
from penstock.net.header_lines import header_lines
from penstock.net.plain_urls import plain_url
from penstock.providers.spec import HttpRequest

_ORIGIN = re.compile(r"(https?)://([a-z0-9._-]+|\[[0-9a-f:]+\])(?::([0-9]{1,5}))?", re.ASCII)
_PATH = re.compile(r"/[!\"$-~]*", re.ASCII)
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"})


class Origin(NamedTuple):
    """A server: where its connections go, and what its certificate must say."""

    is_tls: bool
    host: str
    port: int
    address: str = ""  # the only IP address to connect to; without one, the host is looked up


@lru_cache(256)
def _parse_origin(text: str) -> tuple[Origin, str] | None:
    """Read the part of a URL before its path; returns also the `host` header. None unless it has the plainest form."""
    match = _ORIGIN.fullmatch(text)
    if match is None:
        return None
    scheme, host, port = match.groups()
    default = 443 if scheme == "https" else 80
    origin = Origin(scheme == "https", host.strip("[]"), int(port or default))
    if not 0 < origin.port < 2**16:
        return None
    return origin, host if origin.port == default else f"{host}:{origin.port}"


def _split(url: str) -> tuple[str, str]:
    """The part of a URL before its path, and the path."""
    start = url.find("/", len("https://"))
    return (url, "/") if start < 0 else (url[:start], url[start:])


class RequestStart(NamedTuple):
    """Where a request goes, and its first line with its headers, but for those of its body."""

    method: str
    url: str
    origin: Origin
    lines: str


class FixedHeaders(dict[str, str]):
    """Headers that are the same in many requests to one URL, so that both are checked only once; they must not be
    changed.
    """

    start: RequestStart | None = None  # of the last request with them


def request_start(request: HttpRequest) -> RequestStart:
    """Check method, URL and headers of a request. Raises NotSent if one of them cannot be sent."""
    lines = header_lines(request.headers)
    before_path, path = _split(request.url)
    parsed = _parse_origin(before_path)
    if parsed is None or not _PATH.fullmatch(path):
        url, authorization = plain_url(request.url) or ("", "")
        before_path, path = _split(url)
        parsed = _parse_origin(before_path)
        lines = f"{lines}authorization: {authorization}\r\n" if lines and authorization else lines
    if request.method not in _METHODS or parsed is None or lines is None:
        raise NotSent("the request has a URL or a header that cannot be sent")  # either may have the key in it
    origin, host_header = parsed
    head = f"{request.method} {path} HTTP/1.1\r\nhost: {host_header}\r\n{lines}"
    return RequestStart(request.method, request.url, origin, head)
