"""Run the programs of a page of the cookbook against a gateway, as a reader would who pastes them."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from tests.cookbook.pages import Page, Program
from tests.other_plugins import WITHOUT_OTHER_PLUGINS
from tests.ports import unused_port
from tests.stories.processes import Serving, until

GATEWAY = "http://127.0.0.1:8080"  # as the pages name it
SERVER_PORT = "9000"  # of the receivers and servers on the pages
SECONDS = 100  # for one program


class ProgramFailed(AssertionError):
    """A program of a page failed, or printed something else than the page says."""


@dataclass(frozen=True, slots=True)
class Packages:
    """Where the packages of a page are installed."""

    bin: Path = Path(sys.executable).parent
    node_modules: Path | None = None


# Runs programs one after the other, each as a program of its own, and marks where the output of each ends.
TOGETHER = """
import runpy, sys
mark, *names = sys.argv[1:]
for name in names:
    runpy.run_path(name, run_name="__main__")
    print(mark)
"""
MARK = "-- end of a program --"


def run_page(
    page: Page,
    serving: Serving,
    folder: Path,
    packages: Packages,
    seconds: float = SECONDS,
    *,
    together: bool = False,
) -> None:
    """Run the programs of a page in order, in one folder; raise ProgramFailed for the first that goes wrong.

    `together` lets one process run Python programs that follow each other, because a client may take a second to
    import.
    """
    run = _PageRun(page, serving, folder, packages, seconds)
    if packages.node_modules:
        (folder / "node_modules").symlink_to(packages.node_modules)
    for name, content in page.files.items():
        (folder / name).write_text(run.localized(content))
    with ExitStack() as servers:
        for is_joined, group in groupby(enumerate(page.programs, 1), lambda each: together and is_joinable(each[1])):
            if is_joined:
                run.run_together(list(group))
                continue
            for number, program in group:
                if program.is_server:
                    servers.enter_context(run.server(program, number))
                else:
                    run.run(program, number)
        run.check_servers()


def is_joinable(program: Program) -> bool:
    return program.suffix == ".py" and not program.is_server


class _PageRun:
    """The programs of one page, with the gateway, the port and the folder that they use."""

    def __init__(self, page: Page, serving: Serving, folder: Path, packages: Packages, seconds: float) -> None:
        self._page = page
        self._serving = serving
        self._folder = folder
        self._packages = packages
        self._seconds = seconds
        self._port = str(unused_port())
        self._servers: list[tuple[Program, Path]] = []

    def localized(self, code: str) -> str:
        """The code with the gateway and the port of this run."""
        return code.replace(GATEWAY, self._serving.url).replace(SERVER_PORT, self._port)

    def run(self, program: Program, number: int) -> None:
        done = self._done(self._command(program, number))
        if done.returncode != 0 or not program.is_printed(done.stdout):
            self._fail(number, f"exit status {done.returncode}\n{done.stdout}\n{done.stderr[-3000:]}")

    def run_together(self, programs: Sequence[tuple[int, Program]]) -> None:
        """Run Python programs in one process."""
        files = [self._command(program, number)[-1] for number, program in programs]
        done = self._done([str(self._packages.bin / "python"), "-c", TOGETHER, MARK, *files])
        *outputs, rest = done.stdout.split(f"{MARK}\n")
        for (number, program), output in zip(programs, outputs, strict=False):
            if not program.is_printed(output):
                self._fail(number, output)
        if len(outputs) < len(programs):
            number, _ = programs[len(outputs)]
            self._fail(number, f"exit status {done.returncode}\n{rest}\n{done.stderr[-3000:]}")

    def _done(self, command: Sequence[str]) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            command, cwd=self._folder, env=self._environment(), capture_output=True, text=True,
            timeout=self._seconds, check=False,
        )  # fmt: skip

    @contextmanager
    def server(self, program: Program, number: int) -> Iterator[None]:
        """Run a program until the page is done; it has started when it prints its first line."""
        output = self._folder / f"output-{number}"
        with output.open("wb") as file:
            process = subprocess.Popen(
                self._command(program, number),
                cwd=self._folder,
                env=self._environment(),
                stdout=file,
                stderr=file,
                start_new_session=True,
            )
        try:
            until(lambda: process.poll() is not None or bool(output.read_text()), self._seconds)
            self._servers.append((program, output))
            yield
        finally:
            with suppress(ProcessLookupError):  # it has ended by itself
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def check_servers(self) -> None:
        """Wait until every server has printed what the page says, if it says something."""
        for program, output in self._servers:
            if program.prints:
                self._await_output(program, output)

    def _await_output(self, program: Program, output: Path) -> None:
        try:
            until(lambda: program.is_printed(output.read_text()), self._seconds)
        except AssertionError:
            self._fail(self._page.programs.index(program) + 1, output.read_text())

    def _command(self, program: Program, number: int) -> list[str]:
        file = self._folder / f"program-{number}{program.suffix}"
        file.write_text(self.localized(program.code))
        interpreters = {
            ".py": [str(self._packages.bin / "python"), "-u"],
            ".mjs": ["node"],
            ".sh": ["bash", "-euo", "pipefail"],
        }
        return [*interpreters[program.suffix], file.name]

    def _environment(self) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("LANG", "SSL_CERT_FILE", "SSL_CERT_DIR") if name in os.environ}
        path = os.pathsep.join([str(self._packages.bin), str(Path(sys.executable).parent), os.environ["PATH"]])
        return {
            **kept,
            "PATH": path,
            "HOME": str(self._folder),
            "PENSTOCK_KEY": self._serving.key,
            "PYTHONPATH": "",
            "PYTEST_ADDOPTS": " ".join(WITHOUT_OTHER_PLUGINS),
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",  # it would download its list of prices
        }

    def _fail(self, number: int, output: str) -> None:
        raise ProgramFailed(f"{self._page.path.name}, program {number}: {output}")
