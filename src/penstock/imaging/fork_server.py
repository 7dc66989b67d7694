"""Fork child processes that have imported what they need and have read no file yet.

Starting Python takes a tenth of a second of processor time, forking it some milliseconds. So each organization can have
children of its own. This process reads no files of anybody; it only forks, kills and reports ends.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import select
import signal
import socket
import struct
import sys
import traceback
from collections.abc import Mapping

import msgspec

from penstock.imaging import child, confinement
from penstock.imaging.child import ChildTask

NICENESS = 10
# What the gateway sends: a fork, with the socket of the child as an attached descriptor, or the child to kill.
FORK = 0
ORDER = struct.Struct("=i")
# What it is told: the id of a child, and that it was started or with which status it ended.
REPORT = struct.Struct("=ii")
STARTED = 2**31 - 1
_CODECS = [f"PIL.{name}ImagePlugin" for name in ("Png", "Jpeg", "WebP", "Avif", "Gif", "Bmp", "Ppm")]


def main() -> None:
    """Serve the gateway at the other end of a socket, until that is closed.

    The arguments are the memory of a child, the tasks that children may run, and the descriptor of the socket.
    """
    memory_bytes = int(sys.argv[1])
    tasks = msgspec.json.decode(sys.argv[2], type=dict[str, ChildTask])
    with socket.socket(fileno=int(sys.argv[3])) as inherited:
        control = inherited.dup()  # has a low number, which its children close
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    child.die_with_parent(os.getppid())
    outside_network = confinement.leave_network()
    _import_modules(tasks)
    gc.freeze()  # what is in memory now is never looked at again, and so stays shared
    _Server(control, memory_bytes, tasks, (*outside_network, *confinement.confine())).serve()


def _import_modules(tasks: Mapping[str, ChildTask]) -> None:
    """Import the modules of tasks that may be, and the codecs that the first image would load.

    Other modules are imported by the children that need them: they might start threads.
    """
    first = {task.target.partition(":")[0] for task in tasks.values() if task.import_first}
    for module in (*sorted(first), *_CODECS):
        with contextlib.suppress(ImportError):  # running the task reports it
            importlib.import_module(module)


class _Server:
    def __init__(
        self, control: socket.socket, memory_bytes: int, tasks: dict[str, ChildTask], protections: tuple[str, ...]
    ) -> None:
        self._control = control
        self._memory_bytes = memory_bytes
        self._tasks = tasks
        self._protections = protections
        self._living: set[int] = set()

    def serve(self) -> None:
        ends, write = os.pipe()
        os.set_blocking(ends, False)
        os.set_blocking(write, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(write, warn_on_full_buffer=False)
        while True:
            readable, _, _ = select.select([self._control.fileno(), ends], [], [])
            if ends in readable:
                with contextlib.suppress(BlockingIOError):
                    os.read(ends, 4096)
                self._report_ends()
            if self._control.fileno() in readable:
                order, descriptors, _, _ = socket.recv_fds(self._control, ORDER.size, 1)
                if len(order) < ORDER.size:
                    return  # the gateway has ended, and so do the children
                (pid,) = ORDER.unpack(order)
                if pid == FORK:
                    self._fork(descriptors[0])
                elif pid in self._living:  # otherwise another process may have this id
                    os.kill(pid, signal.SIGKILL)

    def _fork(self, descriptor: int) -> None:
        parent = os.getpid()
        try:
            pid = os.fork()
        except OSError as error:
            self._control.send(REPORT.pack(FORK, error.errno or 0))
            os.close(descriptor)
            return
        if pid == 0:
            self._become_child(descriptor, parent)
        os.close(descriptor)
        self._living.add(pid)
        self._control.send(REPORT.pack(pid, STARTED))

    def _become_child(self, descriptor: int, parent: int) -> None:
        """Run tasks; never returns."""
        status = 1
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            child.die_with_parent(parent)
            os.nice(NICENESS)
            os.dup2(descriptor, 0)
            os.dup2(descriptor, 1)
            self._control.close()
            os.closerange(3, confinement.MAX_OPEN_FILES)
            child.run_tasks(self._memory_bytes, self._tasks, self._protections)
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)

    def _report_ends(self) -> None:
        while self._living:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            self._living.discard(pid)
            self._control.send(REPORT.pack(pid, os.waitstatus_to_exitcode(status)))


if __name__ == "__main__":
    main()
