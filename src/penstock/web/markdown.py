"""Render pages of the documentation: Markdown as HTML, with anchors, highlighted code and links of the gateway."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

from penstock.web.manual import linked_url

_FORMATTER = HtmlFormatter(nowrap=True, classprefix="hl-")
_PARSER = MarkdownIt("commonmark").enable("table")


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading of a page, and its anchor."""

    level: int
    text: str
    anchor: str


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and the plain text below it, for the search."""

    heading: Heading
    text: str


@dataclass(frozen=True, slots=True)
class Document:
    """A page as HTML, its headings, and its text by section."""

    title: str
    html: str
    headings: tuple[Heading, ...]
    sections: tuple[Section, ...]


@dataclass(frozen=True, slots=True)
class Entry:
    """A page in the navigation."""

    title: str
    url: str
    about: str


def render(path: str, text: str) -> Document:
    """Render the page at this path of the repository."""
    tokens = _PARSER.parse(text)
    headings = _anchored_headings(tokens)
    sections = tuple(_sections(tokens, headings))
    html = _Renderer(path).render(tokens, _PARSER.options, {})
    return Document(headings[0].text if headings else path, html, tuple(headings), sections)


def navigation(path: str, text: str) -> dict[str, list[Entry]]:
    """Return the groups of a page of contents: its second-level headings, and the links that begin its list items."""
    groups: dict[str, list[Entry]] = {}
    tokens = _PARSER.parse(text)
    group = ""
    for before, token in pairwise(tokens):
        if before.type == "heading_open" and before.tag == "h2":
            group = _plain(token)
        elif before.type == "paragraph_open" and token.level == 3 and group:
            groups.setdefault(group, []).append(_entry(path, token))
    return groups


def _entry(path: str, token: Token) -> Entry:
    children = token.children or []
    link = next(child for child in children if child.type == "link_open")
    end = next(place for place, child in enumerate(children) if child.type == "link_close")
    title = "".join(child.content for child in children[:end])
    about = "".join(_words(children[end:])).removeprefix(":").strip()
    return Entry(title, linked_url(path, str(link.attrGet("href"))) or "", about)


# ------------------------------------------------------------------------------------------------------------ headings


def _anchored_headings(tokens: Sequence[Token]) -> list[Heading]:
    """Give every heading an id, in the way of the sites that show repositories."""
    found: list[Heading] = []
    used: dict[str, int] = {}
    for opening, inline in pairwise(tokens):
        if opening.type == "heading_open":
            text = _plain(inline)
            anchor = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
            used[anchor] = used.get(anchor, -1) + 1
            if used[anchor]:
                anchor = f"{anchor}-{used[anchor]}"
            opening.attrSet("id", anchor)
            found.append(Heading(int(opening.tag[1:]), text, anchor))
    return found


def _sections(tokens: Sequence[Token], headings: Sequence[Heading]) -> Iterator[Section]:
    remaining = list(headings)
    words: list[str] = []
    heading: Heading | None = None
    for place, token in enumerate(tokens):
        if token.type == "heading_open":
            if heading is not None:
                yield Section(heading, _joined(words))
            heading, words = remaining.pop(0), []
        elif token.type == "inline" and tokens[place - 1].type != "heading_open":
            words.append(_plain(token))
        elif token.type == "fence":
            words.append(token.content)
    if heading is not None:
        yield Section(heading, _joined(words))


def _joined(words: Sequence[str]) -> str:
    return " ".join(" ".join(words).split())


def _plain(token: Token) -> str:
    return "".join(_words(token.children or []))


def _words(tokens: Sequence[Token]) -> Iterator[str]:
    for token in tokens:
        yield " " if token.type in ("softbreak", "hardbreak") else token.content


# ---------------------------------------------------------------------------------------------------------------- HTML


class _Renderer(RendererHTML):
    """HTML for the pages: raw HTML is left out, wide parts scroll, links lead to pages of the gateway."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self._path = path

    def html_block(self, tokens: Sequence[Token], place: int, options: Any, env: Any) -> str:
        return ""

    def html_inline(self, tokens: Sequence[Token], place: int, options: Any, env: Any) -> str:
        return ""

    def table_open(self, tokens: Sequence[Token], place: int, options: Any, env: Any) -> str:
        return '<div class="scroll" tabindex="0" role="group" aria-label="Table"><table>'

    def table_close(self, tokens: Sequence[Token], place: int, options: Any, env: Any) -> str:
        return "</table></div>"

    def heading_close(self, tokens: Sequence[Token], place: int, options: Any, env: Any) -> str:
        opening = tokens[place - 2]
        label = escape(f"Link to “{_plain(tokens[place - 1])}”")
        link = (
            ""
            if opening.tag == "h1"
            else f' <a class="anchor" href="#{opening.attrGet("id")}" aria-label="{label}">#</a>'
        )
        return f"{link}</{opening.tag}>\n"

    def link_open(self, tokens: Sequence[Token], place: int, options: Any, env: Any) -> str:
        href = str(tokens[place].attrGet("href"))
        url = linked_url(self._path, href)
        if url is None:
            return f'<span class="in-repository" title="In the repository: {escape(href)}">'
        return f'<a href="{escape(url)}">'

    def link_close(self, tokens: Sequence[Token], place: int, options: Any, env: Any) -> str:
        opening = next(token for token in reversed(tokens[:place]) if token.type == "link_open")
        return "</span>" if linked_url(self._path, str(opening.attrGet("href"))) is None else "</a>"

    def image(self, tokens: Sequence[Token], place: int, options: Any, env: Any) -> str:
        token = tokens[place]
        url = linked_url(self._path, str(token.attrGet("src"))) or ""
        return f'<img src="{escape(url)}" alt="{escape(token.content)}" loading="lazy">'

    def fence(self, tokens: Sequence[Token], place: int, options: Any, env: Any) -> str:
        token = tokens[place]
        language = token.info.partition(" ")[0]
        return (
            f'<div class="snippet"><pre tabindex="0"><code>{highlighted(token.content, language)}</code></pre></div>\n'
        )

    def code_block(self, tokens: Sequence[Token], place: int, options: Any, env: Any) -> str:
        return self.fence(tokens, place, options, env)


_LANGUAGES: Mapping[str, str] = {"sh": "bash", "console": "console", "jsonc": "json"}


def highlighted(code: str, language: str) -> str:
    """Return code as HTML, with a class for each kind of word."""
    try:
        lexer = get_lexer_by_name(_LANGUAGES.get(language, language or "text"))
    except ClassNotFound:
        return escape(code)
    return str(highlight(code, lexer, _FORMATTER))
