"""A job that runs in this process, and the lease that gives the right to run it."""

import asyncio
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from penstock.errors import Problem
from penstock.schema import StoredOutput

_CRASHES_MAX = 5
SUSPECT_CRASHES = 2


class LeaseLost(Exception):
    """Another worker runs this generation now, or it has ended; nothing more may be written."""


@dataclass(frozen=True, slots=True)
class Lease:
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


class PartialImages:
    """Unfinished images on their way to a caller: at most so many are kept, and the job never waits for the caller."""

    def __init__(self, max_images: int) -> None:
        self._images: deque[Mapping[str, Any]] = deque(maxlen=max_images)
        self._changed = asyncio.Event()

    def add(self, image: Mapping[str, Any]) -> None:
        self._images.append(image)
        self._changed.set()

    def take_all(self) -> list[Mapping[str, Any]]:
        """The images that have come since the last call."""
        images = list(self._images)
        self._images.clear()
        self._changed.clear()
        return images

    async def wait(self) -> None:
        """Wait for the next image."""
        await self._changed.wait()


@dataclass(slots=True, eq=False)
class RunningJob:
    """What a job needs while it runs in this process: wake-ups, the send guard, whether the process survives it, and
    its result for a caller that waits here.
    """

    lease: Lease
    task: asyncio.Task[None] = field(init=False, repr=False)
    first_run: object | None = None  # what this process has just stored, so that the first run need not read it
    # How it ended, for a caller that waits in this process and need not read it back from the store.
    problem: Problem | None = None
    completed: object | None = None
    outputs: Sequence[StoredOutput] = ()
    partial_images: PartialImages | None = None  # for a caller that wants to see them
    is_taken_over: bool = False  # by another worker, although this process lives
    # Attempts that are, or may be, stored but that this process has not begun to send.
    unsent_attempts: set[str] = field(default_factory=set)
    _wakeups: set[asyncio.Event] = field(default_factory=set)
    _survived: asyncio.Event = field(default_factory=asyncio.Event)
    _missed_wakeup: bool = False  # `wake` was called while nothing waited
    _sending: int = 0
    # Created when something waits for it; there are thousands of jobs, and this is rare.
    _all_sent: asyncio.Event | None = None

    @property
    def id(self) -> str:
        return self.lease.id

    async def wait(self, seconds: float) -> bool:
        """Wait for the job; return whether it ended in time. It goes on in either case."""
        done, _ = await asyncio.wait({self.task}, timeout=seconds)
        return bool(done)

    async def wait_for_image(self, seconds: float) -> bool:
        """Wait for the job or for the next unfinished image; return whether the job has ended."""
        if self.partial_images is None:
            return await self.wait(seconds)
        arrival = asyncio.create_task(self.partial_images.wait())
        try:
            await asyncio.wait({self.task, arrival}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            arrival.cancel()
        return self.task.done()

    # --------------------------------------------------------------------------------------------------------- wake-ups

    @contextmanager
    def wakeup(self) -> Iterator[asyncio.Event]:
        """Yield an event that `wake` sets. Each part of the work waits on an event of its own."""
        event = asyncio.Event()
        if self._missed_wakeup:
            event.set()
        self._missed_wakeup = False
        self._wakeups.add(event)
        try:
            yield event
        finally:
            self._wakeups.discard(event)

    def wake(self) -> None:
        """Have the job look now for a cancel request, or ask its provider now."""
        self._missed_wakeup = not self._wakeups
        for event in self._wakeups:
            event.set()

    # ------------------------------------------------------------------------------------------------------- send guard

    @contextmanager
    def sending(self) -> Iterator[None]:
        """Mark the time from storing the intent to send until the outcome is stored; `Jobs.stop` waits for its end."""
        self._sending += 1
        try:
            yield
        finally:
            self._sending -= 1
            if not self._sending and self._all_sent:
                self._all_sent.set()

    async def wait_until_sent(self) -> None:
        """Wait until nothing is being sent."""
        while self._sending:
            self._all_sent = asyncio.Event()
            await self._all_sent.wait()

    # ------------------------------------------------------------------------------------------------------------ trial

    async def wait_until_survived(self) -> None:
        """Wait until this process has survived a round of work on the job, or all of it."""
        await self._survived.wait()

    def mark_survived(self) -> None:
        """Note that this process survived a round of work on the job, or all of it."""
        self._survived.set()

    def forget_crashes(self) -> None:
        """Note that the stored number of crashes was set to zero."""
        self.lease = replace(self.lease, crashes=0)
