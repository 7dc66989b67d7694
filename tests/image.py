"""Build the image of the Dockerfile and run it, without a container engine.

`make test-image` runs this on Linux, as root, because it mounts. Every instruction of the Dockerfile is carried out in
a copy-on-write view of this machine's file system, with this machine's Python in /usr/local in place of the base image.
Then the gateway is started as the image's user, without capabilities, on a root that is read-only except for /data and
/tmp, as `docker run --read-only --tmpfs /tmp` does it. What is not tried: the base image itself, and the engine's own
network, namespaces and seccomp profile.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parent.parent
FOLDER = "PENSTOCK_IMAGE_FOLDER"  # set in the process that has a mount namespace of its own
SECONDS = 120


@dataclass(slots=True)
class Stage:
    """One stage of the Dockerfile: its file system, and what its instructions have set."""

    root: Path
    folder: str = "/"
    user: str = "0"
    environment: dict[str, str] = field(default_factory=dict)
    health: list[str] = field(default_factory=list)
    entrypoint: list[str] = field(default_factory=list)
    command: list[str] = field(default_factory=list)

    def start(self, command: list[str]) -> "subprocess.Popen[bytes]":
        """Start a command in the stage as its user, without capabilities if that is not root."""
        rights = ["--no-new-privs", "--bounding-set=-all"] if self.user != "0" else []
        identity = ["--reuid", self.user, "--regid", self.user, "--clear-groups", *rights]
        inside = ["chroot", str(self.root), "setpriv", *identity, "env", "--chdir", self.folder, *command]
        return subprocess.Popen(inside, env=self.environment)

    def run(self, command: list[str]) -> int:
        return self.start(command).wait(SECONDS * 5)


# ------------------------------------------------------------------------------------------------------------- building


def mounted_root(folder: Path) -> Path:
    """A view of this machine's file system in which everything may be changed, and nothing outside changes."""
    root, upper, work = (folder / name for name in ("root", "upper", "work"))
    for path in (root, upper, work):
        path.mkdir(parents=True)
    options = f"lowerdir=/,upperdir={upper},workdir={work}"
    mount("-t", "overlay", "overlay", "-o", options, str(root))
    for name in ("proc", "dev"):
        mount("--rbind", f"/{name}", str(root / name))
    mount("-t", "tmpfs", "tmpfs", str(root / "tmp"))
    mount("--bind", sys.base_prefix, str(root / "usr" / "local"))
    mount("-o", "remount,bind,ro", str(root / "usr" / "local"))
    return root


def mount(*arguments: str) -> None:
    subprocess.run(["mount", *arguments], check=True)


def instructions(dockerfile: str) -> Iterator[tuple[str, str]]:
    """Each instruction and the rest of its lines, which a backslash joins."""
    text = re.sub(r"^\s*#.*\n", "", dockerfile, flags=re.MULTILINE).replace("\\\n", " ")
    for line in filter(None, map(str.strip, text.splitlines())):
        word, _, rest = line.partition(" ")
        yield word, rest.strip()


def build(folder: Path) -> Stage:
    """Carry out the Dockerfile; return its last stage."""
    stages: dict[str, Stage] = {}
    stage: Stage | None = None
    for word, rest in instructions((ROOT / "Dockerfile").read_text()):
        say(f"{word} {rest[:100]}")
        if word == "FROM":
            stage = stages[rest.partition(" AS ")[2]] = new_stage(folder / f"stage-{len(stages)}")
            continue
        assert stage is not None, "FROM comes first"
        carry_out(stage, stages, word, rest)
    assert stage is not None
    return stage


