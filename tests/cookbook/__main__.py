"""Install what the pages of the cookbook install, run their programs, and write docs/cookbook/results.json.

`make test-cookbook` runs this. Names of pages as arguments choose some of them; without, all are run except the large
ones. The packages go into .venv/cookbook, a folder for each page, in the versions that are the newest when the folder
is made, as a reader of the page gets them.
"""

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.cookbook.pages import FOLDER, OURSELVES, ROOT, Page, is_ours, pages
from tests.cookbook.runs import Packages, ProgramFailed, run_page
from tests.stories.processes import Installation

INSTALLED = ROOT / ".venv" / "cookbook"
LARGE = ("open-webui",)  # several gigabytes: run only when named
SECONDS = 600  # for one program
RESULTS = FOLDER / "results.json"


def main(names: Sequence[str]) -> int:
    """Run the named pages, or all; return the exit status."""
    chosen = [page for page in pages() if (page.name in names if names else page.name not in LARGE)]
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    failed = []
    with tempfile.TemporaryDirectory(prefix="penstock-") as folder:
        installation = Installation(Path(folder) / "data", "", None)
        with installation.serving(PENSTOCK_EGRESS_ALLOW_HOSTS="localhost") as serving:
            for page in chosen:
                say(f"{page.name}: installing")
                packages = install(page)
                say(f"{page.name}: running")
                work = Path(folder) / page.name
                work.mkdir()
                try:
                    run_page(page, serving, work, packages, seconds=SECONDS)
                except ProgramFailed as problem:
                    failed.append(page.name)
                    results.pop(page.name, None)
                    say(str(problem))
                else:
                    results[page.name] = {"versions": versions(page, packages), "shows": page.shows}
    known = {page.name for page in pages()}
    RESULTS.write_text(json.dumps({name: results[name] for name in sorted(known & results.keys())}, indent=2) + "\n")
    say(f"failed: {', '.join(failed)}" if failed else f"{len(chosen)} pages ran")
    return 1 if failed else 0


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def install(page: Page) -> Packages:
    """Install the packages of a page into a folder of its own, unless they are there; our own is installed anew."""
    folder = INSTALLED / page.name
    stamp = folder / "installed"
    wanted = "\n".join([*page.pip, *page.npm])
    if any(map(is_ours, page.pip)) or not stamp.exists() or stamp.read_text() != wanted:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        _install(page, folder)
        stamp.write_text(wanted)
    return Packages(
        bin=folder / "bin" if page.pip else Packages().bin, node_modules=folder / "node_modules" if page.npm else None
    )


def _install(page: Page, folder: Path) -> None:
    if page.pip:
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
        python = folder / "bin" / "python"
        wanted = [package.replace(OURSELVES, str(ROOT)) if is_ours(package) else package for package in page.pip]
        pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet"]
        subprocess.run([*pip, *wanted], check=True)
    if page.npm:
        (folder / "package.json").write_text('{"private": true, "type": "module"}')
        command = ["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--silent", *page.npm]
        subprocess.run(command, cwd=folder, check=True)


def versions(page: Page, packages: Packages) -> dict[str, str]:
    """The installed versions of what the page names."""
    found: dict[str, str] = {}
    if page.pip:
        listed = subprocess.run(
            [sys.executable, "-m", "pip", "--python", str(packages.bin / "python"), "list", "--format", "json"],
            check=True, capture_output=True, text=True,
        )  # fmt: skip
        installed = {package["name"]: package["version"] for package in json.loads(listed.stdout)}
        named = [package.partition("[")[0] for package in page.pip if not is_ours(package)]
        found |= {name: installed[name] for name in named}
    for name in page.npm:
        assert packages.node_modules
        package: dict[str, Any] = json.loads((packages.node_modules / name / "package.json").read_text())
        found[name] = package["version"]
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
