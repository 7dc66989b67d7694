"""Run the rows of batches, some at a time, with a lower priority than what callers wait for."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial

import structlog

from penstock.batches import intake, webhook
from penstock.batches.records import CANCELLING, IN_PROGRESS, ONLY, VALIDATING, BatchRecord, PendingRow
from penstock.batches.row_runs import PauseBatch, RowEnd, run_row, store_row_end
from penstock.batches.vendor_runs import BUDGET, VendorRuns
from penstock.errors import AuthenticationFailed, InternalError, StorageUnavailable
from penstock.event_loop import cancel_and_wait
from penstock.gateway import Gateway
from penstock.jobs.leases import LEASE_PART, RENEWAL_PART
from penstock.schema import Caller
from penstock.store.base import Row, Transaction
from penstock.store.waiting import retry_while_unavailable
from penstock.values import OrgId, new_id

log = structlog.get_logger()
_LOOK_SECONDS = 1.0  # between looks for batches that nobody runs
_ROOM_SECONDS = 0.1  # between looks whether a place is free
_RETRY_SECONDS = 2.0
_ROWS_AT_ONCE = 100
_BATCHES_AT_ONCE = 100


class BatchRunner:
    """Runs batches in this process.

    A batch is leased, so that one process runs it; a row that two processes run all the same, because one was taken for
    dead, is one request by its idempotency key. All batches share `batch_rows_at_once` places. A generation that runs
    for a caller takes one of these away, until one place is left. So batches make room for callers, and go on slowly.
    """

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._owner = new_id("prc", gateway.clock.now_ms())
        self._batches: dict[str, asyncio.Task[None]] = {}
        self._rows = 0  # that run now, of all batches
        self._request_ids = set[str]()  # of generations that are rows

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run batches inside the context. At the end their leases are given back, and other processes go on."""
        if self._gateway.store.dialect == "sqlite":  # the only process: the leases of the last one mean nothing
            with suppress(StorageUnavailable):
                await self._gateway.store.write(lambda tx: tx.run("release_batches"))
        looking = asyncio.create_task(self._look_forever(), name="look for batches")
        try:
            yield
        finally:
            await cancel_and_wait([looking])
            await cancel_and_wait([*self._batches.values()])

    async def _look_forever(self) -> None:
        gateway = self._gateway
        while True:
            gateway.batch_wakeup.clear()
            try:
                await self._claim_free()
            except StorageUnavailable:
                log.warning("batches wait: storage unavailable")
            except Exception:
                log.exception("background work failed")
            await gateway.clock.wait(gateway.batch_wakeup, _LOOK_SECONDS)

    async def _claim_free(self) -> None:
        store = self._gateway.store
        now_ms = self._gateway.clock.steady_ms()
        for row in await store.all("list_free_batches", now_ms=now_ms, limit=_BATCHES_AT_ONCE):
            batch_id = row["id"]
            if batch_id in self._batches or not await self._renew(batch_id):
                continue
            if row["status"] == VALIDATING:  # its process is gone, and so is its caller
                await intake.delete_refused(self._gateway, batch_id)
                continue
            task = asyncio.create_task(self._run_batch(batch_id, OrgId(row["org_id"])), name=f"run {batch_id}")
            self._batches[batch_id] = task
            task.add_done_callback(partial(self._forget, batch_id))

    def _forget(self, batch_id: str, _: asyncio.Task[None]) -> None:
        self._batches.pop(batch_id, None)

    async def _renew(self, batch_id: str) -> bool:
        """Take or renew the lease of a batch; False if another process has it, or nobody is to run it."""
        now_ms = self._gateway.clock.steady_ms()
        until_ms = now_ms + int(self._gateway.settings.lease_seconds * LEASE_PART * 1000)
        values = {"id": batch_id, "owner": self._owner, "now_ms": now_ms, "until_ms": until_ms}
        return bool(await self._gateway.store.write(lambda tx: tx.run("claim_batch", **values)))

    async def _run_batch(self, batch_id: str, org_id: OrgId) -> None:
        """Run a batch until it ends, is paused, or another process has its lease."""
        gateway = self._gateway
        changed = asyncio.Event()
        run = _BatchRun(batch_id, org_id, VendorRuns(gateway, batch_id, changed), changed)
        renewal = asyncio.create_task(self._keep_lease(run), name=f"renew {batch_id}")
        try:
            while not await self._go_on(run):
                await gateway.clock.wait(run.changed, _ROOM_SECONDS if run.waits_for_room else _LOOK_SECONDS)
        except StorageUnavailable:
            log.warning("batch waits: storage unavailable", batch_id=batch_id)
        except Exception:
            log.exception("batch failed", batch_id=batch_id)
        finally:
            await cancel_and_wait([renewal, *run.tasks, *run.vendor.tasks])
            with suppress(StorageUnavailable):
                release = {"id": batch_id, "owner": self._owner}
                await gateway.store.write(lambda tx: tx.run("release_batch", **release))

    async def _keep_lease(self, run: "_BatchRun") -> None:
        while True:
            await self._gateway.clock.sleep(self._gateway.settings.lease_seconds * RENEWAL_PART)
            with suppress(StorageUnavailable):
                run.is_mine = await self._renew(run.batch_id) or not run.begins_rows
                run.changed.set()

    # ------------------------------------------------------------------------------------------------------ one batch

    async def _go_on(self, run: "_BatchRun") -> bool:
        """Begin what rows may begin; return whether there is nothing left to do here."""
        gateway = self._gateway
        run.changed.clear()
        reason = run.take_ended()  # before the batch is read: its cost has theirs
        if reason:
            await self._pause(run, reason)
        row = await gateway.store.one("get_batch", id=run.batch_id, org_id=run.org_id)
        if row is None or not run.is_mine:
            return True
        batch = BatchRecord(**row)
        run.begins_rows = batch.status == IN_PROGRESS
        await run.vendor.resume()
        if run.begins_rows:
            await self._begin_rows(run, batch)
        elif batch.status == CANCELLING:
            run.vendor.cancel()
        if run.tasks or run.vendor.tasks:
            return False
        if batch.status == CANCELLING:
            await intake.erase_bodies(gateway, run.batch_id)
        elif batch.status != IN_PROGRESS:
            return True
        elif run.queue or not run.is_exhausted or await self._has_pending(run):
            return False
        await self._end(batch)
        return True

    async def _begin_rows(self, run: "_BatchRun", batch: BatchRecord) -> None:
        try:
            caller = await self._gateway.keys.caller_of(batch.org_id, batch.key_id)
        except AuthenticationFailed:
            await self._pause(run, "key_revoked")
            return
        run.waits_for_room = False
        if batch.vendor_batch and not await self._sends_rows(run, batch, caller):
            return
        concurrency = _concurrency(batch, caller)
        while len(run.tasks) < concurrency:
            row = await self._next_row(run)
            if row is None:
                return
            if batch.max_cost is not None and batch.cost + run.held + row.hold > batch.max_cost:
                if not run.tasks:
                    await self._pause(run, BUDGET)
                return
            if not self._has_room(run):
                run.waits_for_room = True
                return
            run.queue.popleft()
            self._begin(run, batch, caller, row)

    async def _sends_rows(self, run: "_BatchRun", batch: BatchRecord, caller: Caller) -> bool:
        """Send what goes with batches of providers; return whether the other rows may begin, if there are any."""
        if run.vendor.may_send:
            reason = await run.vendor.fill(batch, caller, run.held - run.vendor.held)
            if reason and not (run.tasks or run.vendor.tasks):
                await self._pause(run, reason)
        if batch.vendor_batch == ONLY:
            run.is_exhausted = run.vendor.is_filled
            return False
        return run.vendor.is_filled

    async def _next_row(self, run: "_BatchRun") -> PendingRow | None:
        """The next row, which stays in the queue."""
        if not run.queue and not run.is_exhausted:
            page = {"batch_id": run.batch_id, "after": run.after, "limit": _ROWS_AT_ONCE}
            rows = await self._gateway.store.slow("list_pending_batch_rows", **page)
            run.queue.extend(PendingRow(**row) for row in rows)
            run.is_exhausted = len(rows) < _ROWS_AT_ONCE
            if rows:
                run.after = rows[-1]["number"]
        return run.queue[0] if run.queue else None

    async def _has_pending(self, run: "_BatchRun") -> bool:
        """Whether rows have not ended after all have begun; then they are begun again."""
        page = {"batch_id": run.batch_id, "after": 0, "limit": 1}
        if not await self._gateway.store.slow("list_pending_batch_rows", **page):
            return False
        run.after = 0
        run.is_exhausted = False
        run.vendor.is_filled = False
        run.changed.set()
        return True

    def _has_room(self, run: "_BatchRun") -> bool:
        callers = self._gateway.jobs.count_others(self._request_ids)
        places = max(1, self._gateway.settings.batch_rows_at_once - callers)
        return self._rows < places and len(run.tasks) < max(1, places // max(1, len(self._batches)))

    def _begin(self, run: "_BatchRun", batch: BatchRecord, caller: Caller, row: PendingRow) -> None:
        self._rows += 1
        task = asyncio.create_task(self._run_row(batch, caller, row), name=f"run row {row.number} of {batch.id}")
        run.tasks[task] = row

        def note_end(_: asyncio.Task[str | None]) -> None:
            self._rows -= 1
            run.changed.set()

        task.add_done_callback(note_end)

    async def _run_row(self, batch: BatchRecord, caller: Caller, row: PendingRow) -> str | None:
        """Run a row and store its end. Returns why the batch is to be paused, if it is."""
        gateway = self._gateway
        run = partial(run_row, gateway, caller, batch, row, self._request_ids)
        wait = partial(retry_while_unavailable, gateway.clock, pause_seconds=_RETRY_SECONDS, batch_id=batch.id)
        try:
            end = await wait(run)
        except PauseBatch as pause:
            return pause.reason
        except Exception:
            log.exception("row of a batch failed", batch_id=batch.id, row=row.number)
            problem = InternalError()
            end = RowEnd(status="failed", error_code=problem.code, error_message=problem.message)
        await wait(partial(store_row_end, gateway, batch.id, row.number, end))
        return None

    async def _pause(self, run: "_BatchRun", reason: str) -> None:
        values = {"id": run.batch_id, "org_id": run.org_id, "reason": reason}
        await self._gateway.store.write(lambda tx: tx.run("pause_batch", **values))
        log.info("batch paused", batch_id=run.batch_id, reason=reason)
        run.changed.set()

    async def _end(self, batch: BatchRecord) -> None:
        gateway = self._gateway
        now_ms = gateway.clock.now_ms()
        values: Row = {"id": batch.id, "owner": self._owner, "status": batch.status, "ended_at_ms": now_ms}

        async def write(tx: Transaction) -> bool:
            if not await tx.run("end_batch", **values):
                return False
            ended = await tx.one("get_batch", id=batch.id, org_id=batch.org_id)
            assert ended is not None, "it was just changed"
            if batch.webhook_url:
                await tx.put("add_message", **webhook.message(BatchRecord(**ended), now_ms))
            return True

        if await gateway.store.write(write, org_id=batch.org_id) and batch.webhook_url:
            gateway.deliveries.wake()


@dataclass(slots=True)
class _BatchRun:
    """A batch that runs in this process."""

    batch_id: str
    org_id: OrgId
    vendor: VendorRuns
    changed: asyncio.Event
    after: int = 0  # the number of the last row that was read
    queue: deque[PendingRow] = field(default_factory=deque)
    is_exhausted: bool = False  # all rows were read
    tasks: dict[asyncio.Task[str | None], PendingRow] = field(default_factory=dict)
    waits_for_room: bool = False
    begins_rows: bool = True
    is_mine: bool = True

    @property
    def held(self) -> int:
        """The most that the running rows may cost, and those that wait at providers."""
        return sum(row.hold for row in self.tasks.values()) + self.vendor.held

    def take_ended(self) -> str | None:
        """Forget the rows that have ended; return why the batch is to be paused, if one of them says so."""
        reasons = []
        for task in [task for task in self.tasks if task.done()]:
            del self.tasks[task]
            reasons.append(task.result())
        return next(filter(None, reasons), None)


def _concurrency(batch: BatchRecord, caller: Caller) -> int:
    """How many rows may run at a time: of the concurrent requests of a key, half are left to its callers."""
    if caller.concurrent_requests is None:
        return batch.concurrency
    return min(batch.concurrency, max(1, caller.concurrent_requests // 2))
