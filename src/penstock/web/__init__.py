"""The pages that browsers get: the dashboard, which uses the same HTTP API as any other client, and the documentation.

`manual` finds the files of the documentation, `markdown` renders them, `manual_pages` puts pages together from them.
"""

import gzip
from functools import cache
from hashlib import sha256
from importlib.resources import as_file, files

import msgspec

_TYPES = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
    "woff2": "font/woff2",
}
_COMPRESSED_ALREADY = ("woff2",)


class Asset(msgspec.Struct, frozen=True):
    """A file for the browser, with an etag that changes with its content."""

    body: bytes
    gzipped: bytes | None
    media_type: str
    etag: str

    @classmethod
    def of(cls, body: bytes, media_type: str, *, compress: bool) -> "Asset":
        gzipped = gzip.compress(body, mtime=0) if compress else None
        return cls(body, gzipped, media_type, f'"{sha256(body).hexdigest()[:32]}"')


def text_asset(text: str, media_type: str) -> Asset:
    """Return a text as a file."""
    return Asset.of(text.encode(), media_type, compress=True)


@cache
def asset_names() -> frozenset[str]:
    """Return the names of the files that browsers get, such as `pages/keys.js`."""
    with as_file(files(__name__).joinpath("static")) as folder:
        found = [path for path in folder.rglob("*") if path.suffix.lstrip(".") in _TYPES]
        return frozenset(path.relative_to(folder).as_posix() for path in found)


@cache
def asset(name: str) -> Asset:
    """Return a file of the folder `static`."""
    body = files(__name__).joinpath("static", *name.split("/")).read_bytes()
    ending = name.rpartition(".")[2]
    return Asset.of(body, _TYPES[ending], compress=ending not in _COMPRESSED_ALREADY)
