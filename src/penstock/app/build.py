"""Build a gateway from its settings."""

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import structlog

from penstock import providers
from penstock.accounts.acceptances import Acceptances
from penstock.accounts.alerts import Alerts
from penstock.accounts.balances import Balances
from penstock.accounts.chat_reservations import ChatReservations
from penstock.accounts.chat_settlement import ChatSettlement
from penstock.accounts.generation_ends import GenerationEnds
from penstock.accounts.keys import Keys
from penstock.accounts.labels import LabelValues
from penstock.accounts.requests import Requests
from penstock.accounts.unsettled import UnsettledMoney
from penstock.accounts.usage import UsageReports
from penstock.app.opening import open_store_and_vault
from penstock.chat.judge import ask_model
from penstock.clock import Clock
from penstock.destinations.destinations import open_destinations
from penstock.environment import ENVIRONMENT
from penstock.gateway import Gateway
from penstock.guards.guards import Guards
from penstock.guards.verdict_counts import VerdictCounts
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
from penstock.models.account_voices import AccountVoices
from penstock.models.catalog import Catalog
from penstock.models.health import Health
from penstock.models.live_models import LiveModels
from penstock.models.performance import PerformanceReader
from penstock.models.routing import Routing
from penstock.models.server_models import ServerModels
from penstock.models.vendor_accounts import VendorAccounts
from penstock.net.client import HttpClient
from penstock.people.opening import open_people
from penstock.provenance import sealer
from penstock.provenance.opening import open_signing
from penstock.provenance.policy import operators_policy
from penstock.recordings.delays import Delays
from penstock.recordings.recordings import Recordings
from penstock.settings import Settings
from penstock.speech.file import SpeechFile
from penstock.store.database_time import describe_difference, follow_database_time
from penstock.store.probe import WriteProbe
from penstock.telemetry.logs import protections_log
from penstock.telemetry.metrics import Metrics
from penstock.telemetry.trace_export import open_tracing
from penstock.transcription.file import TRANSCRIPT_MAKERS
from penstock.upstream import local
from penstock.upstream.drilled_client import DrilledUpstream
from penstock.values import new_id
from penstock.webhooks.deliveries import Deliveries
from penstock.webhooks.events import WebhookSecrets
from penstock.webhooks.sender import Sender

log = structlog.get_logger()
_ABANDONED_SECONDS = 86_400.0  # where other processes write too, an unfinished file of this age is abandoned


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
        keys = Keys(store, vault, clock)
        people = await open_people(settings, environ, http_client, store, keys, vault, clock)
        jobs = Jobs(store, clock, settings)
        chat_reservations = ChatReservations(store, clock, new_id("prc", clock.now_ms()))
        chat_settlement = ChatSettlement(store, clock, chat_reservations)
        sender = Sender(store, http_client, vault, clock, settings, tracing)
        verdict_counts = VerdictCounts(store, clock)
        deliveries = Deliveries(store, sender, clock, settings)
        gateway = Gateway(
            settings=settings,
            clock=clock,
            started_ms=clock.now_ms(),
            store=store,
            vault=vault,
            keys=keys,
            own_keys=people.own_keys,
            sessions=people.sessions,
            users=people.users,
            invitations=people.invitations,
            sign_in=people.sign_in,
            requests=Requests(store, clock, chat_settlement.catch_up),
            label_values=LabelValues(store, clock),
            usage=UsageReports(store, chat_settlement.catch_up),
            balances=Balances(store, clock, chat_settlement.catch_up),
            alerts=Alerts(store, clock, settings, deliveries.wake),
            catalog=catalog,
            health=health,
            routing=Routing(catalog, health.is_healthy, PerformanceReader(store, clock).read, accounts.expand),
            vendor_accounts=accounts,
            upstream=upstream,
            server_models=ServerModels(catalog, upstream, clock),
            account_voices=AccountVoices(upstream, clock),
            live_models=live_models,
            sealer=seals,
            guards=Guards(settings, http_client, WebhookSecrets(store, vault, clock), clock, metrics, verdict_counts),
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
            output_makers={"speech": SpeechFile, **TRANSCRIPT_MAKERS},
            write_probe=WriteProbe(store, clock),
            metrics=metrics,
            tracing=tracing,
        )
        gateway.guards.ask_model = partial(ask_model, gateway)
        yield gateway


def _log_shutdowns(catalog: Catalog, clock: Clock) -> None:
    """Warn of models that a provider in use stops serving within a month, or has stopped serving."""
    today = datetime.fromtimestamp(clock.now_ms() / 1000, UTC).date()
    for day, provider, model in shutdowns.soon(catalog.providers.active.values(), today):
        log.warning("a provider shuts a model down", provider=provider, model=model, shutdown_date=day)
