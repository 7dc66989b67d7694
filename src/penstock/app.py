"""Build a gateway from its settings, and run its background work."""

import asyncio
import fcntl
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import structlog

from penstock import providers
from penstock.accounts.acceptances import Acceptances
from penstock.accounts.alerts import Alerts
from penstock.accounts.balances import Balances
from penstock.accounts.chat_leases import ChatLeases, release_abandoned
from penstock.accounts.chat_reservations import ChatReservations
from penstock.accounts.chat_settlement import ChatSettlement
from penstock.accounts.generation_ends import GenerationEnds
from penstock.accounts.key_records import ADMIN, OPERATOR
from penstock.accounts.keys import Keys
from penstock.accounts.labels import LabelValues
from penstock.accounts.orgs import add_first_org
from penstock.accounts.requests import Requests
from penstock.accounts.unsettled import UnsettledMoney
from penstock.accounts.usage import UsageReports
from penstock.audit_log import HEAD_SECONDS, Note, log_head, write_audited
from penstock.batches import intake, uploads
from penstock.batches.runner import BatchRunner
from penstock.clock import Clock
from penstock.destinations.destinations import open_destinations
from penstock.environment import ENVIRONMENT
from penstock.event_loop import cancel_and_wait
from penstock.gateway import Gateway
from penstock.generation_jobs import orphans
from penstock.generation_jobs.run import run_generation
from penstock.generations import payloads
from penstock.guards.guards import Guards
from penstock.imaging.scratch import scratch_folder
from penstock.imaging.workers import WorkerPool
from penstock.jobs.callbacks import Callbacks
from penstock.jobs.endings import Endings
from penstock.jobs.leases import Jobs
from penstock.jobs.steps import Steps
from penstock.media.files import MediaFiles
from penstock.media.finishing import Finisher
from penstock.media.opening import open_storage
from penstock.media.quota import StorageQuota
from penstock.media.storage_writes import StorageWrites
from penstock.media.transfer import Transfer
from penstock.models import shutdowns
from penstock.models.catalog import Catalog
from penstock.models.health import Health
from penstock.models.live_models import LiveModels
from penstock.models.performance import PerformanceReader
from penstock.models.routing import Routing
from penstock.models.server_models import ServerModels
from penstock.models.vendor_accounts import REFRESH_SECONDS, SHARE_SECONDS, VendorAccounts
from penstock.net.client import HttpClient
from penstock.people.invitations import Invitations
from penstock.people.opening import open_sign_in
from penstock.people.sessions import Sessions
from penstock.people.users import Users
from penstock.provenance import sealer
from penstock.provenance.opening import open_signing
from penstock.provenance.policy import operators_policy
from penstock.recordings.delays import Delays
from penstock.recordings.recordings import Recordings
from penstock.settings import Settings
from penstock.speech.file import SpeechFile
from penstock.store.base import Row, Store, Transaction
from penstock.store.database_time import describe_difference, follow_database_time
from penstock.store.opening import open_store
from penstock.store.probe import WriteProbe
from penstock.telemetry.logs import protections_log
from penstock.telemetry.metrics import Metrics
from penstock.telemetry.trace_export import open_tracing
from penstock.trials.intake import delete_left
from penstock.upstream import local
from penstock.upstream.drilled_client import DrilledUpstream
from penstock.values import OrgId, nanos, new_id
from penstock.vault import Vault, open_vault
from penstock.webhooks.deliveries import Deliveries
from penstock.webhooks.events import WebhookSecrets
from penstock.webhooks.sender import Sender

log = structlog.get_logger()
_FINGERPRINT = "secret_fingerprint"
_SWEEP_SECONDS = 30.0
_REMOVE_SECONDS = 2.0  # where no payloads are to be stored
_STRAYS_SECONDS = 3600.0
_ABANDONED_SECONDS = 86_400.0  # where other processes write too, an unfinished file of this age is abandoned


@dataclass(frozen=True, slots=True)
class Welcome:
    """The first organization, and its key if this start created it: the key is shown once and stored nowhere."""

    org_id: OrgId
    key: str | None = field(repr=False)


@asynccontextmanager
async def open_store_and_vault(settings: Settings) -> AsyncIterator[tuple[Store, Vault]]:
    """Open the database and the secrets, which is all that most commands need.

    Raises SecretRefused if the database was written with another master secret; then no new one is created.
    """
    settings.data.mkdir(parents=True, exist_ok=True, mode=0o700)
    store = await open_store(settings)
    try:
        yield store, await _open_vault_of(store, settings)
    finally:
        await store.close()


async def _open_vault_of(store: Store, settings: Settings) -> Vault:
    """Open the vault whose secret the database was written with; on the first start, note which one that is."""
    fact = await store.one("get_fact", name=_FINGERPRINT)
    if fact is None:
        first = open_vault(settings).fingerprint
        await store.write(lambda tx: tx.run("add_fact", name=_FINGERPRINT, value=first))
        fact = await store.one("get_fact", name=_FINGERPRINT)  # another process may have been faster
    assert fact is not None, "this process or another has added it"
    return open_vault(settings, fingerprint=fact["value"])


