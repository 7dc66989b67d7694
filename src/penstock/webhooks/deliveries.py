"""Deliver messages on schedule, to whoever answers, hangs or lies."""

import asyncio
import logging
import random
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import msgspec

from penstock.clock import Clock
from penstock.errors import Conflict, InvalidRequest, NotFound, StorageUnavailable
from penstock.failpoints import failpoint
from penstock.net.client import HttpClient
from penstock.net.errors import MaybeSent, NotSent
from penstock.net.guard import EgressRules, check_webhook_url
from penstock.settings import Settings
from penstock.store.base import Row, Store, Transaction
from penstock.vault import Vault
from penstock.webhooks.events import WebhookSecrets, sign

_log = logging.getLogger(__name__)

# A receiver that hangs holds a slot for as long as an attempt may take, so there are many, and no host may hold more
# than a few: the others' news is not late for it.
_AT_ONCE = 2000
_AT_ONCE_PER_HOST = 128
_AT_ONCE_WHEN_SHORT = 8
_BATCH = 128
_BUSY_PAUSE_SECONDS = 0.05
_LOOK_SECONDS = 1.0  # how late we may learn of a message that another process queued
_JITTER = 0.18  # up to a fifth is promised; the rest is for being late
_LOCAL_PAUSE_SECONDS = 1.0
_LATE_SECONDS = 0.25  # the wire keeps the time of an attempt; this is for when it is held up itself
_LEASE_EXTRA = 0.5  # of an attempt's time and beyond it, to write down how it went
_UNRECORDED_MAX = 10  # attempts in a row of which nobody knows how they went; then it may be the message that kills
_CLOCKS_APART_MS = 5 * 60 * 1000  # how much the clocks of our machines may differ
_MOST_RESULT_CHARS = 200


@dataclass(frozen=True, slots=True)
class Claim:
    """A message that is ours to attempt until its lease ends."""

    id: str
    org_id: str
    url: str
    body: bytes
    deliveries: int  # attempts whose outcome was written down
    unrecorded: int  # attempts since the last of those, this one included; the others ended with their processes
    lease_token: int

    @property
    def host(self) -> str:
        return self.url.split("/", 3)[2]


@dataclass(frozen=True, slots=True)
class Outcome:
    """How an attempt went, in words for operators."""

    result: str
    delivered: bool = False
    counts: bool = True  # False when that says nothing about the receiver
    known: bool = True  # False when it may have arrived or not


_NOT_BEGUN = Outcome("stopped before it was sent", counts=False)
_BROKEN_OFF = Outcome("interrupted", counts=False, known=False)


