"""The files of the dashboard, whose pages use the same HTTP API as any other client."""

from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.resources import files

_TYPES = {"html": "text/html; charset=utf-8", "css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8"}


@dataclass(frozen=True, slots=True)
class Asset:
    """A file for the browser, with an etag that changes with its content."""

    body: bytes
    media_type: str
    etag: str


@cache
def asset(name: str) -> Asset:
    """Return a file of the folder `static`."""
    body = files(__name__).joinpath("static", name).read_bytes()
    return Asset(body, _TYPES[name.rpartition(".")[2]], f'"{sha256(body).hexdigest()[:32]}"')