@asynccontextmanager
async def build_gateway(
    settings: Settings, clock: Clock | None = None, environ: Mapping[str, str] = ENVIRONMENT
) -> AsyncIterator[Gateway]:
    """Build everything that serves requests; `run_background_work` starts the background work."""
    async with AsyncExitStack() as stack:
        tracing, clock = await stack.enter_async_context(open_tracing(environ)), clock or Clock()
        store, vault = await stack.enter_async_context(open_store_and_vault(settings))
        await follow_database_time(store, clock)
        if difference := describe_difference(store, clock):
            log.warning("clocks differ", found=difference)
        http_client = HttpClient(ca_file=Path(settings.ca_file) if settings.ca_file else None)
        stack.push_async_callback(http_client.close)
        catalog = Catalog(providers.discover(), settings, environ, clock)
        _log_shutdowns(catalog, clock)
        tasks = {**local.child_tasks(catalog.providers.known.values()), **sealer.TASKS}
        counts = ((settings.image_workers or None, False), (settings.sound_workers, True))
        report = protections_log()
        pools = [WorkerPool(n, tasks=tasks, has_spare=spare, report_protections=report) for n, spare in counts]
        pool, sound_pool = [await stack.enter_async_context(each) for each in pools]
        unfinished = stack.enter_context(scratch_folder(settings.data / "tmp"))
        local_servers = local.start_servers(catalog.providers.known.values(), pool, sound_pool)
        for server in local_servers.values():
            stack.push_async_callback(server.close)
        url_endpoint = settings.media_public_endpoint if settings.media_urls == "store" else None
        storage = open_storage(settings.media, settings.media_options, settings.data, url_endpoint=url_endpoint)
        storage_writes = StorageWrites(storage, clock)
        await storage.delete_unfinished(0 if store.dialect == "sqlite" else _ABANDONED_SECONDS)
        metrics = Metrics(catalog.providers.upstream_models())
        operators_policy(settings)  # raises if they cannot be met
        signing = open_signing(settings, vault, datetime.fromtimestamp(clock.now_ms() / 1000, UTC))
        seals = sealer.open_sealer(pool, clock, metrics, signing, http_client, settings)
        upstream = DrilledUpstream(http_client, local_servers, settings)
        live_models = LiveModels(catalog, upstream, store, clock, settings)
        stack.push_async_callback(live_models.close)
        health = Health(clock)
        accounts = VendorAccounts(store, vault, clock, catalog, settings)
        await accounts.refresh()
        jobs = Jobs(store, clock, settings)
        chat_reservations = ChatReservations(store, clock, new_id("prc", clock.now_ms()))
        chat_settlement = ChatSettlement(store, clock, chat_reservations)
        sender = Sender(store, http_client, vault, clock, settings, tracing)
        deliveries = Deliveries(store, sender, clock, settings)
        yield Gateway(
            settings=settings,
            clock=clock,
            started_ms=clock.now_ms(),
            store=store,
            vault=vault,
            keys=Keys(store, vault, clock),
            sessions=(sessions := Sessions(store, clock, settings.session_hours)),
            users=(users := Users(store, clock)),
            invitations=Invitations(store, clock),
            sign_in=await open_sign_in(settings, environ, http_client, users, sessions, vault, clock),
            requests=Requests(store, clock, chat_settlement.catch_up),
            label_values=LabelValues(store, clock),
            usage=UsageReports(store, chat_settlement.catch_up),
            balances=Balances(store, clock, chat_settlement.catch_up),
            alerts=Alerts(store, clock, settings, deliveries.wake),
            catalog=catalog,
            health=health,
            routing=Routing(catalog, health.is_healthy, PerformanceReader(store, clock).read, accounts.expand),
            accounts=accounts,
            upstream=upstream,
            server_models=ServerModels(catalog, upstream, clock),
            live_models=live_models,
            sealer=seals,
            guards=Guards(settings, http_client, WebhookSecrets(store, vault, clock), clock, metrics),
            media_transfer=Transfer(
                storage, storage_writes, pool, http_client, settings, unfinished, Finisher(pool, seals)
            ),
            storage_writes=storage_writes,
            media=MediaFiles(store, storage, vault, clock, pool),
            quota=StorageQuota(store, clock, settings.storage_bytes_per_org),
            jobs=jobs,
            endings=Endings(store, clock, jobs),
            callbacks=Callbacks(store, vault, clock, settings, jobs, catalog.providers.callback_secrets(environ)),
            webhook_secrets=WebhookSecrets(store, vault, clock),
            sender=sender,
            deliveries=deliveries,
            destinations=await open_destinations(store, vault, clock, http_client, settings),
            chat_reservations=chat_reservations,
            chat_settlement=chat_settlement,
            unsettled_money=UnsettledMoney(store, chat_settlement),
            acceptances=Acceptances(store, chat_reservations),
            generation_ends=GenerationEnds(store),
            steps=Steps(store),
            recordings=Recordings(store, storage, clock),
            delays=Delays(clock),
            worker_pool=pool,
            sound_pool=sound_pool,
            output_makers={"speech": SpeechFile},
            write_probe=WriteProbe(store, clock),
            metrics=metrics,
            tracing=tracing,
        )


