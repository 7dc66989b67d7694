"""Find the files of the documentation, and the URL under which the gateway serves each of them."""

import posixpath
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

HOME = "docs/README.md"
# The wheel has a copy of these files, made by setup.py; in a clone they are read where they are.
_SOURCES = ("docs", "deploy")
_SINGLE_FILES = ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "Dockerfile", "compose.yaml")
_ENDINGS = {
    ".md",
    ".webp",
    ".svg",
    ".json",
    ".py",
    ".js",
    ".mjs",
    ".sh",
    ".toml",
    ".txt",
    ".yaml",
    ".yml",
    ".conf",
    ".service",
}
_NAMES = {"Caddyfile", "Dockerfile"}  # files without an ending
_COPY = Path(__file__).parent / "manual"
_CLONE = Path(__file__).parents[3]
_SCHEME = re.compile(r"[a-z]+:")


def manual_paths(root: Path) -> Iterator[str]:
    """Yield the paths of the documentation below the root of a clone, such as `docs/images.md`."""
    yield from (name for name in _SINGLE_FILES if (root / name).is_file())
    for source in _SOURCES:
        for path in sorted((root / source).rglob("*")):
            if path.is_file() and (path.suffix in _ENDINGS or path.name in _NAMES):
                yield path.relative_to(root).as_posix()


@cache
def _root() -> Path:
    return _COPY if _COPY.is_dir() else _CLONE


@cache
def urls() -> dict[str, str]:
    """Return the URL of each file, by its path in the repository."""
    return {path: url_of(path) for path in manual_paths(_root())}


@cache
def paths() -> dict[str, str]:
    """Return the path in the repository by what follows `/docs/` in a URL: pages with and without `.md`."""
    found = {url.removeprefix("/docs").removeprefix("/"): path for path, url in urls().items()}
    raw = {f"{name or 'README'}.md": path for name, path in found.items() if path.endswith(".md")}
    return raw | found


def url_of(path: str) -> str:
    """Return the URL of a file: `/docs/images` for `docs/images.md`, `/docs/changelog` for `CHANGELOG.md`."""
    name = path.removeprefix("docs/")
    if not name.endswith(".md"):
        return f"/docs/{name}"
    page = name.removesuffix(".md")
    if page.endswith("README"):
        page = page.removesuffix("README").rstrip("/")
    elif "/" not in path:
        page = page.lower()
    return f"/docs/{page}".rstrip("/")


def linked_url(page: str, href: str) -> str | None:
    """Return the URL that a link on a page leads to; None if it leads to a file that is in the repository only."""
    if _SCHEME.match(href) or href.startswith("#"):
        return href
    target, mark, anchor = href.partition("#")
    url = urls().get(posixpath.normpath(posixpath.join(posixpath.dirname(page), target)))
    return None if url is None else f"{url}{mark}{anchor}"


@cache
def content(path: str) -> bytes:
    """Return a file of the documentation."""
    return (_root() / path).read_bytes()