class Deliveries:
    """Sends what is due. Any number of processes may run one of these on the same database.

    An attempt counts once its outcome is written down. One that ended with its process, before or after anything was
    sent, is made again when its lease ends: a receiver may get a message more often than the schedule says, and no
    series of crashes uses the schedule up. Only so many in a row, though, in case it is the message that kills.
    """

    def __init__(self, store: Store, wire: HttpClient, vault: Vault, clock: Clock, settings: Settings) -> None:
        self._store, self._wire, self._clock = store, wire, clock
        self._secrets = WebhookSecrets(store, vault, clock)
        self._egress = EgressRules(settings.egress_allow_cidrs, settings.egress_allow_hosts)
        self._delays = settings.webhook_delays_seconds
        self._timeout_seconds = settings.webhook_timeout_seconds
        self._lease_ms = int(self._timeout_seconds * (1 + _LEASE_EXTRA) * 1000)
        self._longest_ms = self._lease_ms + int(max(self._delays, default=0.0) * 2000) + _CLOCKS_APART_MS
        self._running: set[asyncio.Task[None]] = set()
        self._crowds: Counter[str] = Counter()  # how many talk to each host
        self._at_once = _AT_ONCE
        self._stirred = asyncio.Event()
        self._stopping = False

    def wake(self) -> None:
        """Look at once: a message was committed, or there is room again."""
        self._stirred.set()

    def stop(self) -> None:
        """Begin nothing more; `run` returns when the attempts under way have ended."""
        self._stopping = True
        self.wake()

    async def free(self) -> None:
        """No other process can be alive: what the last one died with need not wait, unless that happens again."""
        await self._store.write(lambda tx: tx.run("make_leased_messages_due", now_ms=self._clock.steady_ms()))

    async def run(self) -> None:
        """Deliver until stopped, or until cancelled, which breaks off what is under way."""
        try:
            while not self._stopping:
                self._stirred.clear()
                try:
                    while await self._start_due():
                        pass
                    pause = await self._pause_seconds()
                except StorageUnavailable as problem:
                    _log.warning("webhook messages cannot be read: %s", problem)
                    pause = _LOOK_SECONDS
                if self._busy_hosts:  # whose messages are all looked at each time
                    await asyncio.sleep(_BUSY_PAUSE_SECONDS)
                await self._clock.wait(self._stirred, pause)
            await self._drained()
        finally:
            for task in self._running:
                task.cancel()
            await self._drained()

    async def deliver_due(self) -> None:
        """One round: attempt whatever is due and wait for the results."""
        while await self._start_due() or self._running:
            await self._drained()

    async def _drained(self) -> None:
        while self._running:
            await asyncio.wait(self._running)

    async def _pause_seconds(self) -> float:
        now_ms = self._clock.steady_ms()
        row = await self._store.one("get_next_message_due", now_ms=now_ms)
        due_ms = row["at_ms"] if row is not None and row["at_ms"] is not None else now_ms + 1000 * _LOOK_SECONDS
        return min((due_ms - now_ms) / 1000, _LOOK_SECONDS)

    # ------------------------------------------------------------------------------------------------------- claiming

    async def _start_due(self) -> bool:
        """Start a batch of what is due; whether there may be more to start."""
        room = min(_BATCH, self._at_once - len(self._running))
        if room <= 0:
            return False
        claiming = asyncio.create_task(self._claim(room))
        try:
            claims = await asyncio.shield(claiming)
        except asyncio.CancelledError:
            # They are leased by now, or will be, and nobody should have to wait for that.
            await asyncio.gather(*[self._record(claim, _NOT_BEGUN) for claim in await claiming])
            raise
        for claim in claims:
            task = asyncio.create_task(self._attempt(claim), name=claim.id)
            self._running.add(task)
            task.add_done_callback(self._ended)
        return len(claims) == room

    def _ended(self, task: asyncio.Task[None]) -> None:
        if len(self._running) >= self._at_once:
            self.wake()  # somebody may have waited for this place
        self._running.remove(task)
        if not task.cancelled() and (problem := task.exception()) is not None:
            _log.error("webhook attempt %s broke", task.get_name(), exc_info=problem)

    @contextmanager
    def _in_crowd(self, host: str) -> Iterator[None]:
        """Until the host has answered; how long it takes to write that down is not its fault."""
        self._crowds[host] += 1
        try:
            yield
        finally:
            self._crowds[host] -= 1
            if self._crowds[host] == _AT_ONCE_PER_HOST - 1:
                self.wake()  # somebody may have waited to talk to it
            if not self._crowds[host]:
                del self._crowds[host]

    @property
    def _busy_hosts(self) -> list[str]:
        return [host for host, count in self._crowds.items() if count >= _AT_ONCE_PER_HOST]

    async def _claim(self, limit: int) -> list[Claim]:
        now_ms = self._clock.steady_ms()
        values = {"now_ms": now_ms, "until_ms": now_ms + self._lease_ms, "limit": limit}
        busy = msgspec.json.encode(self._busy_hosts).decode()

        async def work(tx: Transaction) -> list[Row]:
            await tx.run("make_far_messages_due", now_ms=now_ms, far_ms=now_ms + self._longest_ms)
            return await tx.all("claim_messages", busy_hosts=busy, **values)

        return [Claim(**row) for row in await self._store.write(work)]

    # ------------------------------------------------------------------------------------------------------ attempting

    async def _attempt(self, claim: Claim) -> None:
        try:
            with self._in_crowd(claim.host):
                outcome = await self._send(claim)
        except asyncio.CancelledError:
            with suppress(StorageUnavailable):
                await self._record(claim, _BROKEN_OFF)
            raise
        failpoint("hook.sent")
        if outcome.delivered:
            failpoint("hook.after_2xx")
        if outcome.counts:
            self._at_once = min(_AT_ONCE, self._at_once + 1)
        else:
            self._at_once = max(_AT_ONCE_WHEN_SHORT, self._at_once // 2)
        await self._record_patiently(claim, outcome)
        failpoint("hook.between")

    async def _send(self, claim: Claim) -> Outcome:
        if claim.unrecorded > _UNRECORDED_MAX:
            return _BROKEN_OFF
        try:
            url = check_webhook_url(claim.url, self._egress)
            headers = await self._headers(claim)
            async with asyncio.timeout(self._timeout_seconds + _LATE_SECONDS):
                status = await self._wire.post_guarded(
                    url, claim.body, headers, timeout_seconds=self._timeout_seconds, egress=self._egress
                )
        except InvalidRequest:
            return Outcome("the address is refused")
        except TimeoutError:
            return Outcome("timed out")
        except StorageUnavailable as problem:
            return Outcome(str(problem), counts=False)
        except NotSent as problem:
            return Outcome(str(problem), counts=not problem.local)
        except MaybeSent as problem:
            return Outcome(str(problem))
        return Outcome(f"status {status}", delivered=200 <= status < 300)

    async def _headers(self, claim: Claim) -> dict[str, str]:
        timestamp = self._clock.now_ms() // 1000
        signatures = [
            sign(secret, claim.id, timestamp, claim.body) for secret in await self._secrets.signing(claim.org_id)
        ]
        return {
            "content-type": "application/json",
            "webhook-id": claim.id,
            "webhook-timestamp": str(timestamp),
            "webhook-signature": " ".join(signatures),
        }

    async def _record_patiently(self, claim: Claim, outcome: Outcome) -> None:
        """Forgetting a 2xx would send the message again, so a database that is away is waited for while we may."""
        until = self._clock.monotonic() + self._timeout_seconds * _LEASE_EXTRA / 2
        while True:
            try:
                return await self._record(claim, outcome)
            except StorageUnavailable:
                if self._clock.monotonic() >= until:
                    raise
            await self._clock.sleep(_LOOK_SECONDS)

    async def _record(self, claim: Claim, outcome: Outcome) -> None:
        """Write down how it went, unless the lease has passed to somebody else in the meantime."""
        held = {"id": claim.id, "lease_token": claim.lease_token, "result": outcome.result[:_MOST_RESULT_CHARS]}
        deliveries = claim.deliveries + outcome.counts
        if outcome.delivered or deliveries > len(self._delays) or claim.unrecorded > _UNRECORDED_MAX:
            state = "delivered" if outcome.delivered else "exhausted"
            ended = {"state": state, "deliveries": deliveries, "at_ms": self._clock.now_ms(), **held}
            written = await self._store.write(lambda tx: tx.run("end_message", **ended))
        else:
            seconds = self._delays[deliveries - 1] if outcome.counts else _LOCAL_PAUSE_SECONDS
            wait_ms = seconds * 1000 * (1 + random.uniform(0, _JITTER))  # noqa: S311 (spreads load, hides nothing)
            unrecorded, next_at_ms = 0 if outcome.known else claim.unrecorded, self._clock.steady_ms() + round(wait_ms)
            moved = {"deliveries": deliveries, "unrecorded": unrecorded, "next_at_ms": next_at_ms, **held}
            written = await self._store.write(lambda tx: tx.run("postpone_message", **moved))
        _log.info("webhook %s, attempt %d: %s%s", claim.id, deliveries, outcome.result, "" if written else " (fenced)")

    # ------------------------------------------------------------------------------------------------------- operators

    async def list_messages(self, state: str | None = None, limit: int = 50) -> list[Row]:
        return await self._store.slow("list_messages", state=state, limit=limit)

    async def redeliver(self, message_id: str) -> None:
        """Send an ended message again: the same id and bytes, and the whole schedule if need be."""
        if not await self._store.write(lambda tx: tx.run("requeue_message", id=message_id)):
            if await self._store.one("get_message", id=message_id) is None:
                raise NotFound(f"No such message: {message_id}.")
            raise Conflict(f"{message_id} is still being delivered.")
        self.wake()
