"""Interrupt calls that wait: when their caller disconnects, or when this process stops."""

import asyncio


class CallerGone(Exception):
    """The caller has closed its connection, so nobody waits for the response."""


class ProcessStopped(Exception):
    """This process stops, and the time that running calls had to finish is over."""


class CallerLine:
    """The connection of a caller; at most one call at a time runs on it."""

    __slots__ = ("is_closed", "task")

    def __init__(self) -> None:
        self.is_closed = False
        self.task: asyncio.Task[object] | None = None  # of the call, while it may be interrupted

    def close(self) -> None:
        """Note that the caller has disconnected, and interrupt its call if it may be interrupted now."""
        self.is_closed = True
        if self.task is not None:
            self.task.cancel()


class Interrupts:
    """The calls of a process that may be interrupted now."""

    def __init__(self) -> None:
        self.is_stopped = False
        self._tasks: set[asyncio.Task[object]] = set()

    def stop(self) -> None:
        """Interrupt every call that may be interrupted, now or later."""
        self.is_stopped = True
        for task in tuple(self._tasks):
            task.cancel()

    def allowed(self, line: CallerLine) -> "_InterruptedBlock":
        """Let the block be interrupted; then this raises CallerGone or ProcessStopped, also before the block begins.

        What happens outside of such a block, such as a transaction, is never interrupted.
        """
        return _InterruptedBlock(self, line)

    def begin(self, task: asyncio.Task[object], line: CallerLine) -> None:
        """Let a task be interrupted from now on, unless that has happened already: see `allowed`."""
        self._check(line)
        line.task = task
        self._tasks.add(task)

    def end(self, task: asyncio.Task[object], line: CallerLine) -> None:
        line.task = None
        self._tasks.discard(task)

    def explain(self, task: asyncio.Task[object], line: CallerLine) -> None:
        """Raise why a task was cancelled; returns if that was for another reason than an interruption."""
        if line.is_closed or self.is_stopped:
            task.uncancel()
        self._check(line)

    def _check(self, line: CallerLine) -> None:
        if line.is_closed:
            raise CallerGone
        if self.is_stopped:
            raise ProcessStopped


class _InterruptedBlock:
    """A block that may be interrupted."""

    __slots__ = ("_interrupts", "_line", "_task")

    def __init__(self, interrupts: Interrupts, line: CallerLine) -> None:
        self._interrupts = interrupts
        self._line = line

    def __enter__(self) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._task = task
        self._interrupts.begin(task, self._line)

    def __exit__(self, kind: object, error: BaseException | None, trail: object) -> None:
        self._interrupts.end(self._task, self._line)
        if isinstance(error, asyncio.CancelledError):
            self._interrupts.explain(self._task, self._line)
