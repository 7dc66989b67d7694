"""Deliver webhook messages, and retry on a schedule until the receiver accepts them."""

import asyncio
import logging
import random
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import Context

import msgspec

from penstock.audit_log import Act, Note, write_audited
from penstock.clock import Clock
from penstock.errors import Conflict, NotFound, StorageUnavailable
from penstock.failpoints import failpoint
from penstock.settings import Settings
from penstock.store.base import Change, Row, Store, Transaction
from penstock.store.groups import WriteGroups
from penstock.store.waiting import retry_while_unavailable
from penstock.values import OrgId
from penstock.webhooks.delivery import DeliveryResult, LeasedMessage, MessageChange, write_changes
from penstock.webhooks.events import OPERATOR
from penstock.webhooks.places import DeliveryPlaces, Place
from penstock.webhooks.sender import Sender

_log = logging.getLogger(__name__)

_BATCH = 128
_BUSY_PAUSE_SECONDS = 0.05
_POLL_SECONDS = 1.0  # how late a message of another process may be noticed
_JITTER = 0.18  # pauses are documented as up to a fifth longer; the difference allows for delays of our own
_LOCAL_PAUSE_SECONDS = 1.0
_LEASE_SECONDS = 15.0  # about how long a message is delayed if the process that delivers it dies
_LEASE_PER_TIMEOUT = 1.5  # no lease lasts longer than a delivery and the recording of its result may take
# Parts of a lease: how often it is renewed, how late a delivery may begin, and how long its result waits for the store.
_RENEWAL_PART = 0.25
_LATE_PART = 0.5
_RECORDING_PART = 0.5
_COLLECT_RESULTS_SECONDS = 0.05  # results of deliveries that end within this time are written together
_CLOCKS_APART_MS = 5 * 60 * 1000  # how much the clocks of our machines may differ
_RESULT_CHARS_MAX = 200
_REQUEUED_AT_ONCE = 1000  # messages in one transaction
_NOT_STARTED = DeliveryResult("stopped before it was sent", counts=False)
_INTERRUPTED = DeliveryResult("interrupted", counts=False)


