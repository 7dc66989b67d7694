"""The lines of a request's headers in HTTP/1.1, checked."""

import re
from collections.abc import Mapping
from functools import lru_cache

from penstock import __version__

_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
# They decide where a request goes and where it ends, so the client sets them itself.
_OWN_HEADERS = re.compile(
    r"host|content-length|transfer-encoding|connection|keep-alive|proxy-\S*|te|trailer|upgrade|expect", re.IGNORECASE
)
_DEFAULTS = {"accept": "*/*", "accept-encoding": "identity", "user-agent": f"penstock/{__version__}"}


def header_lines(headers: Mapping[str, str]) -> str | None:
    """The lines of these headers, and of those that every request has; None if one of them must not be sent."""
    lines = ""
    missing = _DEFAULTS
    for name, value in headers.items():
        if not (_may_name_header(name) and value.isascii() and value.isprintable()):
            return None
        lines += f"{name}: {value}\r\n"
        if name.lower() in missing:
            missing = {default: each for default, each in missing.items() if default != name.lower()}
    return _lines(missing) + lines


def _lines(headers: Mapping[str, str]) -> str:
    return "".join(f"{name}: {value}\r\n" for name, value in headers.items())


@lru_cache(256)
def _may_name_header(name: str) -> bool:
    return _HEADER_NAME.fullmatch(name) is not None and not _OWN_HEADERS.fullmatch(name)
