"""The blocks of code in the documentation: which are run, and why the others are not.

A block of `sh` or `python` is run by tests/test_snippets.py, all blocks of a page one after the other in one folder. A
block that cannot be run has a line before it that says why:

    <!-- not run: starts a server -->
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
# What they show has tests of its own: programs that `make test-cookbook` runs, quotations that are compared with the
# source, calls that tests/test_examples.py makes, and commands that `make test-evening` runs.
_TESTED_ELSEWHERE = tuple(
    ROOT / "docs" / name for name in ("cookbook", "add-a-provider.md", "endpoints.md", "evening.md")
)
_RUN = {"sh", "python"}
_NOT_CODE = {"", "text", "json", "toml", "yaml"}
_FENCE = re.compile(
    r"(?:^<!-- not run: (?P<reason>[^\n]+) -->\n)?^```(?P<language>\w*)[^\n]*\n(?P<code>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Block:
    """A block of code on a page, and why it is not run, if it is not."""

    page: Path
    line: int
    language: str
    code: str
    reason: str | None

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}, line {self.line}"


def pages() -> list[Path]:
    found = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [path for path in found if not any(path.is_relative_to(place) for place in _TESTED_ELSEWHERE)]


def blocks(page: Path) -> Iterator[Block]:
    text = page.read_text()
    for match in _FENCE.finditer(text):
        line = text.count("\n", 0, match.start("language")) + 1
        yield Block(page, line, match["language"], match["code"], match["reason"])


def runnable(page: Path) -> list[Block]:
    return [block for block in blocks(page) if block.language in _RUN and block.reason is None]


def unexplained(page: Path) -> list[str]:
    """Blocks that are neither run nor explained."""
    return [
        f"{block}: say why a block of {block.language} is not run"
        for block in blocks(page)
        if block.language not in _RUN | _NOT_CODE and block.reason is None
    ]
