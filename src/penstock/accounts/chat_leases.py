"""Keep the lease of this process, and end the chat calls of processes whose lease has expired.

One row per process is renewed, so that a chat call costs no write of its own.
"""

from collections.abc import Sequence
from functools import partial

import msgspec
import structlog

from penstock.accounts import transfers
from penstock.accounts.orgs import list_orgs
from penstock.accounts.requests import RequestEnd, count_usage, end_request
from penstock.clock import Clock
from penstock.errors import InternalError, StorageUnavailable
from penstock.store.base import Store, Transaction
from penstock.store.database_time import describe_difference, follow_database_time
from penstock.store.renewals import Renewals
from penstock.values import Nanos, OrgId, first_id

log = structlog.get_logger()
_MAX_ABANDONED = 1000


class _OpenCall(msgspec.Struct, frozen=True):
    """The request of a chat call that has not ended."""

    id: str
    org_id: OrgId
    hold: Nanos


class ChatLeases(msgspec.Struct, frozen=True):
    """The lease of a process that handles chat calls. Its times are the database's: see `follow_database_time`."""

    store: Store
    clock: Clock
    process_id: str
    lease_seconds: float

    async def renew(self) -> None:
        await follow_database_time(self.store, self.clock)
        until_ms = self.clock.steady_ms() + int(self.lease_seconds * 1000)
        await self.store.write(lambda tx: tx.run("renew_process", id=self.process_id, until_ms=until_ms))

    async def give_back(self) -> None:
        """Let the lease expire now: this process ends, and others may end what it has left."""
        try:
            await self.store.write(lambda tx: tx.run("renew_process", id=self.process_id, until_ms=0))
        except StorageUnavailable:
            log.warning("lease of chat calls not given back: storage unavailable")

    async def run(self) -> None:
        """Renew the lease again and again, and end the chat calls of dead processes.

        After a time without the store nothing is ended before the other processes had the time to renew.
        """
        seconds = self.lease_seconds / 3
        renewals = Renewals(self.clock, lease_seconds=self.lease_seconds, seconds_between=seconds)
        was_different = describe_difference(self.store, self.clock) is not None  # then it was logged at the start
        while True:
            await self.clock.sleep(seconds)
            try:
                await self.renew()
                renewals.note_renewal()
                if (difference := describe_difference(self.store, self.clock)) and not was_different:
                    log.warning("clocks differ", found=difference)
                was_different = difference is not None
                if renewals.others_had_time:
                    await self.end_calls_of_dead_processes()
            except StorageUnavailable:
                renewals.note_failure()
                log.warning("lease of chat calls not renewed: storage unavailable")
            except Exception:
                log.exception("background work failed")

    async def end_calls_of_dead_processes(self) -> int:
        """Fail the open chat calls of processes whose lease has expired, release their holds, and return how many."""
        now_ms = self.clock.steady_ms()
        count = 0
        for process in await self.store.all("list_dead_processes", now_ms=now_ms):
            is_done = True
            for org in await list_orgs(self.store):
                try:
                    count += await self._end_calls(org.id, process["id"])
                except StorageUnavailable:  # perhaps only the rows of this organization, which somebody else has locked
                    is_done = False
                    log.warning("calls of a dead process not ended: storage unavailable", org_id=org.id)
            if is_done:
                await self.store.write(partial(_remove_process, process["id"], now_ms))
        if count:
            log.warning("released the holds of interrupted chat calls", calls=count)
        return count

    async def _end_calls(self, org_id: OrgId, process_id: str) -> int:
        count = 0
        while rows := await self.store.all(
            "list_requests_of_process", org_id=org_id, process_id=process_id, limit=_MAX_ABANDONED
        ):
            calls = [_OpenCall(**row) for row in rows]
            await self.store.write(partial(_fail_abandoned, calls, self.clock.now_ms()), org_id=org_id)
            count += len(calls)
        return count


async def _remove_process(process_id: str, now_ms: int, tx: Transaction) -> None:
    await tx.run("remove_process", id=process_id, now_ms=now_ms)


async def release_abandoned(store: Store, clock: Clock, before_ms: int) -> int:
    """Fail calls that began before a moment and whose process died, release their holds, and return how many.

    For calls of processes that no row knows any more.
    """
    count = 0
    high = first_id("req", before_ms)
    for org in await list_orgs(store):
        rows = await store.slow("list_abandoned_requests", org_id=org.id, high=high, limit=_MAX_ABANDONED)
        calls = [_OpenCall(**row) for row in rows]
        count += len(calls)
        if calls:
            await store.write(partial(_fail_abandoned, calls, clock.now_ms()), org_id=org.id)
    return count


async def _fail_abandoned(calls: Sequence[_OpenCall], now_ms: int, tx: Transaction) -> None:
    problem = InternalError("The gateway was interrupted while it handled this call.")
    end = RequestEnd("upstream_failure", error_code=problem.code, error_message=problem.message)
    usage = {call.id: await end_request(tx, call.org_id, call.id, end) for call in calls}
    holds = [transfers.EndedHold(call.org_id, call.id, call.hold, None) for call in calls if usage[call.id]]
    await count_usage(tx, filter(None, usage.values()))
    await transfers.end_holds(tx, holds, now_ms)
