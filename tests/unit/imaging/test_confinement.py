"""What a child process cannot do, tried from inside one: the code of a decoder that a hostile file has taken over."""

import ctypes
import errno
import os
import platform
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from penstock.imaging import confinement
from penstock.imaging.child import ChildTask
from penstock.imaging.workers import WorkerPool
from penstock.upstream.local import child_tasks
from penstock.values import OrgId
from penstock_atelier.table import PROVIDER
from tests.fake_providers.scripted import png

ORG = OrgId("org_1")

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="confinement uses features of Linux")

PROBES = '''
"""Actions of a taken-over decoder; each returns the number of the error that stopped it, or 0."""

import ctypes, os, socket, subprocess, threading


def attempt(action, value):
    try:
        ACTIONS[action](value)
    except OSError as error:
        return {"errno": error.errno}
    return {"errno": 0}


def call(number, *arguments):
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syscall(number, *arguments) < 0:
        raise OSError(ctypes.get_errno(), "refused")


def start_thread(_):
    thread = threading.Thread(target=lambda: None)
    thread.start()
    thread.join()


ACTIONS = {
    "open a socket": lambda _: socket.socket(),
    "open a UNIX socket": lambda _: socket.socket(socket.AF_UNIX),
    "read": lambda path: open(path, "rb").read(),
    "list": os.listdir,
    "write": lambda path: open(path, "wb"),
    "append": lambda path: open(path, "ab"),
    "delete": os.unlink,
    "make a folder": os.mkdir,
    "rename": lambda path: os.rename(path, path + "2"),
    "link": lambda path: os.symlink(path, path + "3"),
    "run a program": lambda _: os.execv("/bin/true", ["true"]),
    "start a program": lambda _: subprocess.run(["/bin/true"]),
    "fork": lambda _: os.fork() or os._exit(0),
    "signal": lambda pid: os.kill(pid, 0),
    "signal a thread": lambda pid: call(234 if os.uname().machine == "x86_64" else 131, pid, pid, 0),
    "change the limits of": lambda pid: __import__("resource").prlimit(pid, 7, (9, 9)),
    "trace": lambda pid: call(101 if os.uname().machine == "x86_64" else 117, 16, pid, 0, 0),
    "leave namespaces": lambda _: call(272 if os.uname().machine == "x86_64" else 97, 0x10000000),
    "make shared memory": lambda _: call(29 if os.uname().machine == "x86_64" else 194, 0, 4096, 0o1600),
    "make a memory file": lambda _: os.memfd_create("x"),
    "set the clock": lambda _: call(227 if os.uname().machine == "x86_64" else 112, 0, None),
    "set the time": lambda _: call(164 if os.uname().machine == "x86_64" else 170, None, None),
    "set the host name": lambda _: call(170 if os.uname().machine == "x86_64" else 161, None, 1),
    "swap": lambda _: call(167 if os.uname().machine == "x86_64" else 224, None, 0),
    "reboot": lambda _: call(169 if os.uname().machine == "x86_64" else 142, 0, 0, 0, None),
    "read the kernel's log": lambda _: call(103 if os.uname().machine == "x86_64" else 116, 3, None, 0),
    "run before others": lambda _: os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1)),
    "leave groups": lambda _: os.setgroups([]),
    "use io_uring": lambda _: call(425, 1, ctypes.create_string_buffer(256)),
    "start a thread": start_thread,
    "read code": lambda _: open(os.__file__, "rb").read(),
}
'''


# Run at the start of a child: as on a kernel that lacks a mechanism.
WITHOUT = """
from penstock.imaging import confinement
for name, function in {functions!r}.items():
    setattr(confinement, function, lambda *_: False)
"""
SWITCHES = {confinement.LANDLOCK: "_restrict_files", confinement.SECCOMP: "_filter_calls"}


def add_probes(folder: Path, lacking: Sequence[str]) -> dict[str, ChildTask]:
    """Put the probes on the path of children, whose kernel seems to lack these protections."""
    folder.mkdir()
    (folder / "penstock_probes.py").write_text(PROBES)
    if lacking:
        functions = {name: SWITCHES[name] for name in lacking}
        (folder / "sitecustomize.py").write_text(WITHOUT.format(functions=functions))
    return {"probe": ChildTask("penstock_probes:attempt")}


