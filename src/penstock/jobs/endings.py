"""Wait for the end of generations that other jobs follow, with one question at a time for all who wait for the same."""

import asyncio
from contextvars import Context
from dataclasses import dataclass

from penstock.clock import Clock
from penstock.jobs.leases import Jobs
from penstock.store.base import Store

_PAUSE_SECONDS = 0.5


@dataclass(slots=True)
class _Asked:
    """A generation whose end is waited for: the task that asks about it, and how many wait."""

    task: "asyncio.Task[None]"
    waiting: int = 0


class Endings:
    """Asks the store whether generations have ended, whichever process runs them.

    An organization may have thousands of jobs that follow one other, so the store is not asked for each of them. They
    may have all places that their organization may have, so one that nobody runs does not wait for a place: a worker
    that waits for its end runs it.
    """

    def __init__(self, store: Store, clock: Clock, jobs: Jobs) -> None:
        self._store = store
        self._clock = clock
        self._jobs = jobs
        self._asked: dict[str, _Asked] = {}

    async def wait(self, request_id: str) -> None:
        """Wait until a generation has ended. Raises StorageUnavailable."""
        asked = self._asked.get(request_id)
        if asked is None:
            # An empty context, because the task serves many jobs and not only the one that starts it.
            task = asyncio.get_running_loop().create_task(self._ask_until_ended(request_id), context=Context())
            asked = self._asked[request_id] = _Asked(task)
        asked.waiting += 1
        try:
            await asyncio.shield(asked.task)
        finally:
            asked.waiting -= 1
            if not asked.waiting:
                asked.task.cancel()
                self._asked.pop(request_id, None)

    async def _ask_until_ended(self, request_id: str) -> None:
        while True:
            row = await self._store.one("get_generation_status", id=request_id)
            if row is None or row["status"] in ("completed", "failed"):
                return
            if self._jobs.may_take(row["lease_until_ms"]):
                await self._jobs.run_until_ended(request_id)
            await self._clock.sleep(_PAUSE_SECONDS)
