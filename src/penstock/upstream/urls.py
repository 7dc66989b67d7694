"""Compare and combine URLs of providers, which decide where credentials are sent."""

import re
from urllib.parse import urljoin, urlsplit


def same_origin(url: str, base_url: str) -> bool:
    return urlsplit(url)[:2] == urlsplit(base_url)[:2]


def is_within(url: str, domain: str | None) -> bool:
    """Whether an https URL on the default port, in a form that all parsers read alike, is on a host of the domain."""
    return domain is not None and re.match(rf"https://([a-z0-9-]+\.)*{re.escape(domain)}/", url) is not None


def absolute_url(base_url: str, path: str) -> str:
    """Add a path to the base URL, which may have a path itself; a complete URL stays as it is."""
    if urlsplit(path).scheme:
        return path
    return base_url.rstrip("/") + "/" + path.lstrip("/") if path.startswith("/") else urljoin(base_url + "/", path)
