"""The heads of requests: refuse those that two servers could read differently, and describe others as ASGI does."""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any
from urllib.parse import unquote

import httptools

from penstock.errors import HeadersTooLarge, InvalidRequest, Problem

Headers = Sequence[tuple[bytes, bytes]]

# Keys of a scope, besides those of ASGI:
LINE = "penstock.line"  # the connection of the caller
PLACES = "penstock.places"  # how many connections there may be
ARRIVED = "penstock.arrived"  # takes the body, if all of it has arrived, so that its speed needs no check

HEALTH_PATHS = ("/healthz", "/readyz")  # load balancers call them by IP address; they always have a place

LINE_BYTES = 8 * 1024
HEADER_BYTES = 32 * 1024
HEADER_LINES = 100
HEAD_TOO_LARGE = HeadersTooLarge(
    f"The request line may have {LINE_BYTES} bytes at most, the headers {HEADER_LINES} lines and {HEADER_BYTES} bytes."
)
_HOST = re.compile(r"(?:[A-Za-z0-9][A-Za-z0-9.-]{0,252}|\[[0-9A-Fa-f:.]{2,45}\])(?::[0-9]{1,5})?")
_OTHER_TARGETS = re.compile(rb"https?://[^/]+/|\*$")
_FRAMING = (b"content-length", b"transfer-encoding")


def head_problem(url: bytes, headers: Headers, version: str) -> Problem | None:
    """Return what is wrong with a head that the parser accepts, or None. Names of headers are in lower case."""
    hosts = 0
    codings = []
    for name, value in headers:
        if name == b"host":
            hosts += 1
        elif name == b"transfer-encoding":
            codings.append(value.lower())
    if len(url) > LINE_BYTES or len(headers) > HEADER_LINES:
        return HEAD_TOO_LARGE
    if version not in ("1.1", "1.0") or (codings and version == "1.0"):
        return InvalidRequest("Only HTTP/1.1 is supported.")
    if b"#" in url or not (url.startswith(b"/") or _OTHER_TARGETS.match(url)):
        return InvalidRequest("The request target must be a path.")
    if hosts > 1 or (not hosts and version != "1.0"):  # checks of load balancers may use HTTP/1.0, which needs none
        return InvalidRequest(f"There must be exactly one Host header; {hosts} were sent.")
    if codings and codings != [b"chunked"]:
        return InvalidRequest("Transfer-Encoding must be chunked or absent.")
    return None


def request_scope(url: bytes, method: bytes, version: str, headers: Headers) -> dict[str, Any]:
    """Return what ASGI tells an application about a request. Raises ValueError or httptools' error for a bad URL."""
    parsed = httptools.parse_url(url)
    path = parsed.path.decode("ascii")
    return {
        "http_version": version,
        "method": method.decode("ascii"),
        "path": unquote(path) if "%" in path else path,
        "raw_path": parsed.path,
        "query_string": parsed.query or b"",
        "headers": headers,
    }


def framing_head(headers: Headers) -> bytes:
    """A made-up head after which a parser reads the body of a request with these headers, and no other request."""
    framing = [name + b": " + value + b"\r\n" for name, value in headers if name in _FRAMING]
    return b"".join([b"POST / HTTP/1.1\r\nconnection: close\r\n", *(framing or [b"content-length: 0\r\n"]), b"\r\n"])


@lru_cache(maxsize=64)
def base_url(scheme: str, host: str) -> str:
    """Return the URL under which the caller reached us, for links in its own response; nothing else may rely on it."""
    return f"{scheme}://{host}" if _HOST.fullmatch(host) else ""


def host_name(host: str) -> str:
    """Return a Host header without its port, in lower case and without the dot at the end of a full name."""
    name = host if host.endswith("]") else host.rpartition(":")[0] or host
    return name.lower().removesuffix(".")
