"""Do what a gateway does beside its calls: jobs, webhooks and what is due from time to time."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from typing import Any

import structlog

from penstock.accounts.chat_leases import ChatLeases, release_abandoned
from penstock.audit_log import HEAD_SECONDS, log_head
from penstock.batches import intake, uploads
from penstock.batches.runner import BatchRunner
from penstock.event_loop import cancel_and_wait
from penstock.gateway import Gateway
from penstock.generation_jobs import orphans
from penstock.generation_jobs.run import run_generation
from penstock.generations import payloads
from penstock.guards import verdict_counts
from penstock.models.vendor_accounts import REFRESH_SECONDS, SHARE_SECONDS
from penstock.store.base import Row, StorageUnavailable
from penstock.trials.intake import delete_left

log = structlog.get_logger()
_SWEEP_SECONDS = 30.0
_REMOVE_SECONDS = 2.0  # where no payloads are to be stored
_STRAYS_SECONDS = 3600.0


@asynccontextmanager
async def run_background_work(gateway: Gateway, *, sweeps: bool = True) -> AsyncIterator[None]:
    """Run accepted generations while this is open; as a worker also resume unfinished ones, deliver webhooks and, if it
    `sweeps`, delete what has expired.
    """
    gateway.jobs.run_with(partial(run_generation, gateway))
    async with AsyncExitStack() as stack:
        process_id, seconds = gateway.chat_reservations.process_id, gateway.settings.lease_seconds
        leases = ChatLeases(gateway.store, gateway.clock, process_id, seconds)
        await leases.renew()
        stack.push_async_callback(leases.give_back)
        stack.push_async_callback(gateway.chat_settlement.stop)
        gateway.chat_settlement.start()
        if gateway.settings.worker:
            for part in (_deliver_webhooks(gateway), _run_jobs(gateway), BatchRunner(gateway).running()):
                await stack.enter_async_context(part)
        else:
            stack.push_async_callback(gateway.jobs.stop)
        tasks = [asyncio.create_task(work, name=name) for name, work in _periodic_work(gateway, sweeps).items()]
        stack.push_async_callback(_write_last, gateway.guards.counts)
        tasks.append(asyncio.create_task(leases.run(), name="renew lease of chats"))
        try:
            yield
        finally:
            await cancel_and_wait(tasks)


def _periodic_work(gateway: Gateway, sweeps: bool) -> dict[str, Coroutine[Any, Any, None]]:
    """Coroutines that repeat their work for ever, by name."""
    work: dict[str, Coroutine[Any, Any, None]] = {"renew leases": gateway.jobs.renew_forever()}
    work["refresh accounts"] = _repeat(gateway, gateway.vendor_accounts.refresh, REFRESH_SECONDS)
    work["refresh destinations"] = _repeat(gateway, gateway.destinations.refresh, REFRESH_SECONDS)
    work["write verdicts of guards"] = _repeat(gateway, gateway.guards.counts.write, verdict_counts.WRITE_SECONDS)
    if gateway.store.dialect == "postgres":
        share = partial(gateway.vendor_accounts.share_use, gateway.chat_reservations.process_id)
        work["share use of accounts"] = _repeat(gateway, share, SHARE_SECONDS)
    work["log the head of the audit log"] = _repeat(gateway, partial(log_head, gateway.store), HEAD_SECONDS)
    if gateway.settings.worker and sweeps:
        work["release abandoned chats"] = _repeat(gateway, partial(_release_abandoned_chats, gateway), _STRAYS_SECONDS)
        pause = _REMOVE_SECONDS if gateway.settings.payloads == "none" else _SWEEP_SECONDS
        work["remove expired payloads"] = _repeat(gateway, partial(payloads.delete_expired, gateway), pause)
        work["delete old batches"] = _repeat(gateway, partial(intake.delete_old, gateway), _STRAYS_SECONDS)
        work["delete old trials"] = _repeat(gateway, partial(delete_left, gateway), _STRAYS_SECONDS)
        work["delete expired uploads"] = _repeat(gateway, partial(uploads.delete_expired, gateway), _STRAYS_SECONDS)
        work["delete old verdicts of guards"] = _repeat(gateway, gateway.guards.counts.delete_old, _STRAYS_SECONDS)
        work["erase drained accounts"] = _repeat(gateway, gateway.vendor_accounts.erase_drained, _SWEEP_SECONDS)
        work["check orphans"] = _repeat(gateway, partial(orphans.check_due, gateway), _SWEEP_SECONDS)
        work["delete expired media"] = _repeat(gateway, gateway.media.delete_expired, _SWEEP_SECONDS)
        if gateway.alerts.is_on:
            work["look for alerts"] = _repeat(gateway, gateway.alerts.check, _SWEEP_SECONDS)
        work["delete stray files"] = _repeat(gateway, gateway.media.delete_strays, _STRAYS_SECONDS)
    return work


@asynccontextmanager
async def _deliver_webhooks(gateway: Gateway) -> AsyncIterator[None]:
    """Deliver webhook messages; at the end wait for deliveries under way, up to the drain time."""
    if gateway.store.dialect == "sqlite":
        await gateway.deliveries.release_leases()
    deliveries = asyncio.create_task(gateway.deliveries.run(), name="deliver webhooks")
    try:
        yield
    finally:
        gateway.deliveries.stop()
        with suppress(TimeoutError):
            await asyncio.wait_for(deliveries, gateway.settings.drain_seconds)


@asynccontextmanager
async def _run_jobs(gateway: Gateway) -> AsyncIterator[None]:
    """Resume unfinished generations: all of them on SQLite, where no other process lives, while calls are served
    already; in a cluster through the queue.
    """
    if gateway.store.dialect == "postgres":
        from penstock.jobs.cluster import Cluster  # imported here because its libraries are an extra

        cluster = Cluster(gateway.jobs, gateway.store, gateway.clock, gateway.settings)
        gateway.jobs.rescue_with(cluster.rescue)
        await cluster.start()
        try:
            yield
        finally:
            await cluster.stop()
        return
    left = await gateway.jobs.list_left()
    resuming = asyncio.create_task(_resume(gateway, left), name="resume generations")
    try:
        yield
    finally:
        await gateway.jobs.stop()
        await cancel_and_wait([resuming])


async def _resume(gateway: Gateway, left: list[Row]) -> None:
    try:
        if resumed := await gateway.jobs.resume_left(left):
            log.info("resumed", generations=resumed)
    except Exception:
        log.exception("generations not resumed")  # they are when the leases of the last process have expired


async def _write_last(counts: verdict_counts.VerdictCounts) -> None:
    with suppress(StorageUnavailable):
        await counts.write()


async def _release_abandoned_chats(gateway: Gateway) -> int:
    """Release the holds of chat calls whose process is gone: those from before this process on SQLite, where it is the
    only one, else those older than any call can be.
    """
    longest = 2 * gateway.settings.stream_seconds + gateway.settings.upstream_seconds
    is_alone = gateway.store.dialect == "sqlite"
    before_ms = gateway.started_ms if is_alone else gateway.clock.now_ms() - int(longest * 1000)
    if found := await release_abandoned(gateway.store, gateway.clock, before_ms):
        log.warning("released the holds of interrupted chat calls", calls=found)
    return found


async def _repeat(gateway: Gateway, work: Callable[[], Awaitable[int | None]], seconds: float) -> None:
    while True:
        try:
            await work()
        except Exception:
            log.exception("background work failed")
        await gateway.clock.sleep(seconds)
