"""Run work on files in child processes with limited memory and time."""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Any, Self

import msgspec

from penstock.fair_shares import SharedPlaces
from penstock.imaging.child import ChildTask
from penstock.imaging.children import CHUNK_BYTES, Child, Children, Sign
from penstock.imaging.messages import (
    NO_MORE_FILES,
    SIZE_BYTES,
    Confined,
    Done,
    Failed,
    FailureKind,
    Piece,
    Progress,
    ToSign,
    Work,
)
from penstock.long_bodies.buffers import Buffer
from penstock.values import OrgId

# Decoders read bytes that callers and providers chose. They run in processes that know no secrets, have limits of
# memory and time, and can be killed. A decoder that a file has taken over can return a false result, for this task and
# for later ones of the same process; so a process only gets the files of one organization.

Report = Callable[[float], None]


def _task(target: str, **limits: Any) -> ChildTask:
    """A task of this package, none of which starts a thread when it is imported."""
    return ChildTask(f"penstock.imaging.{target}", import_first=True, **limits)


# What the gateway itself and the tools of agents run in children; providers that answer inside this process add tasks
# of their own.
TASKS: Mapping[str, ChildTask] = {
    "image.convert": _task("convert:convert", cpu_seconds=30, wall_seconds=90),
    "image.normalise_input": _task("convert:normalise_input"),
    "image.limit_bytes": _task("convert:limit_bytes", cpu_seconds=30, wall_seconds=90),
    "image.convert_mask": _task("convert:convert_mask"),
    "image.shrink": _task("convert:shrink"),
    "image.thumbnail": _task("convert:thumbnail"),
    "image.grid": _task("convert:grid"),
    "image.clean_svg": _task("svg:clean"),
    "image.is_cleaned_svg": _task("svg:is_cleaned"),
    "video.measure": _task("video:measure"),
    "video.preview": _task("previews:preview", cpu_seconds=30, wall_seconds=90),
    "sound.measure": ChildTask("penstock.sound.measure:measure", cpu_seconds=120, wall_seconds=300, import_first=True),
    "sound.prepare": ChildTask(
        "penstock.sound.prepare:prepare", cpu_seconds=600, wall_seconds=1200, import_first=True, long=True
    ),
    "sound.remake": ChildTask(
        "penstock.sound.remake:remake", cpu_seconds=300, wall_seconds=600, long=True, import_first=True
    ),
    "sound.convert": ChildTask(
        "penstock.sound.convert:convert", cpu_seconds=600, streams=True, takes_pieces=True, import_first=True
    ),
}

DEFAULT_MEMORY_BYTES = 1 << 30
TASKS_PER_CHILD = 256  # then a new child takes over, because the heap of the old one fragments and grows


class WorkFailed(Exception):
    """A task failed: its child crashed, it took too long, or it refused its input."""

    def __init__(self, kind: FailureKind, message: str) -> None:
        super().__init__(message)
        self.kind: FailureKind = kind
        self.message = message


