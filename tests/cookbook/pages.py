"""Read the pages of docs/cookbook: what each installs, the programs it shows, and what they print."""

import re
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "cookbook"
FEATURES = (
    "chat",
    "stream",
    "tools",
    "structured output",
    "images as input",
    "responses",
    "images",
    "image edits",
    "upscaling",
    "image streams",
    "videos",
    "models",
    "speech",
    "webhooks",
    "replay",
)

GATEWAY_COMMAND = "PENSTOCK_EGRESS_ALLOW_HOSTS=localhost penstock serve\n"

# A block of code, with the comment before it if there is one.
_BLOCK = re.compile(
    r"(?:^<!-- (?P<note>[^\n]*?) -->\n)?^```(?P<language>\w+)\n(?P<code>.*?)^```$", re.DOTALL | re.MULTILINE
)
_INSTALL = re.compile(r"^(?P<tool>pip|npm) install (?P<packages>.+)$")
OURSELVES = "./penstock"  # as a page names a clone of this repository; `[extra]` may follow
_SUFFIXES = {"python": ".py", "js": ".mjs", "sh": ".sh"}


@dataclass(slots=True)
class Program:
    """A block of code that is run, and what it must print; `…` in that stands for any text."""

    code: str
    suffix: str
    shows: tuple[str, ...]
    is_server: bool  # runs until the page is done
    prints: str = ""

    def is_printed(self, output: str) -> bool:
        """Whether the output of the program is the one on the page."""
        pattern = ".*".join(re.escape(part) for part in self.prints.strip().split("…"))
        return re.fullmatch(pattern, output.strip(), re.DOTALL) is not None


@dataclass(slots=True)
class Page:
    """One page of the cookbook."""

    path: Path
    pip: list[str] = field(default_factory=list)
    npm: list[str] = field(default_factory=list)
    programs: list[Program] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.path.stem

    @property
    def shows(self) -> list[str]:
        """The features that the programs show, in the order of the table."""
        return [feature for feature in FEATURES if any(feature in program.shows for program in self.programs)]


def pages() -> list[Page]:
    """Every page, by name."""
    return [read_page(path) for path in sorted(FOLDER.glob("*.md")) if path.name != "README.md"]


def read_page(path: Path) -> Page:
    """Read one page; raise ValueError for a block that would not be run."""
    page = Page(path)
    for block in _BLOCK.finditer(path.read_text()):
        note = block["note"] or ""
        code = block["code"]
        language = block["language"]
        if language == "text":
            page.programs[-1].prints = code
        elif note.startswith("file: "):
            page.files[note.removeprefix("file: ")] = code
        elif code == GATEWAY_COMMAND:
            continue  # the gateway runs already, with this setting
        elif language == "sh" and (install := _INSTALL.match(code.strip())):
            (page.pip if install["tool"] == "pip" else page.npm).extend(_unquoted(install["packages"]))
        elif language in _SUFFIXES:
            page.programs.append(_program(note, code, _SUFFIXES[language]))
        else:
            raise ValueError(f"{path.name} has a block of {language} that nothing runs")
    return page


def _program(note: str, code: str, suffix: str) -> Program:
    kind, _, features = note.partition(": ")
    shows = tuple(feature.strip() for feature in features.split(",")) if features else ()
    if unknown := set(shows) - set(FEATURES):
        raise ValueError(f"unknown features: {', '.join(sorted(unknown))}")
    return Program(code, suffix, shows, is_server=kind == "server")


def is_ours(package: str) -> bool:
    """Whether a page means this repository."""
    return package.partition("[")[0] == OURSELVES


def _unquoted(packages: str) -> list[str]:
    return [package.strip("\"'") for package in packages.split()]
