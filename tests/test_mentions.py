"""Whatever file, module or target of the Makefile the code, its comments or the documentation name exists."""

import re
import ssl
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

from bench.ends import PARTS

ROOT = Path(__file__).parent.parent
LEFT_BEHIND = {"__pycache__", "penstock.egg-info"}
FOLDERS = ("bench", "deploy", "docs", "integrations", "src", "tests")
READ = {".css", ".html", ".js", ".md", ".py", ".sh", ".sql", ".toml", ".txt", ".yaml", ""}

# A file with its folder, from anywhere in the tree on: `tests/unit/test_clock.py`, `unit/test_clock.py`.
PATH = re.compile(
    r"(?<![\w./:@{}<>*-])(?:\.{1,2}/)*((?:[\w-]+/)+[\w.-]*\w\.(?:css|html|js|json|md|py|sh|sql|toml|txt|yaml))(?![\w/-])"
)
# A file without its folder, where it is no text of a program.
NAME = re.compile(r"""(?<![\w./:@{}<>*"'%-])(\w[\w-]*\.(?:py|md))(?![\w/("'-])""")
MODULE = re.compile(r"\bpython3? -m ((?:bench|docs|penstock|tests)(?:\.\w+)+)|\b(penstock\.\w+\.\w+)")
TARGET = re.compile(r"(?:`|&& )make(?: -\w+)* ([a-z][a-z-]*)|^make ([a-z-]+)(?= *#|$)", re.MULTILINE)

# Files of others, and files that an example invents.
ELSEWHERE = {
    "penstock_acme.py",  # the reader of docs/add-a-provider.md writes it
    "penstock.providers.acme",  # a test makes it
    "test_covers.py",  # the reader of docs/cookbook/pytest.md writes it
    "docs/fruit.md",  # tests of the documentation's pages
    "penstock/web/manual/docs/README.md",  # in the wheel
}


@cache
def files() -> list[Path]:
    """The files of the project, without what running it leaves behind."""
    inside = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*")]
    return [
        path
        for path in sorted([*ROOT.iterdir(), *inside])
        if path.is_file() and not LEFT_BEHIND & {path.name for path in path.parents} and not path.name.startswith(".")
    ]


@cache
def endings() -> set[str]:
    """Each way to name a file: its path, and what remains of it without its first folders."""
    paths = [path.relative_to(ROOT).parts for path in files()]
    return {"/".join(parts[start:]) for parts in paths for start in range(len(parts))}


@cache
def folders() -> set[str]:
    return {folder for path in files() for folder in path.relative_to(ROOT).parts[:-1]}


@cache
def targets() -> set[str]:
    return set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


def is_missing_path(name: str) -> bool:
    return name.partition("/")[0] in folders() and name not in endings()


def is_missing_name(name: str) -> bool:
    return name not in endings()


def is_missing_module(name: str) -> bool:
    """False for what a package has besides modules, such as `penstock.providers.discover`, and where no package is."""
    parent, _, last = name.replace(".", "/").removeprefix("penstock/").rpartition("/")
    folder = ROOT / "src" / "penstock" / parent if name.startswith("penstock.") else ROOT / parent
    package = folder / "__init__.py"
    if not folder.is_dir() or (folder / last).is_dir() or (folder / f"{last}.py").exists():
        return False
    return not (package.exists() and re.search(rf"\b{last}\b", package.read_text()))


def is_missing_target(name: str) -> bool:
    return name not in targets()


KINDS: list[tuple[re.Pattern[str], Callable[[str], bool]]] = [
    (PATH, is_missing_path),
    (NAME, is_missing_name),
    (MODULE, is_missing_module),
    (TARGET, is_missing_target),
]


def mentions(text: str) -> Iterator[tuple[int, str, bool]]:
    """The position of each name in a text, the name, and whether there is no such thing."""
    for pattern, is_missing in KINDS:
        for match in pattern.finditer(text):
            name = next(group for group in match.groups() if group)
            yield match.start(), name, is_missing(name)


def test_what_is_named_exists() -> None:
    missing = []
    used = set()
    for path in files():
        if path.suffix not in READ or path == Path(__file__) or "third_party" in path.parts:
            continue
        text = path.read_text()
        for start, name, is_missing in mentions(text):
            if name in ELSEWHERE:
                used.add(name)
            elif is_missing:
                missing.append(f"{path.relative_to(ROOT)}, line {text.count(chr(10), 0, start) + 1}: {name}")
    assert missing == []
    assert used == ELSEWHERE


def test_the_parts_of_a_profile_are_functions_of_the_gateway_or_of_tls() -> None:
    sources = [*(ROOT / "src").rglob("*.py"), Path(ssl.__file__)]
    missing = [
        f"{part}: {function} in {name}"
        for part, name, function in PARTS
        if not any(f"def {function}(" in path.read_text() for path in sources if path.name == name)
    ]
    assert missing == []


def test_the_check_finds_names_of_what_does_not_exist() -> None:
    found = {
        "see tests/nowhere.py": ["tests/nowhere.py"],
        "Checked by upstream/nowhere.py, which knows": ["upstream/nowhere.py"],
        "[page](../docs/nowhere.md)": ["docs/nowhere.md"],
        "as in nowhere.py.": ["nowhere.py"],
        "store/queries/nowhere.sql": ["store/queries/nowhere.sql"],
        "python -m bench.nowhere --short": ["bench.nowhere"],
        "penstock.jobs.nowhere": ["penstock.jobs.nowhere"],
        "`make nowhere`": ["nowhere"],
        "jobs/leases.py, test_mentions.py, penstock.jobs.leases, `make -s test`, penstock.providers.discover": [],
        '(tmp_path / "nowhere.py"), https://host.test/docs/nowhere.md, make nothing, penstock.request.id': [],
    }
    assert {text: [name for _, name, is_missing in mentions(text) if is_missing] for text in found} == found
