"""A job that runs in this process, and the lease that gives the right to run it."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Self

import msgspec

_CRASHES_MAX = 5
SUSPECT_CRASHES = 2


class LeaseLost(Exception):
    """Another worker runs this generation now, or it has ended; nothing more may be written."""


class Lease(msgspec.Struct, frozen=True):
    """The right to run one generation. Each write names the token, so that a worker whose lease was taken over changes
    nothing.
    """

    id: str
    token: int
    crashes: int = 0  # workers lost in a row while they ran it, without progress between them

    @property
    def is_hopeless(self) -> bool:
        """True after five crashes in a row: fail the generation instead of running it again."""
        return self.crashes >= _CRASHES_MAX

    @property
    def is_suspect(self) -> bool:
        """Several workers crashed while they ran it; see `Jobs`."""
        return self.crashes >= SUSPECT_CRASHES


class Wakeups:
    """Wakes the parts of a job that wait: to look for a cancel request, or to ask the provider now."""

    __slots__ = ("_events", "_is_missed", "was_woken")

    def __init__(self) -> None:
        self._events: set[asyncio.Event] = set()
        self._is_missed = False  # `wake` was called while nothing waited
        self.was_woken = False  # until `wake` was called, no cancel is known to be requested

    @contextmanager
    def waiting(self) -> Iterator[asyncio.Event]:
        """Yield an event that `wake` sets. Each part of the work waits on an event of its own."""
        event = asyncio.Event()
        if self._is_missed:
            event.set()
        self._is_missed = False
        self._events.add(event)
        try:
            yield event
        finally:
            self._events.discard(event)

    def wake(self) -> None:
        self.was_woken = True
        self._is_missed = not self._events
        for event in self._events:
            event.set()


class SendGuard:
    """Keeps a job from being stopped while it sends, or while it has an output that exists only in memory.

    A submission that is interrupted could never be sent again, and such an output would be lost.
    """

    __slots__ = ("_all_sent", "_sending", "unsent_attempts")

    def __init__(self) -> None:
        # Attempts that are, or may be, stored but that this process has not begun to send.
        self.unsent_attempts: set[str] = set()
        self._sending = 0
        # Created when something waits for it; there are thousands of jobs, and this is rare.
        self._all_sent: asyncio.Event | None = None

    def sending(self) -> Self:
        """Mark, as a block, the time from storing the intent to send until the outcome is stored."""
        return self

    def __enter__(self) -> None:
        self._sending += 1

    def __exit__(self, *_: object) -> None:
        self._sending -= 1
        if not self._sending and self._all_sent:
            self._all_sent.set()

    def run_to_the_end(self) -> None:
        """Let the job not be stopped any more.

        For an output that was in the response to the submission: the provider cannot be asked for it again.
        """
        self._sending += 1

    def may_run_again(self) -> None:
        """Let the job be stopped again: what it has made is stored, and another run goes on from there."""
        self._sending = 0
        if self._all_sent:
            self._all_sent.set()

    @property
    def may_stop(self) -> bool:
        return not self._sending

    async def wait_until_sent(self) -> None:
        """Wait until the job may be stopped; for ever, if it has to run to its end."""
        while not self.may_stop:
            self._all_sent = asyncio.Event()
            await self._all_sent.wait()


@dataclass(slots=True, eq=False)
class RunningJob:
    """A job that runs in this process, as `Jobs` knows it: whose lease it has, and how it is woken and stopped."""

    lease: Lease
    task: asyncio.Task[None] = field(init=False, repr=False)
    is_taken_over: bool = False  # by another worker, although this process lives
    has_ended: bool = False  # the generation, because this job has brought it to its end
    wakeups: Wakeups = field(default_factory=Wakeups)
    send_guard: SendGuard = field(default_factory=SendGuard)
    survived: asyncio.Event = field(default_factory=asyncio.Event)  # set after a round of work on it, or all of it

    @property
    def id(self) -> str:
        return self.lease.id

    async def wait(self, seconds: float) -> bool:
        """Wait for the job; return whether it ended in time. It goes on in either case."""
        loop = asyncio.get_running_loop()
        waiter = loop.create_future()

        def end_wait(*_: object) -> None:
            if not waiter.done():
                waiter.set_result(None)

        timer = loop.call_later(seconds, end_wait)
        self.task.add_done_callback(end_wait)
        try:
            await waiter
        finally:
            timer.cancel()
            self.task.remove_done_callback(end_wait)
        return self.task.done()

    def forget_crashes(self) -> None:
        """Note that the stored number of crashes was set to zero."""
        self.lease = msgspec.structs.replace(self.lease, crashes=0)
