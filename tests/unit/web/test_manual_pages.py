"""What the gateway serves below /docs: every page, in the navigation, with links that work; the search; llms.txt."""

import gzip
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from penstock.api.asgi import AsgiApp
from penstock.web import asset_names, manual, manual_pages
from tests.api.accounts import opened
from tests.api.raw_http import serving

PAGES = sorted(
    url.removeprefix("/docs").removeprefix("/") for path, url in manual.urls().items() if path.endswith(".md")
)


class Reader(HTMLParser):
    """Collects what a page refers to, its anchors, and what the security policy forbids."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.ids: list[str] = []
        self.forbidden: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.links += [value for name, value in attrs if name in ("href", "src") and value is not None]
        self.ids += [found["id"] or ""] if "id" in found else []
        self.forbidden += [f"{tag} {name}" for name in found if name == "style" or name.startswith("on")]
        if tag == "script" and "src" not in found:
            self.forbidden.append("inline script")


def read(name: str) -> Reader:
    found = manual_pages.manual_asset(name)
    assert found is not None, name
    reader = Reader()
    reader.feed(found.body.decode())
    return reader


@pytest.fixture(scope="module")
def readers() -> dict[str, Reader]:
    return {name: read(name) for name in (*PAGES, "api")}


def test_every_link_of_every_page_leads_somewhere(readers: dict[str, Reader]) -> None:
    broken = []
    for page, reader in readers.items():
        for link in reader.links:
            url, _, anchor = link.partition("#")
            target = url.removeprefix("/docs").removeprefix("/") if url else page
            if re.match(r"[a-z]+:|/$|/openapi.json$", url):
                continue
            if url.startswith("/dashboard/"):
                is_there = url.removeprefix("/dashboard/") in asset_names()
            elif target in readers:
                is_there = not anchor or anchor in readers[target].ids
            else:
                is_there = manual_pages.manual_asset(target) is not None
            if not is_there:
                broken.append(f"{page}: {link}")
    assert broken == []


def test_no_page_needs_what_the_security_policy_forbids(readers: dict[str, Reader]) -> None:
    assert {page: reader.forbidden for page, reader in readers.items() if reader.forbidden} == {}
    assert {page for page, reader in readers.items() if len(set(reader.ids)) != len(reader.ids)} == set()


def test_every_page_is_in_the_navigation_or_listed_by_a_page_that_is() -> None:
    listed = {entry.url for group in manual_pages.navigation().values() for entry in group}
    unlisted = {url for path, url in manual.urls().items() if path.endswith(".md")} - listed - {"/docs"}
    indexes = [name for name in ("decisions", "cookbook", "providers") if name in PAGES]
    linked = {link.partition("#")[0] for name in indexes for link in read(name).links}
    assert sorted(unlisted - linked) == []
    assert list(manual_pages.navigation()) == ["Start", "Guides", "Reference", "Operating", "Project"]


def test_the_search_knows_every_section() -> None:
    found = manual_pages.manual_asset("search.json")
    assert found is not None
    rows = json.loads(found.body)
    assert ["/docs/videos#after-a-crash", "Videos", "After a crash"] in [row[:3] for row in rows]
    assert {row[0].partition("#")[0] for row in rows} == {f"/docs/{page}".rstrip("/") for page in PAGES}
    assert len(gzip.compress(found.body)) < 300_000  # which a reader loads with the first search


async def test_they_are_served_without_a_key(tmp_path: Path) -> None:
    kinds = {
        "/docs": "text/html; charset=utf-8",
        "/docs/images": "text/html; charset=utf-8",
        "/docs/api": "text/html; charset=utf-8",
        "/docs/images.md": "text/markdown; charset=utf-8",
        "/docs/images/overview.webp": "image/webp",
        "/docs/images/how-it-works.svg": "image/svg+xml",
        "/docs/penstock.schema.json": "application/json",
        "/docs/search.json": "application/json",
        "/docs/deploy/proxies/nginx.conf": "text/plain; charset=utf-8",
        "/llms.txt": "text/plain; charset=utf-8",
        "/llms-full.txt": "text/plain; charset=utf-8",
    }
    async with opened(tmp_path) as gateway, serving(AsgiApp(gateway), gateway.settings) as served:
        for path, kind in kinds.items():
            response = await served.call("GET", path)
            assert (response.status, response.headers["content-type"]) == (200, kind), path
            assert "script-src 'self'" in response.headers["content-security-policy"]
            again = await served.call("GET", path, headers={"if-none-match": response.headers["etag"]})
            assert again.status == 304
        for name in ("nonesuch", "README", "../pyproject.toml", "images/../images.md", "%2e%2e/pyproject.toml", "src"):
            response = await served.call("GET", f"/docs/{name}")
            assert (response.status, response.code) == (404, "NOT_FOUND"), name
        missing = await served.call("GET", "/docs/nonesuch", headers={"accept": "text/html,*/*;q=0.8"})
        assert (missing.status, missing.headers["content-type"]) == (404, "text/html; charset=utf-8")
        assert b"Page not found" in missing.body
        assert b'href="/docs/quickstart"' in missing.body
        listed = (await served.call("GET", "/llms.txt")).body.decode()
        for path in re.findall(r"\]\(https?://[^/]+(/[^)]+)\)", listed):
            assert (await served.call("GET", path)).status == 200, path
        assert len((await served.call("GET", "/llms-full.txt")).body) > 100_000
