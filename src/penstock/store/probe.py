"""Find out whether the database can be written, and wait for no answer longer than a health check does."""

import asyncio
import secrets
from collections.abc import Awaitable, Callable

import structlog

from penstock.clock import Clock
from penstock.errors import StorageUnavailable
from penstock.store.base import Store

log = structlog.get_logger()
_FRESH_SECONDS = 2.0
_WAIT_SECONDS = 3.0
_FULL_SECONDS = 10.0
_VALUE_BYTES = 4096  # written as twice as many digits, for which Postgres needs a page or more


class Probe:
    """Tries something when asked, at most every two seconds and once at a time.

    A try that takes longer than three seconds counts as failed while it goes on. It is not cancelled, because its end
    would have to be waited for too.
    """

    def __init__(self, clock: Clock, attempt: Callable[[], Awaitable[bool]]) -> None:
        """`attempt` returns whether it succeeded, or raises StorageUnavailable."""
        self._clock = clock
        self._attempt = attempt
        self._running: asyncio.Task[None] | None = None
        self._started_at = float("-inf")
        self._succeeded = False

    async def succeeds(self) -> bool:
        """Whether an attempt succeeds within three seconds; what was found is returned for two seconds."""
        running = self._running
        if running is None:
            if self._clock.monotonic() - self._started_at < _FRESH_SECONDS:
                return self._succeeded
            self._started_at = self._clock.monotonic()
            running = self._running = asyncio.create_task(self._try(), name="probe")
        left = self._started_at + _WAIT_SECONDS - self._clock.monotonic()
        await asyncio.wait([running], timeout=max(0.0, left))
        return running.done() and self._succeeded

    def forget(self) -> None:
        """Ask again next time, whatever was found."""
        self._started_at = float("-inf") if self._running is None else self._started_at

    async def _try(self) -> None:
        self._succeeded = False
        try:
            self._succeeded = await self._attempt()
        except StorageUnavailable:
            pass
        except Exception:
            log.exception("background work failed")
        finally:
            self._running = None


class WriteProbe:
    """Tells whether calls can be stored: the first start is complete, and the database takes a page of new data.

    A database whose disk is full may still find room for that. So it also counts as full for ten seconds after any
    write has failed for want of space.
    """

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._probe = Probe(clock, self._write)
        self._is_set_up = False
        self._writes_without_space = store.timing.without_space
        self._full_until = float("-inf")

    async def succeeds(self) -> bool:
        """Whether calls can be stored, by an answer that is two seconds old at most and takes three at most."""
        if not self._is_set_up:  # that changes once, and may do so at any moment
            self._probe.forget()
        succeeded = await self._probe.succeeds()
        if self._store.timing.without_space != self._writes_without_space:
            self._writes_without_space = self._store.timing.without_space
            self._full_until = self._clock.monotonic() + _FULL_SECONDS
        return succeeded and self._clock.monotonic() >= self._full_until

    async def _write(self) -> bool:
        if not self._is_set_up and await self._store.one("get_fact", name="first_org") is None:
            return False
        self._is_set_up = True
        value = secrets.token_hex(_VALUE_BYTES)
        await self._store.write(lambda tx: tx.run("set_fact", name="last_write", value=value))
        return True