class WorkerPool:
    """Child processes that start when first needed, stay for the next task, and are replaced when they die."""

    def __init__(
        self,
        workers: int | None = None,
        *,
        tasks: Mapping[str, ChildTask] | None = None,
        memory_bytes: int = DEFAULT_MEMORY_BYTES,
        has_spare: bool = False,
        report_protections: Callable[[Sequence[str]], None] = lambda _: None,
    ) -> None:
        """`report_protections` is called for each child, with the names of the protections that are active in it. With
        a spare, one child more than are in use waits for its first task as soon as there has been one: a stream's first
        byte does not wait for a child to start then.
        """
        # At least two, because long tasks leave one child free.
        self.workers = max(2, workers if workers is not None else available_cores())
        self._tasks = {**TASKS, **(tasks or {})}
        self._places = SharedPlaces(self.workers)
        self._fork_server = Children(memory_bytes, self._tasks)
        self._idle: list[Child] = []  # the one that was used last is at the end
        self._children: set[Child] = set()
        self._exits: set[asyncio.Task[int]] = set()
        self._has_spare = has_spare
        self._spare: asyncio.Task[Child] | None = None  # it has not seen any file, so it may take anybody's
        self._closed = False
        self._report_protections = report_protections

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @property
    def pids(self) -> list[int]:
        return sorted(child.pid for child in self._children)

    async def spare_pid(self) -> int | None:
        """The process that waits for its first task, if there is one."""
        return (await self._spare).pid if self._spare is not None else None

    async def run(
        self,
        name: str,
        /,
        *,
        for_org: OrgId,
        progress: Report | None = None,
        sign: Sign | None = None,
        load: Callable[[], Awaitable[Buffer]] | None = None,
        **arguments: Any,
    ) -> dict[str, Any]:
        """Run a registered task, in turn with the tasks of other organizations. Cancelling the caller kills the child.

        With `load` the argument `data` is read when it is this task's turn, so that tasks which wait hold no large
        files. `sign` answers a task that asks for a signature. Raises KeyError for a name that is not registered, and
        what `load` raises.
        """
        task = self._tasks[name]
        async with self._places.place(for_org, long=task.long):
            if load is not None:
                arguments["data"] = await load()
            work = Work(name, arguments, math.ceil(task.cpu_seconds))
            child = await self._take_child(for_org)
            try:
                reply = await self._execute(child, task, work, progress, sign)
            except BaseException:
                self._discard_child(child)
                raise
            self._return_child(child, reply)
        if isinstance(reply, Failed):
            raise WorkFailed(reply.kind, reply.message)
        result: dict[str, Any] = reply.result
        return result

    @contextlib.asynccontextmanager
    async def stream(
        self, name: str, /, *, for_org: OrgId, wait_seconds: float | None = None, **arguments: Any
    ) -> AsyncIterator[ChildStream]:
        """Run a task that takes files in pieces, and makes something of them, while it runs.

        The child is killed unless the task has ended inside the context. Raises WorkFailed of the kind `busy` if no
        place is free for so long.
        """
        task = self._tasks[name]
        async with contextlib.AsyncExitStack() as stack:
            try:
                async with asyncio.timeout(wait_seconds):
                    await stack.enter_async_context(self._places.place(for_org, long=task.long))
            except TimeoutError:
                raise WorkFailed("busy", "All child processes are busy.") from None
            child = await self._take_child(for_org)
            stream = ChildStream(child, self._report_protections)
            try:
                await child.send(Work(name, arguments, math.ceil(task.cpu_seconds)))
                yield stream
            except OSError:
                raise _exit_failure(await child.wait()) from None
            finally:
                if stream.done is None:
                    self._discard_child(child)
                else:
                    self._return_child(child, stream.done)

    async def close(self) -> None:
        """Kill every child; tasks under way fail."""
        self._closed = True
        if self._spare is not None:
            with contextlib.suppress(OSError):
                self._children.add(await self._spare)
        for child in list(self._children):
            self._discard_child(child)
        while self._exits:
            await asyncio.gather(*self._exits)
        await self._fork_server.close()

    async def _execute(
        self, child: Child, task: ChildTask, work: Work, progress: Report | None, sign: Sign | None
    ) -> Done | Failed:
        try:
            async with asyncio.timeout(task.wall_seconds):
                files = await child.send(work)
                while True:
                    reply = await child.receive(files)
                    if isinstance(reply, Confined):
                        self._report_protections(reply.protections)
                    elif isinstance(reply, ToSign):
                        await child.answer(reply, sign)
                        sign = None  # a task may ask once: a child that was taken over gets no second false statement
                    elif isinstance(reply, Done | Failed):
                        return reply
                    elif isinstance(reply, Progress) and progress is not None:
                        progress(reply.fraction)
        except TimeoutError:
            raise WorkFailed("timeout", f"The work took longer than {task.wall_seconds:g} seconds.") from None
        except (EOFError, OSError, msgspec.MsgspecError):
            child.kill()
            raise _exit_failure(await child.wait()) from None

    async def _take_child(self, for_org: OrgId) -> Child:
        """Return an idle child that has only seen files of this organization, or a new one."""
        if self._closed:
            raise RuntimeError("The pool is closed.")
        for child in [child for child in self._idle if not child.is_alive()]:
            self._idle.remove(child)
            self._discard_child(child)
        for child in reversed(self._idle):
            if child.org_id == for_org:
                self._idle.remove(child)
                return child
        if self._idle and len(self._children) >= self.workers:
            self._discard_child(self._idle.pop(0))
        try:
            child = await self._new_child(for_org)
        except OSError as error:  # no processes, descriptors or memory left
            raise WorkFailed("crashed", f"No child process could be started: {error.strerror}.") from error
        self._children.add(child)
        return child

    async def _new_child(self, for_org: OrgId) -> Child:
        """The spare child, or one that is started now."""
        spare, self._spare = self._spare, None
        if self._has_spare:
            self._spare = asyncio.ensure_future(self._fork_server.start(for_org))
            self._spare.add_done_callback(_ignore_failure)
        if spare is not None:
            with contextlib.suppress(OSError):
                child = await spare
                if child.is_alive():
                    child.org_id = for_org
                    return child
        return await self._fork_server.start(for_org)

    def _return_child(self, child: Child, reply: Done | Failed) -> None:
        child.tasks_done += 1
        # After any failure but a refusal the child exits by itself.
        broken = isinstance(reply, Failed) and reply.kind != "refused"
        if broken or self._closed or child.tasks_done >= TASKS_PER_CHILD:
            self._discard_child(child)
        else:
            self._idle.append(child)

    def _discard_child(self, child: Child) -> None:
        self._children.discard(child)
        child.kill()
        exiting = asyncio.ensure_future(child.wait())
        self._exits.add(exiting)
        exiting.add_done_callback(self._exits.discard)


