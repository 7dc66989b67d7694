"""Run tasks inside a child process, which limits and confines itself before it reads the first file.

Every child imports this module, and some decode one image and end. So it imports little: not even asyncio.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import math
import os
import resource
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import IO

import msgspec

from penstock.imaging import confinement, messages
from penstock.imaging.messages import Confined, Done, Failed, Progress, Reply, Work
from penstock.long_bodies.buffers import Buffer

NICENESS = 10
PROGRESS_INTERVAL_SECONDS = 0.1


class ChildTask(msgspec.Struct, frozen=True):
    """A function that may run in a child process, and its limits."""

    target: str  # `module:function`
    cpu_seconds: float = 10
    wall_seconds: float = 40
    reports: bool = False  # takes a `progress` callback
    long: bool = False  # leaves one child free, so that short tasks do not wait for long ones
    import_first: bool = False  # its module starts no thread: import it before the child is confined


def encode_tasks(tasks: Mapping[str, ChildTask]) -> str:
    """The tasks as an argument on a child's command line."""
    return msgspec.json.encode(tasks).decode()


def main() -> None:
    """Read tasks from standard input, run them, and write the results to standard output."""
    incoming = sys.stdin.buffer
    # What libraries print goes to standard error, not between the messages.
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    outside_network = _limit_process(int(sys.argv[1]))
    # The tasks are fixed at the start; a message can only name one of them.
    tasks = msgspec.json.decode(sys.argv[2], type=dict[str, ChildTask])
    is_confined = False
    while count := incoming.read(1):
        sizes = messages.read_sizes(incoming.read(count[0] * messages.SIZE_BYTES))
        parts = [incoming.read(size) for size in sizes]
        work = messages.decode_work(parts)
        if not is_confined:
            _import_first(tasks.get(work.task))
            _write(replies, Confined((*outside_network, *confinement.confine())))
            is_confined = True
        _limit_processor_time(work.cpu_seconds)
        reply = _run_task(tasks, work, _Reporter(replies))
        _write(replies, reply, parts[1:])
        if isinstance(reply, Failed) and reply.kind != "refused":
            return


def _import_first(task: ChildTask | None) -> None:
    """Import the module of the first task, where it may be, while Python can cache its bytecode.

    Other modules are imported when the process is confined: they might start threads, which would not be.
    """
    if task and task.import_first:
        with contextlib.suppress(ImportError):  # running the task reports it
            importlib.import_module(task.target.partition(":")[0])


class _Reporter:
    """Sends the progress of a task, at most once per interval."""

    def __init__(self, replies: IO[bytes]) -> None:
        self._replies = replies
        self._next = 0.0

    def __call__(self, fraction: float) -> None:
        now = time.monotonic()
        if now >= self._next:
            self._next = now + PROGRESS_INTERVAL_SECONDS
            _write(self._replies, Progress(min(1.0, max(0.0, fraction))))


def _run_task(tasks: Mapping[str, ChildTask], work: Work, report: Callable[[float], None]) -> Done | Failed:
    try:
        task = tasks[work.task]
        module, _, function = task.target.partition(":")
        extra = {"progress": report} if task.reports else {}
        return Done(getattr(importlib.import_module(module), function)(**work.arguments, **extra))
    except MemoryError:
        return Failed("crashed", "The work needed more memory than the limit.")
    except Exception as error:  # the boundary of the process: every failure becomes a reply
        # An error with this attribute is a refusal (see convert.BadImage); any other is a bug, ours or of a codec.
        if getattr(error, "kind", None) == "refused":
            return Failed("refused", str(error))
        return Failed("crashed", f"{type(error).__name__}: {error}")


def _write(replies: IO[bytes], reply: Reply, files_of_task: Sequence[Buffer] = ()) -> None:
    for piece in messages.encode(reply, files_of_task):
        replies.write(piece)
    replies.flush()


def _limit_process(memory_bytes: int) -> tuple[str, ...]:
    """Limit what the process uses, and cut it off from the network; returns the protections that are active."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.nice(NICENESS)
    confinement.limit_resources(memory_bytes)
    protections = confinement.leave_network()
    if sys.platform == "linux":
        # An idle child sees the end of its input when the parent dies; a busy one is killed by the kernel.
        die_with_parent = 1  # PR_SET_PDEATHSIG
        ctypes.CDLL(None).prctl(die_with_parent, signal.SIGKILL)
    return protections


def _limit_processor_time(seconds: float) -> None:
    used = resource.getrusage(resource.RUSAGE_SELF)
    allowed = math.ceil(used.ru_utime + used.ru_stime + seconds)
    _, most = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (allowed if most == resource.RLIM_INFINITY else min(allowed, most), most))


if __name__ == "__main__":
    main()
