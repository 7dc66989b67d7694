"""Keep accepted work going to its end: again after a crash, once at a time, in this process or another."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial

import msgspec
import structlog

from penstock.clock import Clock, cancel_and_wait
from penstock.errors import Problem, StorageUnavailable
from penstock.schema import StoredOutput
from penstock.settings import Settings
from penstock.store.base import Row, Store, Transaction

log = structlog.get_logger()
_MOST_CRASHES = 5
_SUSPECT_CRASHES = 2
_TRIAL_SECONDS = 60.0  # whoever lives this long with a suspect has not been killed by it
_HEAD_START_SECONDS = 2.0  # how long suspects, all of them together, may have a process for themselves
_CLAIMS_AT_ONCE = 500
_RENEWALS_AT_ONCE = 1000


class LeaseLost(Exception):
    """Somebody else drives this generation now, or it has ended; nothing more may be written."""


@dataclass(slots=True)
class Lease:
    """The right to drive one generation."""

    id: str
    token: int
    crashes: int = 0  # how many drivers were lost with it in a row, none of whom got anywhere
    # For a caller who waits in the same process: how it ended, without asking the store again.
    problem: Problem | None = None
    files: Sequence[StoredOutput] = ()
    _bells: set[asyncio.Event] = field(default_factory=set)
    _is_nudged: bool = False  # while nobody listened
    _sending: int = 0
    # There are thousands of leases, and hardly any that somebody waits for.
    _sent: asyncio.Event | None = None
    _survived: asyncio.Event | None = None  # set when the driver did a round of work, or all of it

    @property
    def is_poison(self) -> bool:
        """Whoever worked on it did not live to tell; so that it ends some day, nobody tries again."""
        return self.crashes >= _MOST_CRASHES

    @property
    def is_suspect(self) -> bool:
        """Several processes died while they drove it; see `Jobs`."""
        return self.crashes >= _SUSPECT_CRASHES

    @contextmanager
    def bell(self) -> Iterator[asyncio.Event]:
        """Set when a cancel or a callback is worth a look now; each part of the work has its own to wait on."""
        bell = asyncio.Event()
        if self._is_nudged:
            bell.set()
        self._is_nudged = False
        self._bells.add(bell)
        try:
            yield bell
        finally:
            self._bells.discard(bell)

    def nudge(self) -> None:
        self._is_nudged = not self._bells
        for bell in self._bells:
            bell.set()

    @contextmanager
    def sending(self) -> Iterator[None]:
        """From the intent to send something until it is known what became of it: no moment to be stopped in."""
        self._sending += 1
        try:
            yield
        finally:
            self._sending -= 1
            if not self._sending and self._sent:
                self._sent.set()

    async def sent(self) -> None:
        """Until nothing is being sent."""
        while self._sending:
            self._sent = asyncio.Event()
            await self._sent.wait()

    def survived(self) -> None:
        """Whoever drives it has lived through a round of work, or all of it."""
        if self._survived:
            self._survived.set()

    def on_trial(self) -> asyncio.Event:
        """Before it is started: set when it is survived."""
        self._survived = asyncio.Event()
        return self._survived


Drive = Callable[[Lease], Awaitable[None]]


class Jobs:
    """Asks little of a driver: that it may be run again, and that it ends.

    On SQLite the process that accepts also drives, and takes up at its start what the last one left. On Postgres videos
    go through a queue, put there by the transaction that accepts them; see `cluster`.

    A generation may kill whoever works on it, and must not do so for ever. Who stops in good order gives its leases
    back; so a lease that is found run out was lost in a crash, and claiming it counts one. The count goes back to zero
    when something is achieved that cannot be achieved twice, or a round of asking the provider is survived: whatever
    kills each time does so before that. After five crashes in a row the generation is failed.

    Yet a process that dies takes along everything that it drives, and cannot tell what killed it. So from the second
    crash on a generation is a suspect. Suspects are tried one at a time in each process, before the others if it has
    just begun, and are not claimed while they wait: if the process dies now, only the one on trial is charged with it,
    and if it lives, that one is cleared. So one killer costs two crashes together with all the others and three by
    itself. One that is not suspected yet can strike twice while somebody else is on trial, which is not enough.
    """

    def __init__(self, store: Store, clock: Clock, settings: Settings) -> None:
        self._store, self._clock, self._settings = store, clock, settings
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._leases: dict[str, Lease] = {}
        self._drive: Drive | None = None
        self._rescue: Callable[[], Awaitable[int]] = self.resume
        self._trial = asyncio.Lock()
        self._suspects: dict[str, asyncio.Task[None]] = {}
        self._waiting: set[str] = set()  # suspects whose turn has not come; who looks in twice need not wait twice
        self.is_stopping = False

    def driven_by(self, drive: Drive) -> None:
        self._drive = drive

    def rescued_by(self, rescue: Callable[[], Awaitable[int]]) -> None:
        """Who sees to it that work which nobody drives finds a driver; unless said, this process takes it up."""
        self._rescue = rescue

    @property
    def running(self) -> int:
        return len(self._tasks)

    @property
    def lease_until_ms(self) -> int:
        return self._clock.steady_ms() + int(self._settings.lease_seconds * 1000)

    # ------------------------------------------------------------------------------------------------------- accepting

    def begin_here(self, task: str) -> bool:
        """Whether this process drives what it accepts. Callers wait for images; a video is for whoever is free."""
        return task != "video" or (self._settings.worker and not self._is_shared)

    @property
    def _is_shared(self) -> bool:
        return self._store.dialect == "postgres"

    async def queue(self, tx: Transaction, request_id: str, task: str) -> None:
        """Part of the accepting transaction: a promise and its place in the queue are one."""
        if self._is_shared and not self.begin_here(task):
            await tx.one("defer_generation", id=request_id)

    def start(self, lease: Lease) -> asyncio.Task[None]:
        """Drive in this process; the lease was taken in the transaction that accepted or claimed the work."""
        task = asyncio.create_task(self._run(lease), name=f"drive {lease.id}")
        self._tasks[lease.id] = task
        self._leases[lease.id] = lease
        task.add_done_callback(lambda _: self._ended(lease))
        return task

    def _ended(self, lease: Lease) -> None:
        lease.survived()
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
        """Have the driver look at once, if it is in this process."""
        if lease := self._leases.get(request_id):
            lease.nudge()

    async def tell(self, tx: Transaction, request_id: str) -> None:
        """Have the driver look at once, wherever it is, when the transaction is committed."""
        if self._is_shared:
            await tx.one("tell_drivers", id=request_id)

    # -------------------------------------------------------------------------------------------------------- keeping

    async def attend(self, request_id: str) -> bool:
        """Drive this, or stay with it if that is done here already, until it has ended; False when it has not."""
        row = await self._store.one("get_generation_status", id=request_id)
        if row and not (self.is_stopping or request_id in self._tasks or request_id in self._waiting):
            await self._take(request_id, row["crashes"], self._clock.steady_ms())
        if task := self._tasks.get(request_id):
            await asyncio.wait({task})  # cancelling whoever attends does not stop the work
        row = await self._store.one("get_generation_status", id=request_id)
        return row is None or row["status"] in ("completed", "failed")

    async def _take(self, request_id: str, crashes: int, now_ms: int) -> None:
        """Start it if it is free; a suspect when its turn has come."""
        if crashes < _SUSPECT_CRASHES:
            for lease in await self._claim_all([request_id], now_ms):
                self.start(lease)
            return
        self._waiting.add(request_id)
        try:
            async with self._trial:
                for lease in () if self.is_stopping else await self._claim_all([request_id], now_ms):
                    is_survived = lease.on_trial()
                    self.start(lease)
                    with suppress(TimeoutError):
                        await asyncio.wait_for(is_survived.wait(), _TRIAL_SECONDS)
        finally:
            self._waiting.discard(request_id)

    async def claim(self, request_id: str) -> Lease | None:
        """Take over something nobody drives."""
        leases = await self._claim_all([request_id], self._clock.steady_ms())
        return leases[0] if leases else None

    async def resume(self, *, all_are_free: bool = False) -> int:
        """Start whatever nobody drives. With `all_are_free` no other process can be alive: old leases mean nothing."""
        now = 2**62 if all_are_free else self._clock.steady_ms()
        started, after = 0, ""
        while (
            room := self._settings.concurrent_jobs - len(self._tasks) - len(self._suspects)
        ) > 0 and not self.is_stopping:
            limit = min(room, _CLAIMS_AT_ONCE)
            rows = await self._store.all("list_free_generations", now_ms=now, after=after, limit=limit)
            free = [row for row in rows if row["id"] not in self._tasks and row["id"] not in self._suspects]
            await self._suspect([row for row in free if row["crashes"] >= _SUSPECT_CRASHES], now)
            plain = [row["id"] for row in free if row["crashes"] < _SUSPECT_CRASHES]
            for lease in await self._claim_all(plain, now) if plain else ():
                self.start(lease)
            started += len(free)
            if len(rows) < limit:
                break
            after = rows[-1]["id"]
        return started

    async def _suspect(self, rows: list[Row], now_ms: int) -> None:
        """Have them tried, in no order, so that in a series of crashes it is not always the same one's turn."""
        for row in random.sample(rows, len(rows)):
            request_id: str = row["id"]
            take = self._take(request_id, row["crashes"], now_ms)
            task = self._suspects[request_id] = asyncio.create_task(take, name=request_id)
            task.add_done_callback(lambda task: self._suspects.pop(task.get_name(), None))
        if rows and not self._tasks:
            await asyncio.wait(self._suspects.values(), timeout=_HEAD_START_SECONDS)

    async def _claim_all(self, ids: list[str], now_ms: int) -> list[Lease]:
        named, until_ms = msgspec.json.encode(ids).decode(), self.lease_until_ms
        claim = {"ids": named, "now_ms": now_ms, "until_ms": until_ms}
        rows = await self._store.write(lambda tx: tx.all("claim_generations", **claim))
        return [Lease(row["id"], row["lease_token"], row["crashes"]) for row in rows]

    async def keep(self) -> None:
        """Renew the leases of what runs here and, as a worker, see to what others dropped, while the process lives."""
        while True:
            await self._clock.sleep(self._settings.lease_seconds / 3)
            try:
                await self._renew()
                if self._settings.worker:
                    await self._rescue()
            except StorageUnavailable:
                log.warning("leases not renewed: storage unavailable")

    async def _renew(self) -> None:
        leases = list(self._leases.values())
        for start in range(0, len(leases), _RENEWALS_AT_ONCE):
            some = leases[start : start + _RENEWALS_AT_ONCE]
            named = msgspec.json.encode([(lease.id, lease.token) for lease in some]).decode()
            rows = await self._store.write(partial(_renewed, named, self.lease_until_ms))
            if len(rows) < len(some):  # taken over, or just ended by ourselves
                fenced = {row["id"] for row in await self._store.all("list_fenced", leases=named)}
                self._break_off([lease for lease in some if lease.id in fenced])

    def _break_off(self, fenced: list[Lease]) -> None:
        for lease in fenced:
            if self._leases.get(lease.id) is lease:
                log.warning("lease fenced", request_id=lease.id)
                self._tasks[lease.id].cancel()

    async def stop(self) -> None:
        """Leave the rest to the next process, in good order: broken off while sending, it could never be sent again."""
        self.is_stopping = True
        await cancel_and_wait(list(self._suspects.values()))
        leases = list(self._leases.values())
        await asyncio.gather(*(self._stop(lease, self._tasks[lease.id]) for lease in leases))

        async def write(tx: Transaction) -> None:
            for lease in leases:
                await tx.run("release_lease", id=lease.id, lease_token=lease.token)

        try:
            if leases:
                await self._store.write(write)
        except StorageUnavailable:
            log.warning("leases not released: storage unavailable")

    async def _stop(self, lease: Lease, task: asyncio.Task[None]) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(lease.sent(), self._settings.drain_seconds)
        await cancel_and_wait([task])


async def _renewed(named: str, until_ms: int, tx: Transaction) -> list[Row]:
    return await tx.all("renew_leases", leases=named, until_ms=until_ms)
