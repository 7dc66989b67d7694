"""The process that forks children obeys its socket, kills only its own children, and ends with the gateway."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.imaging import child, fork_server, workers
from penstock.imaging.fork_server import FORK, ORDER, REPORT, STARTED

SOURCE = Path(fork_server.__file__).parents[2]


@pytest.fixture
def server() -> Iterator[tuple[socket.socket, subprocess.Popen[bytes]]]:
    ours, theirs = socket.socketpair()
    arguments = [str(1 << 30), child.encode_tasks(workers.TASKS), str(theirs.fileno())]
    with (
        ours,
        subprocess.Popen(
            [sys.executable, "-P", "-m", "penstock.imaging.fork_server", *arguments],
            pass_fds=[theirs.fileno()],
            env={"PYTHONPATH": str(SOURCE)},
        ) as process,
    ):
        theirs.close()
        ours.settimeout(60)
        yield ours, process
        process.kill()


def read(control: socket.socket) -> tuple[int, int]:
    pid, status = REPORT.unpack(control.recv(REPORT.size, socket.MSG_WAITALL))
    return pid, status


def fork(control: socket.socket) -> int:
    one, other = socket.socketpair()
    with one, other:
        socket.send_fds(control, [ORDER.pack(FORK)], [other.fileno()])
        pid, status = read(control)
    assert status == STARTED
    return pid


def test_a_child_ends_when_its_socket_is_closed(server: tuple[socket.socket, subprocess.Popen[bytes]]) -> None:
    control, _ = server
    pid = fork(control)
    assert read(control) == (pid, 0)


def test_only_its_own_children_are_killed(server: tuple[socket.socket, subprocess.Popen[bytes]]) -> None:
    control, _ = server
    one, other = socket.socketpair()
    with one, other, subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as stranger:
        socket.send_fds(control, [ORDER.pack(FORK)], [other.fileno()])
        pid, _ = read(control)
        control.send(ORDER.pack(stranger.pid))
        control.send(ORDER.pack(pid))
        assert read(control) == (pid, -signal.SIGKILL)
        assert stranger.poll() is None
        stranger.kill()


def test_it_ends_when_the_gateway_does(server: tuple[socket.socket, subprocess.Popen[bytes]]) -> None:
    control, process = server
    fork(control)
    control.close()
    assert process.wait(60) == 0
    assert os.getpid() != process.pid