class Deliveries:
    """Delivers due messages. Several processes may do so on the same database.

    A delivery counts when its result is recorded. Leases are short, and are renewed while a delivery takes long. If a
    process dies during a delivery, the message is delivered again when its lease ends. So a receiver may get a message
    more often than the schedule says, and crashes do not use the schedule up.
    """

    def __init__(self, store: Store, sender: Sender, clock: Clock, settings: Settings) -> None:
        self._store = store
        self._sender = sender
        self._clock = clock
        self._delays = settings.webhook_delays_seconds
        self._lease_seconds = min(_LEASE_SECONDS, settings.webhook_timeout_seconds * _LEASE_PER_TIMEOUT)
        self._lease_ms = int(self._lease_seconds * 1000)
        self._renew_at = 0.0
        self._longest_wait_ms = self._lease_ms + int(max(self._delays, default=0.0) * 2000) + _CLOCKS_APART_MS
        self._changes = WriteGroups(store, write_changes, collect_seconds=_COLLECT_RESULTS_SECONDS)
        self._running: dict[asyncio.Task[None], tuple[LeasedMessage, Place]] = {}
        self._places = DeliveryPlaces(self.wake)
        self._wakeup = asyncio.Event()
        self._is_running = False
        self._is_stopping = False

    def wake(self) -> None:
        """Look for due messages now: one was committed, or a place became free."""
        self._wakeup.set()

    def stop(self) -> None:
        """Start no more deliveries; `run` returns when the running ones have ended."""
        self._is_stopping = True
        self.wake()

    async def release_leases(self) -> None:
        """Make messages due that a former process had leased. Call it only when no other process delivers."""
        now_ms = self._clock.steady_ms()
        await self._store.write(lambda tx: tx.run("make_leased_messages_due", now_ms=now_ms))

    async def run(self) -> None:
        """Deliver until stopped. Cancelling this interrupts the running deliveries, except for those whose result is
        being recorded.
        """
        self._is_running = True
        try:
            while self._running or not self._is_stopping:
                self._wakeup.clear()
                try:
                    pause = await self._work_once()
                except StorageUnavailable as problem:
                    _log.warning("webhook messages cannot be leased: %s", problem)
                    pause = _POLL_SECONDS
                await self._clock.wait(self._wakeup, pause)
        finally:
            self._is_running = False
            for task, (_, place) in self._running.items():
                if place.is_sending:
                    task.cancel()
            await self._wait_for_running()

    async def _work_once(self) -> float:
        """Renew leases and start what is due. Returns after how many seconds to do so again."""
        await self._renew_leases()
        if self._is_stopping:
            return _POLL_SECONDS
        while await self._start_due_deliveries() and not self._is_stopping:
            await self._renew_leases()  # to start all that is due may take longer than a lease lasts
        if self._places.are_crowded:  # claiming reads past all messages of the crowds: not too often
            await asyncio.sleep(_BUSY_PAUSE_SECONDS)
        return await self._seconds_to_next()

    async def _wait_for_running(self) -> None:
        while self._running:
            await asyncio.wait(self._running)

    async def _seconds_to_next(self) -> float:
        now_ms = self._clock.steady_ms()
        row = await self._store.one("get_next_message_due", now_ms=now_ms)
        due_ms = row["at_ms"] if row is not None and row["at_ms"] is not None else now_ms + 1000 * _POLL_SECONDS
        return min((due_ms - now_ms) / 1000, _POLL_SECONDS)

    # --------------------------------------------------------------------------------------------- leasing, starting

    @contextmanager
    def adding(self, row: Row) -> Iterator[list[Change]]:
        """Yield what adds a message to a transaction that is committed when the block ends.

        If there is a place for it, the message is leased as it is added, and its delivery starts after the block;
        otherwise it is claimed when there is one. If the block raises although the transaction was committed, it is
        claimed when its lease ends.
        """
        message = LeasedMessage.first(row)
        if not (self._is_running and self._places.has_room(message)):
            yield [("add_message", row)]
            self.wake()
            return
        now_ms = self._clock.steady_ms()
        lease = {"next_at_ms": now_ms + self._lease_ms, "unrecorded": 1, "lease_token": message.lease_token}
        place = self._places.take(message)
        try:
            yield [("add_message", {**row, **lease})]
        except BaseException:
            place.give_back()
            raise
        self._start(message, place, now_ms)

    async def _start_due_deliveries(self) -> bool:
        """Start a batch of due deliveries. Returns True when there may be more to start."""
        if self._places.free <= 0:
            return False
        room = min(_BATCH, max(1, self._places.free // 2))  # after which it is known again who has too many
        now_ms = self._clock.steady_ms()
        claiming = asyncio.create_task(self._claim(room))
        try:
            messages = await asyncio.shield(claiming)
        except asyncio.CancelledError:
            # They are leased, or will be in a moment: give them back, so that they need not wait for the lease to end.
            await asyncio.gather(*[self._record(message, _NOT_STARTED) for message in await claiming])
            raise
        for message in messages:
            self._start(message, self._places.take(message), now_ms)
        return len(messages) >= room

    def _start(self, message: LeasedMessage, place: Place, leased_at_ms: int) -> None:
        """Start the delivery of a message that this process has leased."""

        def end(task: asyncio.Task[None]) -> None:
            del self._running[task]
            place.give_back()
            if self._is_stopping:
                self.wake()  # it may have been the last
            if not task.cancelled() and (problem := task.exception()) is not None:
                _log.error("webhook delivery of %s raised an exception", message.id, exc_info=problem)

        delivery = self._deliver(message, place, leased_at_ms)
        task = asyncio.create_task(delivery, name=message.id, context=Context())  # it outlives the one that starts it
        self._running[task] = message, place
        task.add_done_callback(end)

    async def _renew_leases(self) -> None:
        """Extend the leases of all messages that are being delivered, if it is time for that."""
        if not self._running or self._clock.monotonic() < self._renew_at:
            return
        self._renew_at = self._clock.monotonic() + self._lease_seconds * _RENEWAL_PART
        running = [message for message, _ in self._running.values()]
        leases = msgspec.json.encode([(message.id, message.lease_token) for message in running]).decode()
        until_ms = self._clock.steady_ms() + self._lease_ms
        await self._store.write(lambda tx: tx.run("renew_message_leases", leases=leases, until_ms=until_ms))

    async def _claim(self, limit: int) -> list[LeasedMessage]:
        now_ms = self._clock.steady_ms()
        values = {
            "now_ms": now_ms,
            "until_ms": now_ms + self._lease_ms,
            "busy_hosts": msgspec.json.encode(self._places.busy_hosts).decode(),
            "busy_orgs": msgspec.json.encode(self._places.busy_orgs).decode(),
            "limit": limit,
        }

        async def work(tx: Transaction) -> list[Row]:
            await tx.run("make_far_messages_due", now_ms=now_ms, far_ms=now_ms + self._longest_wait_ms)
            return await tx.all("claim_messages", **values)

        return [LeasedMessage(**row) for row in await self._store.write(work)]

    # ------------------------------------------------------------------------------------------------------ delivering

    async def _deliver(self, message: LeasedMessage, place: Place, leased_at_ms: int) -> None:
        """Send a message and record the result. Give it back if this process stops, or much of the lease is over."""
        if self._is_stopping or self._clock.steady_ms() > leased_at_ms + self._lease_ms * _LATE_PART:
            await self._record(message, _NOT_STARTED)
            return
        started_at_ms = self._clock.now_ms()
        try:
            result = await self._sender.send(message)
        except asyncio.CancelledError:
            with suppress(StorageUnavailable):
                await self._record(message, _INTERRUPTED, started_at_ms)
            raise
        finally:
            place.end_sending()
        failpoint("hook.sent")
        if result.delivered:
            failpoint("hook.after_2xx")
        if result.counts:
            self._places.add_one()
        elif result.short_of_places:
            self._places.halve()
        # A lost result would deliver the message again, so wait for the database while the lease lasts.
        give_up_at = self._clock.monotonic() + self._lease_seconds * _RECORDING_PART
        await retry_while_unavailable(
            self._clock,
            lambda: self._record(message, result, started_at_ms),
            gives_up=lambda: self._clock.monotonic() >= give_up_at,
            message_id=message.id,
        )
        failpoint("hook.between")

    async def _record(self, message: LeasedMessage, result: DeliveryResult, started_at_ms: int | None = None) -> None:
        """End the message or schedule its next delivery. Changes nothing when the lease has passed on.

        Without a time at which it was started, nothing was sent.
        """
        text = result.text[:_RESULT_CHARS_MAX]
        values: Row = {"id": message.id, "lease_token": message.lease_token, "result": text}
        deliveries = message.deliveries + result.counts
        if result.delivered or not result.may_retry or deliveries > len(self._delays):
            state = "delivered" if result.delivered else "exhausted"
            change = "end_message"
            values |= {"state": state, "deliveries": deliveries, "at_ms": self._clock.now_ms()}
        else:
            seconds = self._delays[deliveries - 1] if result.counts else _LOCAL_PAUSE_SECONDS
            wait_ms = seconds * 1000 * (1 + random.uniform(0, _JITTER))  # noqa: S311 (spreads load, hides nothing)
            change = "postpone_message"
            values |= {"deliveries": deliveries, "next_at_ms": self._clock.steady_ms() + round(wait_ms)}
        delivery: Row | None = None
        if started_at_ms is not None:
            delivery = {
                "message_id": message.id,
                "number": message.lease_token,
                "started_at_ms": started_at_ms,
                "ended_at_ms": self._clock.now_ms(),
                "http_status": result.status,
                "result": text,
            }
        is_recorded = await self._changes.add(MessageChange(change, values, delivery), message.org_id)
        lost = "" if is_recorded else " (not recorded: the lease was lost)"
        _log.info("webhook %s, delivery %d: %s%s", message.id, deliveries, result.text, lost)

    # ------------------------------------------------------------------------------------------------------- operators

    async def redeliver(self, message_id: str, org_id: OrgId | None = None) -> None:
        """Send a message now, with the same id and body; without `org_id`, of anyone.

        The deliveries of one that has ended start over; of one that waits, the next one is made at once. Raises
        NotFound for an unknown message and Conflict for one that is being delivered.
        """

        async def work(tx: Transaction, note: Note) -> int:
            values = {"id": message_id, "org_id": org_id}
            sent = await tx.run("requeue_message", **values) or await tx.run("send_waiting_message_now", **values)
            if sent:
                note(Act("message.redelivered", message_id, None if org_id == OPERATOR else org_id))
            return sent

        if not await write_audited(self._store, self._clock.now_ms(), work):
            row = await self._store.one("get_message", id=message_id)
            if row is None or org_id not in (None, row["org_id"]):
                raise NotFound(f"No such message: {message_id}.")
            raise Conflict(f"{message_id} is being delivered right now.", should_retry=False)
        self.wake()

    async def redeliver_exhausted(self, org_id: OrgId | None = None) -> int:
        """Start the deliveries of all exhausted messages over; without `org_id`, of everyone. Returns their number."""
        total = 0

        async def work(tx: Transaction, note: Note) -> int:
            count = await tx.run("requeue_exhausted_messages", org_id=org_id, limit=_REQUEUED_AT_ONCE)
            if count:
                note(Act("messages.redelivered", "exhausted", org_id, after={"count": count}))
            return count

        while True:
            count = await write_audited(self._store, self._clock.now_ms(), work)
            total += count
            if count < _REQUEUED_AT_ONCE:
                break
        self.wake()
        return total
