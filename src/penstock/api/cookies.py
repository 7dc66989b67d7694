"""The cookie of the pages: its name, how it is set, and what a call that uses it must prove."""

from collections.abc import Mapping

from penstock.errors import PermissionDenied

PAGE_HEADER = "x-penstock-page"
_UNATTENDED = "unattended"  # what pages send in it when they refresh while nobody touches them
_NAME = "penstock"
_SECURE_NAME = "__Host-penstock"


def session_token(headers: Mapping[str, str], base_url: str) -> str | None:
    """What the cookie of a session holds; None without one, or beside a key, which goes before it."""
    if "cookie" not in headers or "authorization" in headers:
        return None
    return read_cookie(headers, cookie_name(base_url))


def cookie_name(base_url: str) -> str:
    """Over HTTPS a name that browsers take only from this host and only with `Secure`; they refuse it over HTTP. There
    the port is part of the name, because gateways on several ports of one machine share their cookies.
    """
    if base_url.startswith("https://"):
        return _SECURE_NAME
    port = base_url.rpartition(":")[2]
    return f"{_NAME}-{port if port.isdecimal() else 80}"


def read_cookie(headers: Mapping[str, str], name: str) -> str | None:
    """The value of a cookie, or None. The first one counts, as browsers send the most specific path first."""
    for pair in headers.get("cookie", "").split(";"):
        found, _, value = pair.strip().partition("=")
        if found == name:
            return value
    return None


def set_cookie(name: str, value: str, base_url: str, seconds: int | None, path: str = "/") -> dict[str, str]:
    """The header that sets a cookie which scripts cannot read; without `seconds` until the browser is closed."""
    parts = [f"{name}={value}", f"Path={path}", "HttpOnly", "SameSite=Lax"]
    if seconds is not None:
        parts.append(f"Max-Age={seconds}")
    if base_url.startswith("https://"):
        parts.append("Secure")
    return {"set-cookie": "; ".join(parts), "cache-control": "no-store"}


def is_attended(headers: Mapping[str, str]) -> bool:
    """Whether somebody is there, as far as the page knows that makes the call."""
    return headers.get(PAGE_HEADER) != _UNATTENDED


def check_page(method: str, headers: Mapping[str, str], base_url: str) -> None:
    """Raise PermissionDenied unless a call with the cookie comes from a page of this gateway, or only reads.

    Other sites can send a cookie along, but not the header: for that a browser first asks, and is not allowed. What the
    browser itself says about the page that calls is compared as well.
    """
    if method == "GET":
        return
    site = headers.get("sec-fetch-site")
    is_ours = site == "same-origin" if site is not None else headers.get("origin", "").lower() == base_url.lower()
    if headers.get(PAGE_HEADER) != "1" or not is_ours:
        raise PermissionDenied("A call with a cookie must come from the pages of this gateway; programs send a key.")
