"""Build what browsers and programs get of the documentation: pages, the index of the search, and `llms.txt`."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from html import escape
from importlib.resources import files
from string import Template

from penstock.web import Asset, manual, markdown, text_asset

_API_TITLE = "API reference"
_API_ABOUT = "every endpoint with its parameters, bodies, examples and errors."
_API_BODY = (
    f'<h1>{_API_TITLE}</h1><p>Made from <a href="/openapi.json">the OpenAPI description</a> of this gateway.</p>'
    '<div id="api"><noscript>This page needs JavaScript; <a href="/docs/endpoints">endpoints</a> does not.</noscript>'
    "</div>"
)
_MISSING_TITLE = "Page not found"
_MISSING_BODY = (
    f"<h1>{_MISSING_TITLE}</h1><p>The documentation has no page at this URL. Search for it, or begin with "
    '<a href="/docs">the list of all pages</a>.</p>'
)
_HTML = "text/html; charset=utf-8"
_TEXT = "text/plain; charset=utf-8"
_JSON = "application/json"
_TYPES = {"webp": "image/webp", "svg": "image/svg+xml", "json": _JSON, "md": "text/markdown; charset=utf-8"}


def manual_asset(name: str) -> Asset | None:
    """Return what is served at `/docs/` and this name, or None."""
    if name in _MADE:
        return _made_asset(name)
    path = manual.paths().get(name)
    return None if path is None else _file_asset(path, is_page=path.endswith(".md") and not name.endswith(".md"))


@cache
def missing_page() -> Asset:
    """Return the page for a URL under `/docs/` that has none."""
    return text_asset(_page("", _MISSING_TITLE, _MISSING_BODY, [], "page.js"), _HTML)


@cache
def _made_asset(name: str) -> Asset:
    make, media_type = _MADE[name]
    return text_asset(make(), media_type)


@cache
def _file_asset(path: str, *, is_page: bool) -> Asset:
    if is_page:
        document = _document(path)
        url = manual.url_of(path)
        return text_asset(
            _page(url, document.title, document.html + _neighbours(url), document.headings, "page.js"), _HTML
        )
    ending = path.rpartition(".")[2]
    return Asset.of(manual.content(path), _TYPES.get(ending, _TEXT), compress=ending != "webp")


@cache
def _document(path: str) -> markdown.Document:
    return markdown.render(path, manual.content(path).decode())


@cache
def navigation() -> dict[str, list[markdown.Entry]]:
    """Return the groups and pages of the navigation, as docs/README.md lists them."""
    groups = markdown.navigation(manual.HOME, manual.content(manual.HOME).decode())
    groups["Reference"].insert(0, markdown.Entry(_API_TITLE, "/docs/api", _API_ABOUT))
    return groups


# --------------------------------------------------------------------------------------------------------------- pages


def _page(url: str, title: str, body: str, headings: Sequence[markdown.Heading], script: str) -> str:
    template = Template(files(__package__).joinpath("page.html").read_text())
    return template.substitute(
        title=escape(title),
        script=script,
        navigation="".join(_navigation_html(url)),
        body=body,
        contents=_contents_html(headings),
    )


def _navigation_html(here: str) -> Iterator[str]:
    for group, entries in navigation().items():
        yield f"<h2>{escape(group)}</h2><ul>"
        for entry in entries:
            current = ' aria-current="page"' if entry.url == here else ""
            yield f'<li><a href="{escape(entry.url)}"{current}>{escape(entry.title)}</a></li>'
        yield "</ul>"


def _contents_html(headings: Sequence[markdown.Heading]) -> str:
    second = [heading for heading in headings if heading.level == 2]
    if len(second) < 2:
        return ""
    items = "".join(f'<li><a href="#{heading.anchor}">{escape(heading.text)}</a></li>' for heading in second)
    return f'<nav class="contents" aria-label="On this page"><h2>On this page</h2><ul>{items}</ul></nav>'


def _neighbours(url: str) -> str:
    """Return links to the pages before and after this one."""
    entries = [entry for group in navigation().values() for entry in group]
    places = [place for place, entry in enumerate(entries) if entry.url == url]
    if not places:
        return ""
    before, after = entries[: places[0]][-1:], entries[places[0] + 1 :][:1]
    links = [f'<a rel="prev" href="{entry.url}">← {escape(entry.title)}</a>' for entry in before]
    links += [f'<a rel="next" href="{entry.url}">{escape(entry.title)} →</a>' for entry in after]
    return f'<nav class="neighbours" aria-label="Neighbouring pages">{"".join(links)}</nav>'


# ----------------------------------------------------------------------------------------------- for programs


def _search_index() -> str:
    """Return every section of every page: its URL, page, heading and text."""
    rows = []
    for path, url in manual.urls().items():
        if path.endswith(".md"):
            document = _document(path)
            for section in document.sections:
                anchor = "" if section.heading.level == 1 else f"#{section.heading.anchor}"
                rows.append([f"{url}{anchor}", document.title, section.heading.text, section.text])
    return json.dumps(rows, ensure_ascii=False)


def llms_txt(base_url: str) -> Asset:
    """Return the list of pages in the form of llmstxt.org, with links to their Markdown."""
    lines = [f"# Penstock\n\n> {_summary()}\n"]
    for group, entries in navigation().items():
        lines.append(f"## {group}\n")
        lines += [f"- [{entry.title}]({base_url}{_raw_url(entry.url)}): {entry.about}" for entry in entries]
        lines.append("")
    lines += ["## Optional\n", f"- [Everything in one file]({base_url}/llms-full.txt)"]
    lines += [f"- [OpenAPI description]({base_url}/openapi.json)", ""]
    return text_asset("\n".join(lines), _TEXT)


def _llms_full() -> str:
    """Return the Markdown of every page of the navigation in one text."""
    by_url = {url: path for path, url in manual.urls().items()}
    entries = [entry for group in navigation().values() for entry in group]
    paths = [by_url[entry.url] for entry in entries if entry.url in by_url]
    return "\n\n".join(manual.content(path).decode() for path in paths)


def _raw_url(url: str) -> str:
    name = url.removeprefix("/docs").removeprefix("/")
    return url if name == "api" else f"/docs/{name or 'README'}.md"


def _summary() -> str:
    """Return the first paragraph of the page of contents."""
    [first, *_] = _document(manual.HOME).sections
    return first.text


# ------------------------------------------------------------------------------------------------------- made of others


def _api_page() -> str:
    return _page("/docs/api", _API_TITLE, _API_BODY, (), "api.js")


# What is not a file of the documentation: how each is made, and its content type.
_MADE: Mapping[str, tuple[Callable[[], str], str]] = {
    "api": (_api_page, _HTML),
    "search.json": (_search_index, _JSON),
    "llms-full.txt": (_llms_full, _TEXT),
}
