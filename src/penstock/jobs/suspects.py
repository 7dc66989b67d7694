"""Run jobs that may have crashed processes one at a time, so that the next crash shows which of them is the cause."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress

import structlog

from penstock.clock import Clock
from penstock.errors import StorageUnavailable
from penstock.event_loop import cancel_and_wait
from penstock.jobs.running import RunningJob

log = structlog.get_logger()
_TRIAL_SECONDS = 60.0  # a process that lives this long with a suspect was not killed by it
_FIRST_TRIAL_SECONDS = 5.0  # how long, at least, a process lives without a suspect; at most twice as long


class SuspectTrials:
    """The trials of suspects in this process; see `Jobs`.

    A crash during a trial counts against the suspect. So that this does not happen by chance, a process tries no
    suspect in its first seconds: one that always crashes soon for another reason, such as too little memory, never
    tries any. How many seconds is random, so that trials do not begin each time just before such a crash.
    """

    def __init__(self, clock: Clock, start_next: Callable[[], Awaitable[RunningJob | None]]) -> None:
        """`start_next` claims and starts the next suspect and returns it, or None when there is none."""
        self._clock = clock
        self._start_next = start_next
        self._first_at = clock.monotonic() + random.uniform(1, 2) * _FIRST_TRIAL_SECONDS  # noqa: S311 - guards nothing
        self._task: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Try all suspects that nobody runs, in a task of its own; does nothing if that is under way."""
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run(), name="try suspects")

    async def wait(self) -> None:
        """Wait until there is no suspect left to try."""
        if self._task:
            await asyncio.wait({self._task})

    async def stop(self) -> None:
        if self._task:
            await cancel_and_wait([self._task])

    async def _run(self) -> None:
        await self._clock.sleep(self._first_at - self._clock.monotonic())
        try:
            while job := await self._start_next():
                with suppress(TimeoutError):
                    await asyncio.wait_for(job.survived.wait(), _TRIAL_SECONDS)
        except StorageUnavailable:
            log.warning("suspects not tried: storage unavailable")