def new_stage(folder: Path) -> Stage:
    kept = {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "SSL_", "HTTP", "NO_PROXY"))}
    libraries = {"LD_LIBRARY_PATH": "/usr/local/lib"}  # this machine's Python may look for its own somewhere else
    path = {"PATH": "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
    return Stage(mounted_root(folder), environment={**kept, **libraries, **path})


def carry_out(stage: Stage, stages: dict[str, Stage], word: str, rest: str) -> None:
    if word == "RUN":
        assert stage.run(["sh", "-ec", rest]) == 0, rest
    elif word == "ENV":
        known = dict(stage.environment)
        for item in shlex.split(rest):
            name, _, value = item.partition("=")
            stage.environment[name] = re.sub(r"\$(\w+)", lambda found: known[found[1]], value)
    elif word == "COPY":
        copy(stage, stages, rest.split())
    elif word == "WORKDIR":
        stage.folder = rest
        (stage.root / rest.lstrip("/")).mkdir(parents=True, exist_ok=True)
    elif word == "USER":
        stage.user = rest
    elif word == "HEALTHCHECK":
        stage.health = json.loads(rest.partition("CMD ")[2])
    elif word == "ENTRYPOINT":
        stage.entrypoint = json.loads(rest)
    elif word == "CMD":
        stage.command = json.loads(rest)
    else:
        assert word in ("VOLUME", "EXPOSE", "STOPSIGNAL"), f"unknown instruction: {word}"


def copy(stage: Stage, stages: dict[str, Stage], words: list[str]) -> None:
    source_root = ROOT
    ignored = shutil.ignore_patterns("__pycache__")  # as .dockerignore does
    if words[0].startswith("--from="):
        source_root = stages[words.pop(0).removeprefix("--from=")].root
        ignored = shutil.ignore_patterns()
    *sources, target = words
    inside = stage.root / str(Path(stage.folder) / target).lstrip("/")
    for source in sources:
        path = source_root / source.lstrip("/")
        to = inside / path.name if target.endswith("/") else inside
        if path.is_dir():
            shutil.copytree(path, to, symlinks=True, dirs_exist_ok=True, ignore=ignored)
        else:
            shutil.copy(path, to)


# -------------------------------------------------------------------------------------------------------------- running


def try_image(stage: Stage) -> None:
    """Start the image on a read-only root, make an image of a fox, and stop it as an engine does."""
    data = stage.root / "data"
    owner = data.stat()  # a new volume gets the owner and the mode of the folder in the image
    options = f"uid={owner.st_uid},gid={owner.st_gid},mode={owner.st_mode & 0o777:o}"
    mount("-t", "tmpfs", "-o", options, "tmpfs", str(data))
    mount("-o", "remount,ro", str(stage.root))
    assert stage.run(["sh", "-c", "touch /opt/penstock/x 2>/dev/null"]) != 0, "the root is read-only"
    assert stage.run(["sh", "-c", "test $(id -u) -ne 0"]) == 0, "the user is not root"
    gateway = stage.start([*stage.entrypoint, *stage.command])
    try:
        deadline = time.monotonic() + SECONDS
        while stage.run(["sh", "-c", f"{shlex.join(stage.health)} 2>/dev/null"]) != 0:
            assert gateway.poll() is None, "the gateway ended"
            assert time.monotonic() < deadline, "the gateway is not healthy"
            time.sleep(0.5)
        say("healthy")
        assert stage.run(["penstock", "image", "a fox", "--size", "64x64", "-o", "/tmp/fox.png"]) == 0  # noqa: S108
        gateway.terminate()
        assert gateway.wait(SECONDS) == 0, "SIGTERM ends the gateway with status 0"
    finally:
        gateway.kill()
    say("The image was built and run as another user on a read-only root.")


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def main() -> None:
    """Build and try the image in a process with a mount namespace of its own: what it mounts is gone when it ends."""
    if FOLDER in os.environ:
        mount("--make-rprivate", "/")
        mount("-t", "tmpfs", "tmpfs", os.environ[FOLDER])
        try_image(build(Path(os.environ[FOLDER])))
        return
    folder = tempfile.mkdtemp(prefix="penstock-image-")
    command = ["unshare", "--mount", "--fork", "--kill-child", sys.executable, "-m", "tests.image"]
    status = subprocess.run(command, env={**os.environ, FOLDER: folder}, check=False).returncode
    Path(folder).rmdir()  # empty here, where nothing is mounted on it
    sys.exit(status)


if __name__ == "__main__":
    main()