def _log_shutdowns(catalog: Catalog, clock: Clock) -> None:
    """Warn of models that a provider in use stops serving within a month, or has stopped serving."""
    today = datetime.fromtimestamp(clock.now_ms() / 1000, UTC).date()
    for day, provider, model in shutdowns.soon(catalog.providers.active.values(), today):
        log.warning("a provider shuts a model down", provider=provider, model=model, shutdown_date=day)


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
        tasks.append(asyncio.create_task(leases.run(), name="renew lease of chats"))
        try:
            yield
        finally:
            await cancel_and_wait(tasks)


def _periodic_work(gateway: Gateway, sweeps: bool) -> dict[str, Coroutine[Any, Any, None]]:
    """Coroutines that repeat their work for ever, by name."""
    work: dict[str, Coroutine[Any, Any, None]] = {"renew leases": gateway.jobs.renew_forever()}
    work["refresh accounts"] = _repeat(gateway, gateway.accounts.refresh, REFRESH_SECONDS)
    work["refresh destinations"] = _repeat(gateway, gateway.destinations.refresh, REFRESH_SECONDS)
    if gateway.store.dialect == "postgres":
        share = partial(gateway.accounts.share_use, gateway.chat_reservations.process_id)
        work["share use of accounts"] = _repeat(gateway, share, SHARE_SECONDS)
    work["log the head of the audit log"] = _repeat(gateway, partial(log_head, gateway.store), HEAD_SECONDS)
    if gateway.settings.worker and sweeps:
        work["release abandoned chats"] = _repeat(gateway, partial(_release_abandoned_chats, gateway), _STRAYS_SECONDS)
        pause = _REMOVE_SECONDS if gateway.settings.payloads == "none" else _SWEEP_SECONDS
        work["remove expired payloads"] = _repeat(gateway, partial(payloads.delete_expired, gateway), pause)
        work["delete old batches"] = _repeat(gateway, partial(intake.delete_old, gateway), _STRAYS_SECONDS)
        work["delete old trials"] = _repeat(gateway, partial(delete_left, gateway), _STRAYS_SECONDS)
        work["delete expired uploads"] = _repeat(gateway, partial(uploads.delete_expired, gateway), _STRAYS_SECONDS)
        work["erase drained accounts"] = _repeat(gateway, gateway.accounts.erase_drained, _SWEEP_SECONDS)
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


async def ensure_first_org(store: Store, settings: Settings, clock: Clock) -> OrgId:
    """Return the default organization; create it with its starting credit if it does not exist."""
    now = clock.now_ms()
    org_id = OrgId(new_id("org", now))

    async def write(tx: Transaction, note: Note) -> None:
        if await tx.run("add_fact", name="first_org", value=org_id):
            await add_first_org(tx, note, org_id, settings.billing, nanos(settings.starting_credit_usd), now)

    row = await store.one("get_fact", name="first_org")
    if row is None:
        await write_audited(store, now, write)
        row = await store.one("get_fact", name="first_org")
    assert row is not None, "this process or another has added it"
    return OrgId(row["value"])


async def ensure_first_key(gateway: Gateway) -> Welcome:
    """Create the first organization, its credit and its first key for everything, if no start has done so yet."""
    org_id = await ensure_first_org(gateway.store, gateway.settings, gateway.clock)
    if await gateway.store.one("get_fact", name="first_key") is not None:
        return Welcome(org_id, None)
    created = await gateway.keys.create_key(org_id, name="first key", scopes=[ADMIN, OPERATOR])
    is_first = await gateway.store.write(lambda tx: tx.run("add_fact", name="first_key", value=created.id))
    if not is_first:  # another process of the cluster started at the same moment
        await gateway.keys.revoke_key(org_id, created.id)
    return Welcome(org_id, created.key if is_first else None)


async def ensure_terminal_key(settings: Settings, *, is_operator: bool = False) -> str:
    """Return the first organization's key for the command line; create it if there is none."""
    async with open_store_and_vault(settings) as (store, vault):
        org_id = await ensure_first_org(store, settings, Clock())
        return await Keys(store, vault, Clock()).ensure_terminal_key(org_id, is_operator=is_operator)


@contextmanager
def lock_data_folder(data: Path) -> Iterator[None]:
    """Lock a data folder for this process. Raises RuntimeError when another gateway runs on it."""
    data.mkdir(parents=True, exist_ok=True, mode=0o700)
    with (data / "penstock.lock").open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RuntimeError(f"another gateway is running on the data folder {data}") from None
        yield
