"""Keep accepted work going to its end: again after a crash, once at a time, in this process or another."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

import structlog

from penstock.clock import Clock
from penstock.errors import Problem, StorageUnavailable
from penstock.schema import Shelved
from penstock.settings import Settings
from penstock.store.base import Row, Store, Transaction

log = structlog.get_logger()
_MOST_CRASHES = 5
_CLAIMS_AT_ONCE = 500


class LeaseLost(Exception):
    """Somebody else drives this generation now, or it has ended; nothing more may be written."""


@dataclass(slots=True)
class Lease:
    """The right to drive one generation."""

    id: str
    token: int
    starts: int = 1  # how often it was begun without getting anywhere, this time included
    nudged: asyncio.Event = field(default_factory=asyncio.Event)  # a cancel or a callback is worth a look now
    # For a caller who waits in the same process: how it ended, without asking the store again.
    problem: Problem | None = None
    files: Sequence[Shelved] = ()

    @property
    def is_poison(self) -> bool:
        """Whoever worked on it did not live to tell; so that it ends some day, nobody tries again."""
        return self.starts > _MOST_CRASHES


Drive = Callable[[Lease], Awaitable[None]]


class Jobs:
    """Asks little of a driver: that it may be run again, and that it ends."""

    def __init__(self, store: Store, clock: Clock, settings: Settings) -> None:
        self._store, self._clock, self._settings = store, clock, settings
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._leases: dict[str, Lease] = {}
        self._drive: Drive | None = None
        self._stopping = False

    def driven_by(self, drive: Drive) -> None:
        self._drive = drive

    @property
    def running(self) -> int:
        return len(self._tasks)

    @property
    def lease_until_ms(self) -> int:
        return self._clock.steady_ms() + int(self._settings.lease_seconds * 1000)

    def start(self, lease: Lease) -> asyncio.Task[None]:
        """Drive in this process; the lease was taken in the transaction that accepted or claimed the work."""
        task = asyncio.create_task(self._run(lease), name=f"drive {lease.id}")
        self._tasks[lease.id] = task
        self._leases[lease.id] = lease
        task.add_done_callback(lambda _: self._ended(lease))
        return task

    def _ended(self, lease: Lease) -> None:
        if self._leases.get(lease.id) is lease:
            del self._leases[lease.id], self._tasks[lease.id]

    async def _run(self, lease: Lease) -> None:
        assert self._drive is not None, "the application says who drives"
        try:
            await self._drive(lease)
        except LeaseLost:
            log.warning("lease fenced", request_id=lease.id)
        except asyncio.CancelledError:
            raise
        except StorageUnavailable:
            log.warning("storage unavailable, job waits", request_id=lease.id)
        except Exception:
            log.exception("driver failed", request_id=lease.id)

    async def wait(self, request_id: str, seconds: float) -> bool:
        """Whether the work ended in time; it goes on either way."""
        task = self._tasks.get(request_id)
        if task is None:
            return True
        done, _ = await asyncio.wait({task}, timeout=seconds)
        return bool(done)

    def nudge(self, request_id: str) -> None:
        if lease := self._leases.get(request_id):
            lease.nudged.set()

    # -------------------------------------------------------------------------------------------------------- keeping

    async def claim(self, request_id: str) -> Lease | None:
        """Take over something nobody drives."""
        row = await self._store.write(lambda tx: self._claim(tx, request_id))
        return Lease(row["id"], row["lease_token"], row["starts"]) if row else None

    async def _claim(self, tx: Transaction, request_id: str) -> Row | None:
        now = self._clock.steady_ms()
        return await tx.one("claim_generation", id=request_id, now_ms=now, until_ms=self.lease_until_ms)

    async def resume(self, *, all_are_free: bool = False) -> int:
        """Start whatever nobody drives. With `all_are_free` no other process can be alive: old leases mean nothing."""
        now = 2**62 if all_are_free else self._clock.steady_ms()
        started, after = 0, ""
        while (room := self._settings.jobs_at_once - len(self._tasks)) > 0 and not self._stopping:
            limit = min(room, _CLAIMS_AT_ONCE)
            rows = await self._store.all("list_free_generations", now_ms=now, after=after, limit=limit)
            free = [row["id"] for row in rows if row["id"] not in self._tasks]
            for lease in await self._claim_all(free, now) if free else ():
                self.start(lease)
                started += 1
            if len(rows) < limit:
                break
            after = rows[-1]["id"]
        return started

    async def _claim_all(self, ids: list[str], now_ms: int) -> list[Lease]:
        async def write(tx: Transaction) -> list[Row | None]:
            until = self.lease_until_ms
            return [await tx.one("claim_generation", id=one, now_ms=now_ms, until_ms=until) for one in ids]

        rows = await self._store.write(write)
        return [Lease(row["id"], row["lease_token"], row["starts"]) for row in rows if row]

    async def keep(self) -> None:
        """Renew the leases of what runs here and, as a worker, pick up what others dropped, while the process lives."""
        while True:
            await self._clock.sleep(self._settings.lease_seconds / 3)
            try:
                await self._renew()
                if self._settings.worker:
                    await self.resume()
            except StorageUnavailable:
                log.warning("leases not renewed: storage unavailable")

    async def _renew(self) -> None:
        async def write(tx: Transaction) -> list[Lease]:
            until = self.lease_until_ms
            return [
                lease
                for lease in leases
                if not await tx.run("renew_lease", id=lease.id, lease_token=lease.token, until_ms=until)
            ]

        leases = list(self._leases.values())
        for lost in await self._store.write(write) if leases else ():
            if task := self._tasks.get(lost.id):
                task.cancel()

    async def stop(self) -> None:
        """Leave the rest to the next process, in good order."""
        self._stopping = True
        leases = list(self._leases.values())
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

        async def write(tx: Transaction) -> None:
            for lease in leases:
                await tx.run("release_lease", id=lease.id, lease_token=lease.token)

        try:
            if leases:
                await self._store.write(write)
        except StorageUnavailable:
            log.warning("leases not released: storage unavailable")