@pytest.fixture
def victim() -> Iterator[subprocess.Popen[bytes]]:
    """Another process of the same user, outside the confinement."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        yield process
        process.kill()


BY_LANDLOCK = {confinement.LANDLOCK}
BY_SECCOMP = {confinement.SECCOMP}
BY_CAPABILITIES = {confinement.NO_CAPABILITIES}
BY_EITHER = BY_LANDLOCK | BY_SECCOMP


def attempts(folder: Path, parent: int, other: int) -> list[tuple[str, Any, set[str]]]:
    """What a taken-over decoder tries with what, and the protections of which each is enough to refuse it."""
    secret = str(folder / "secret.key")
    new = str(folder / "new")
    hidden = [secret, f"/proc/{parent}/environ", f"/proc/{parent}/mem", "/etc/passwd", "/proc/self/environ"]
    return [
        *(("read", path, BY_LANDLOCK) for path in hidden),
        *(("list", path, BY_LANDLOCK) for path in (str(folder), "/", f"/proc/{parent}/fd")),
        *(("write", path, BY_EITHER) for path in (secret, new)),
        ("append", secret, BY_EITHER),
        ("delete", secret, BY_EITHER),
        ("make a folder", new, BY_EITHER),
        ("rename", secret, BY_EITHER),
        ("link", secret, BY_EITHER),
        ("run a program", None, BY_EITHER),
        ("start a program", None, BY_SECCOMP),
        ("fork", None, BY_SECCOMP),
        ("open a socket", None, BY_SECCOMP),
        ("open a UNIX socket", None, BY_SECCOMP),
        ("signal", other, BY_SECCOMP),
        ("signal a thread", other, BY_SECCOMP),
        ("change the limits of", other, BY_SECCOMP),
        ("trace", other, BY_SECCOMP),
        ("leave namespaces", None, BY_SECCOMP),
        ("use io_uring", None, BY_SECCOMP),
        ("make shared memory", None, BY_SECCOMP),
        ("make a memory file", None, BY_SECCOMP),
        ("write", "/dev/shm/penstock-probe", BY_EITHER),  # noqa: S108
        ("set the clock", None, BY_SECCOMP),
        ("set the time", None, BY_SECCOMP),
        ("set the host name", None, BY_SECCOMP),
        ("swap", None, BY_SECCOMP),
        ("reboot", None, BY_SECCOMP),
        ("read the kernel's log", None, BY_SECCOMP),
        ("run before others", None, BY_SECCOMP),
        ("leave groups", None, BY_CAPABILITIES),
    ]


@linux_only
@pytest.mark.parametrize("lacking", [(), (confinement.LANDLOCK,), (confinement.SECCOMP,)], ids=str)
async def test_a_child_can_do_nothing_that_an_active_protection_refuses(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    victim: subprocess.Popen[bytes],
    lacking: Sequence[str],
) -> None:
    """On a kernel without a mechanism, the others still refuse their part, and the report names what is active.

    With all of them, no network, no program, no process and no file is within reach.
    """
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "packages"))
    tasks = add_probes(tmp_path / "packages", lacking)
    (tmp_path / "secret.key").write_text("the master secret")
    reported: list[Sequence[str]] = []
    async with WorkerPool(tasks=tasks, report_protections=reported.append) as pool:

        async def stopped_by(action: str, value: Any) -> int:
            return int((await pool.run("probe", for_org=ORG, action=action, value=value))["errno"])

        for action in ("start a thread", "read code"):
            assert await stopped_by(action, None) == 0, "what decoders need still works"
        active = set(reported[0])
        assert active == platform_protections() - set(lacking)
        refused = [
            (action, value)
            for action, value, protections in attempts(tmp_path, os.getpid(), victim.pid)
            if protections & active
        ]
        stopped = {attempt: await stopped_by(*attempt) for attempt in refused}
    assert {attempt: code for attempt, code in stopped.items() if code not in (errno.EPERM, errno.EACCES)} == {}
    assert (tmp_path / "secret.key").read_text() == "the master secret"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["packages", "secret.key"]


def platform_protections() -> set[str]:
    """What this kernel and this sandbox permit, found out without the code under test."""
    libc = ctypes.CDLL(None)
    found = {confinement.NO_NEW_PRIVILEGES, confinement.NO_CAPABILITIES}
    if libc.syscall(444, None, ctypes.c_size_t(0), 1) >= 1:
        found.add(confinement.LANDLOCK)
    if platform.machine() in ("x86_64", "aarch64") and "Seccomp:" in Path("/proc/self/status").read_text():
        found.add(confinement.SECCOMP)
    leaving = "import ctypes, sys; leave = ctypes.CDLL(None).unshare; sys.exit(leave(1 << 30) and leave(5 << 28) and 1)"
    if subprocess.run([sys.executable, "-c", leaving], check=False).returncode == 0:
        found.add(confinement.NETWORK_NAMESPACE)
    return found


def test_on_another_system_no_protection_is_claimed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    assert (confinement.leave_network(), confinement.confine(), confinement.refuse_calls()) == ((), (), ())


@linux_only
async def test_a_child_is_confined_before_its_first_task_and_says_how() -> None:
    reported: list[Sequence[str]] = []
    async with WorkerPool(report_protections=reported.append) as pool:
        await pool.run("image.normalise_input", for_org=ORG, data=png(8, 8))
        await pool.run("image.normalise_input", for_org=ORG, data=png(8, 8))
        status = Path(f"/proc/{pool.pids[0]}/status").read_text()
        limits = Path(f"/proc/{pool.pids[0]}/limits").read_text()
        networks = [Path(f"/proc/{pid}/ns/net").readlink() for pid in ("self", pool.pids[0])]
    (active,) = reported
    assert (confinement.NETWORK_NAMESPACE in active) == (networks[0] != networks[1])
    assert (confinement.SECCOMP in active) == ("Seccomp:\t2" in status)
    assert (confinement.NO_NEW_PRIVILEGES in active) == ("NoNewPrivs:\t1" in status)
    held = {line[:6]: int(line[8:], 16) for line in status.splitlines() if line.startswith("Cap")}
    if os.geteuid() != 0:  # then what it could be started with cannot be given up, and nothing can be started
        del held["CapBnd"]
    assert set(held.values()) == {0}
    assert (confinement.LANDLOCK in active) == (ctypes.CDLL(None).syscall(444, None, ctypes.c_size_t(0), 1) >= 1)
    found = {line[:25].strip(): line[25:].split()[:2] for line in limits.splitlines()}
    assert found["Max file size"] == found["Max core file size"] == ["0", "0"]
    assert found["Max open files"] == ["64", "64"]


@linux_only
async def test_every_task_works_in_a_confined_child() -> None:
    """Each in a child of its own, so that none profits from what another loaded."""
    video = {"prompt": "sea", "seconds": 1, "width": 64, "height": 64, "seed": 0}
    drawing = {"prompt": "sea", "seed": 0, "width": 64, "height": 64}
    chat = b'{"messages":[{"role":"user","content":"hello"}]}'
    arguments: dict[str, dict[str, Any]] = {
        "atelier:sketch": drawing,
        "atelier:retouch": {**drawing, "images": [png(64, 64)], "mask": None},
        "atelier:enlarge": {"data": png(16, 16), "factor": 2},
        "atelier:clip": {**video, "image": png(64, 64)},
        "atelier:echo": {"body": chat, "stream": True},
        **{
            f"image.convert {name}": {"data": png(16, 16), "output_format": name, "output_compression": 80}
            for name in ("png", "jpeg", "gif", "webp", "avif")
        },
    }
    for name, given in arguments.items():
        async with WorkerPool(tasks=child_tasks([PROVIDER])) as pool:
            assert await pool.run(name.split()[0], for_org=ORG, **given), name


def test_the_filter_has_a_table_for_this_machine() -> None:
    """On other machines the missing protection is reported; on these it must be there."""
    if platform.machine() in ("x86_64", "aarch64"):
        assert platform.machine() in confinement._ARCHITECTURES
    for column, architecture in confinement._ARCHITECTURES.values():
        program = list(confinement._program(column, architecture, 1))
        for position, (code, if_true, if_false, _) in enumerate(program):
            assert code == confinement._RETURN or position + 1 + max(if_true, if_false) < len(program)
        refused = [numbers[column] for numbers in confinement._REFUSED.values() if numbers[column] is not None]
        assert len(refused) == len(set(refused)), "each call has a number of its own"
