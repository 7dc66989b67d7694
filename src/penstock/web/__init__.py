"""The dashboard: a page, its style and its scripts, which talk to the same API as everybody else."""

from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.resources import files

_TYPES = {"html": "text/html; charset=utf-8", "css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8"}


@dataclass(frozen=True, slots=True)
class Asset:
    """A file for the browser, and a mark that changes when it does."""

    body: bytes
    media_type: str
    etag: str


@cache
def asset(name: str) -> Asset:
    body = files(__name__).joinpath("static", name).read_bytes()
    return Asset(body, _TYPES[name.rpartition(".")[2]], f'"{sha256(body).hexdigest()[:32]}"')
