"""Compare and combine URLs of providers, which decide where credentials are sent."""

import re
from collections.abc import Mapping
from functools import lru_cache
from urllib.parse import urlencode, urljoin, urlsplit

import msgspec


def same_origin(url: str, base_url: str) -> bool:
    scheme, host = _origin(base_url)
    return url.startswith(f"{scheme}://{host}/") or urlsplit(url)[:2] == (scheme, host)


@lru_cache(256)
def _origin(base_url: str) -> tuple[str, str]:
    """Scheme and host, with the port if the URL has one."""
    return urlsplit(base_url)[:2]


def is_within(url: str, domain: str | None) -> bool:
    """Whether an https URL on the default port, in a form that all parsers read alike, is on a host of the domain."""
    return domain is not None and re.match(rf"https://([a-z0-9-]+\.)*{re.escape(domain)}/", url) is not None


def absolute_url(base_url: str, path: str) -> str:
    """Add a path to the base URL, which may have a path itself; a complete URL stays as it is."""
    if path.startswith("/"):
        return base_url.rstrip("/") + "/" + path.lstrip("/")
    return path if urlsplit(path).scheme else urljoin(base_url + "/", path)


def request_url(base_url: str, path: str, query: Mapping[str, str]) -> str:
    """As `absolute_url`, with these parameters if it is a path below the base URL."""
    url = absolute_url(base_url, path)
    if not query or not path.startswith("/"):
        return url
    return url + ("&" if "?" in path else "?") + urlencode(query)


class DownloadSource(msgspec.Struct, frozen=True):
    """Where an output can be downloaded, and with which headers."""

    url: str
    headers: Mapping[str, str]
    trusted: bool  # on the provider's own origin, which the operator chose; for others the egress rules apply