def _ignore_failure(spare: asyncio.Task[Child]) -> None:
    """A spare child that could not be started is not missed: whoever needs one starts it."""
    if not spare.cancelled():
        spare.exception()


class ChildStream:
    """A task that runs in a child: its files are written, and what it makes of them is read.

    Writing waits while the child is behind, so somebody must read at the same time.
    """

    def __init__(self, child: Child, report_protections: Callable[[Sequence[str]], None]) -> None:
        self._child = child
        self._report_protections = report_protections
        self.done: Done | None = None  # what the task returned

    def kill(self) -> None:
        """End the task: reading fails."""
        self._child.kill()

    async def write(self, data: Buffer) -> None:
        """Send the next piece of a file. Raises OSError if the child is gone, as do the other functions that write."""
        for start in range(0, len(data), CHUNK_BYTES):
            piece = bytes(data[start : start + CHUNK_BYTES])
            await self._child.write(len(piece).to_bytes(SIZE_BYTES, "big") + piece)

    async def end_file(self) -> None:
        await self._child.write(bytes(SIZE_BYTES))

    async def end(self) -> None:
        """There are no more files."""
        await self._child.write(NO_MORE_FILES.to_bytes(SIZE_BYTES, "big"))

    async def read(self) -> bytes:
        """What the task has made next; nothing when it has ended. Raises WorkFailed."""
        while self.done is None:
            try:
                reply = await self._child.receive(())
            except (EOFError, OSError, msgspec.MsgspecError):
                self._child.kill()
                raise _exit_failure(await self._child.wait()) from None
            match reply:
                case Piece():
                    return reply.data
                case Confined():
                    self._report_protections(reply.protections)
                case Failed():
                    raise WorkFailed(reply.kind, reply.message)
                case Done():
                    self.done = reply
        return b""


def available_cores() -> int:
    """How many processor cores this process may use."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


def _exit_failure(status: int) -> WorkFailed:
    if status == -signal.SIGXCPU:
        return WorkFailed("timeout", "The work used up its processor time.")
    if status < 0:
        return WorkFailed("crashed", f"The work was ended by {signal.Signals(-status).name}.")
    return WorkFailed("crashed", f"The work ended early with status {status}.")
