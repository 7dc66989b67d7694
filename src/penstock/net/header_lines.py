"""The lines of a request's headers in HTTP/1.1, checked."""

import re
from collections.abc import Mapping
from functools import cached_property, lru_cache

_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_OWN_HEADERS = re.compile(
    r"host|content-length|transfer-encoding|connection|keep-alive|proxy-\S*|te|trailer|upgrade|expect"
    r"|accept|accept-encoding|user-agent",
    re.IGNORECASE,
)


def header_lines(headers: Mapping[str, str]) -> str | None:
    """The lines of these headers; None if one of them cannot be sent, or is one that `http1` sets itself."""
    lines = ""
    for name, value in headers.items():
        if not (_may_name_header(name) and value.isascii() and value.isprintable()):
            return None
        lines += f"{name}: {value}\r\n"
    return lines


class FixedHeaders(dict[str, str]):
    """Headers that are the same in many requests, so that they are checked only once; they must not be changed."""

    @cached_property
    def lines(self) -> str | None:
        return header_lines(self)


@lru_cache(256)
def _may_name_header(name: str) -> bool:
    return _HEADER_NAME.fullmatch(name) is not None and not _OWN_HEADERS.fullmatch(name)
