"""Interrupt calls that wait: when their caller disconnects, or when this process stops."""

import asyncio


class CallerGone(Exception):
    """The caller has closed its connection, so nobody waits for the response."""


class ProcessStopped(Exception):
    """This process stops, and the time that running calls had to finish is over."""


class CallerLine:
    """The connection of a caller; at most one call at a time runs on it."""

    __slots__ = ("is_closed", "is_proxied", "task")

    def __init__(self) -> None:
        self.is_closed = False
        self.is_proxied = False  # the other end is one of the settings' `trusted_proxies`
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
        self.tasks: set[asyncio.Task[object]] = set()

    def stop(self) -> None:
        """Interrupt every call that may be interrupted, now or later."""
        self.is_stopped = True
        for task in tuple(self.tasks):
            task.cancel()

    def allowed(self, line: CallerLine) -> "_InterruptedBlock":
        """Let the block be interrupted; then this raises CallerGone or ProcessStopped, also before the block begins.

        What happens outside of such a block, such as a transaction, is never interrupted.
        """
        return _InterruptedBlock(self, line)

    def reason(self, line: CallerLine) -> CallerGone | ProcessStopped | None:
        """Why the call of this caller must not go on, if it must not."""
        if line.is_closed:
            return CallerGone()
        return ProcessStopped() if self.is_stopped else None


class _InterruptedBlock:
    """A block that may be interrupted. It may be inside another one, which may still be interrupted after it."""

    __slots__ = ("_interrupts", "_is_inside_another", "_line", "_outer_task", "_task")

    def __init__(self, interrupts: Interrupts, line: CallerLine) -> None:
        self._interrupts = interrupts
        self._line = line

    def __enter__(self) -> None:
        if self._line.is_closed:
            raise CallerGone
        if self._interrupts.is_stopped:
            raise ProcessStopped
        task = asyncio.current_task()
        assert task is not None
        self._task = task
        self._outer_task = self._line.task
        self._is_inside_another = task in self._interrupts.tasks
        self._line.task = task
        self._interrupts.tasks.add(task)

    def __exit__(self, kind: object, error: BaseException | None, trail: object) -> None:
        self._line.task = self._outer_task
        if not self._is_inside_another:
            self._interrupts.tasks.discard(self._task)
        if isinstance(error, asyncio.CancelledError) and (reason := self._interrupts.reason(self._line)):
            self._task.uncancel()
            raise reason
