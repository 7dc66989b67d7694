"""The pages of docs/cookbook: those that need no further packages are run here, the others by `make test-cookbook`."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cookbook.__main__ import RESULTS
from tests.cookbook.pages import FEATURES, OURSELVES, Page, Program, pages, read_page
from tests.cookbook.runs import Packages, ProgramFailed, run_page
from tests.stories.processes import Installation, Serving

pytestmark = pytest.mark.timeout(300)
HERE_ALREADY = {"openai", OURSELVES, "pytest", "standardwebhooks"}
RUNNABLE = [page for page in pages() if not page.npm and HERE_ALREADY.issuperset(page.pip)]


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    """A gateway as `penstock serve` starts it in an empty folder."""
    installation = Installation(tmp_path_factory.mktemp("cookbook") / "data", "", None)
    with installation.serving(PENSTOCK_EGRESS_ALLOW_HOSTS="localhost") as serving:
        yield serving


@pytest.mark.parametrize("page", RUNNABLE, ids=lambda page: page.name)
def test_the_programs_of_a_page_print_what_it_says(page: Page, serving: Serving, tmp_path: Path) -> None:
    run_page(page, serving, tmp_path, Packages(), together=True)


def test_a_program_that_prints_something_else_fails_its_page(serving: Serving, tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    for code, printed, message in (
        ("print('one')", "two", "one"),
        ("print('one'); raise SystemExit(3)", "one", "exit status 3"),
    ):
        path.write_text(f"# Title\n\n<!-- shows: chat -->\n```python\n{code}\n```\n\n```text\n{printed}\n```\n")
        for together in (False, True):
            with pytest.raises(ProgramFailed, match=message):
                run_page(read_page(path), serving, tmp_path, Packages(), together=together)


@pytest.mark.parametrize(
    ("printed", "output", "fits"),
    [("a…z", "abcz\n", True), ("a…z", "a\nz", True), ("a.z", "abz", False), ("", "", True), ("", "noise", False)],
)
def test_what_a_program_prints_is_compared(printed: str, output: str, fits: bool) -> None:
    assert Program("", ".py", (), False, printed).is_printed(output) is fits


def test_blocks_that_nothing_runs_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    for block, message in (("```ruby\nputs 1\n```\n", "ruby"), ("<!-- shows: magic -->\n```sh\nls\n```\n", "magic")):
        path.write_text(block)
        with pytest.raises(ValueError, match=message):
            read_page(path)


def test_the_results_are_those_of_the_pages() -> None:
    """The table of clients and features says of each page what its programs show, and with which versions."""
    results = json.loads(RESULTS.read_text())
    found = {name: result["shows"] for name, result in results.items()}
    assert found == {page.name: page.shows for page in pages()}, "run `make test-cookbook`"
    named = {page.name: {name.partition("[")[0] for name in [*page.pip, *page.npm]} - {OURSELVES} for page in pages()}
    assert {name: set(result["versions"]) for name, result in results.items()} == named


def test_every_feature_is_shown_by_a_page() -> None:
    assert [feature for feature in FEATURES if not any(feature in page.shows for page in pages())] == []


def test_pages_name_the_gateway_alike() -> None:
    """Every program uses the address and the variable that the pages explain, and no model that has to be bought."""
    texts = {page.name: page.path.read_text() for page in pages()}
    ports = {name: set(re.findall(r"(?:127\.0\.0\.1|localhost):(\d+)", text)) for name, text in texts.items()}
    assert {port for found in ports.values() for port in found} <= {"8080", "9000"}
    with_own_keys = {"pytest", "vitest"}
    assert [name for name, text in texts.items() if name not in with_own_keys and "PENSTOCK_KEY" not in text] == []
