"""Run tasks inside a child process, which limits and confines itself before it reads the first file.

Children are forked by `fork_server`, in which this module has been imported.
"""

from __future__ import annotations

import ctypes
import importlib
import math
import os
import resource
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import IO, Any

import msgspec

from penstock.imaging import confinement, messages
from penstock.imaging.messages import Confined, Done, Failed, Piece, Progress, Reply, ToSign, Work
from penstock.imaging.pieces import Pieces
from penstock.long_bodies.buffers import Buffer

_PR_SET_PDEATHSIG = 1
PROGRESS_INTERVAL_SECONDS = 0.1


class ChildTask(msgspec.Struct, frozen=True):
    """A function that may run in a child process, and its limits."""

    target: str  # `module:function`
    cpu_seconds: float = 10
    wall_seconds: float = 40
    reports: bool = False  # takes a `progress` callback
    signs: bool = False  # takes a `sign` callback, which asks the gateway for one signature
    long: bool = False  # leaves one child free, so that short tasks do not wait for long ones
    import_first: bool = False  # its module starts no thread: import it before the child is confined
    streams: bool = False  # takes `emit`, for what it makes while it runs
    takes_pieces: bool = False  # one that streams takes `pieces`, too: the files that arrive while it runs


def encode_tasks(tasks: Mapping[str, ChildTask]) -> str:
    """The tasks as an argument on a child's command line."""
    return msgspec.json.encode(tasks).decode()


def run_tasks(memory_bytes: int, tasks: Mapping[str, ChildTask], protections: Sequence[str] = ()) -> None:
    """Read tasks from standard input, run them, and write the results to standard output.

    A message can only name one of `tasks`. `protections` are those of `confinement` that are active already.
    """
    incoming = sys.stdin.buffer
    # What libraries print goes to standard error, not between the messages.
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    confinement.limit_resources(memory_bytes)
    if confinement.NO_NEW_PRIVILEGES not in protections:  # other threads ran in the process that forked this one
        protections = (*protections, *confinement.confine())
    protections = (*protections, *confinement.refuse_calls())
    is_first = True
    while parts := _read(incoming):
        work = messages.decode_work(parts)
        if is_first:
            _write(replies, Confined(protections))
            is_first = False
        _limit_processor_time(work.cpu_seconds)
        is_stream = work.task in tasks and tasks[work.task].streams
        extra: dict[str, Any] = {}
        if is_stream:
            extra["emit"] = lambda data: _write(replies, Piece(data))
            if tasks[work.task].takes_pieces:
                extra["pieces"] = Pieces(incoming)
        reply = _run_task(tasks, work, _Reporter(replies), _Asker(incoming, replies), extra)
        _write(replies, reply, parts[1:])
        if isinstance(reply, Failed) and (reply.kind != "refused" or is_stream):
            return
        parts.clear()  # the files of this task need not be in memory while the next one is read
        del work, reply


def _read(incoming: IO[bytes]) -> list[bytes]:
    """The parts of the next message; none at the end of the input."""
    count = incoming.read(1)
    if not count:
        return []
    return [incoming.read(size) for size in messages.read_sizes(incoming.read(count[0] * messages.SIZE_BYTES))]


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


class _Asker:
    """Asks the gateway for a signature."""

    def __init__(self, incoming: IO[bytes], replies: IO[bytes]) -> None:
        self._incoming = incoming
        self._replies = replies

    def __call__(self, data: bytes) -> bytes:
        """Return the signature of the data. Raises ValueError if the gateway cannot sign."""
        _write(self._replies, ToSign(data))
        signature = messages.decode_signature(_read(self._incoming))
        if signature is None:
            raise ValueError("the gateway cannot sign")
        return signature


def _run_task(
    tasks: Mapping[str, ChildTask],
    work: Work,
    report: Callable[[float], None],
    sign: Callable[[bytes], bytes],
    streams: Mapping[str, Any] = {},
) -> Done | Failed:
    try:
        task = tasks[work.task]
        module, _, function = task.target.partition(":")
        extra: dict[str, Any] = {**streams, "progress": report} if task.reports else {**streams}
        if task.signs:
            extra["sign"] = sign
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


def die_with_parent(parent: int) -> None:
    """Have the kernel kill this process when its parent dies, also while it is busy."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it has died already
        os._exit(1)


def _limit_processor_time(seconds: float) -> None:
    used = resource.getrusage(resource.RUSAGE_SELF)
    allowed = math.ceil(used.ru_utime + used.ru_stime + seconds)
    _, most = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (allowed if most == resource.RLIM_INFINITY else min(allowed, most), most))
