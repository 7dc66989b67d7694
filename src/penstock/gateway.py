"""The parts of a gateway, as one value."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from penstock.accounts.acceptances import Acceptances
from penstock.accounts.alerts import Alerts
from penstock.accounts.balances import Balances
from penstock.accounts.chat_reservations import ChatReservations
from penstock.accounts.chat_settlement import ChatSettlement
from penstock.accounts.generation_ends import GenerationEnds
from penstock.accounts.keys import Keys
from penstock.accounts.labels import LabelValues
from penstock.accounts.prices import Line
from penstock.accounts.requests import Requests
from penstock.accounts.unsettled import UnsettledMoney
from penstock.accounts.usage import UsageReports
from penstock.clock import Clock
from penstock.destinations.destinations import Destinations
from penstock.guards.guards import Guards
from penstock.imaging.workers import WorkerPool
from penstock.interrupts import Interrupts
from penstock.jobs.callbacks import Callbacks
from penstock.jobs.endings import Endings
from penstock.jobs.leases import Jobs
from penstock.jobs.steps import Steps
from penstock.media.files import MediaFiles
from penstock.media.quota import StorageQuota
from penstock.media.storage_writes import StorageWrites
from penstock.media.transfer import Transfer
from penstock.models.account_voices import AccountVoices
from penstock.models.catalog import Catalog
from penstock.models.health import Health
from penstock.models.live_models import LiveModels
from penstock.models.reasoning_rates import ReasoningRates
from penstock.models.routing import Routing
from penstock.models.server_models import ServerModels
from penstock.models.vendor_accounts import VendorAccounts
from penstock.people.invitations import Invitations
from penstock.people.own_keys import OwnKeys
from penstock.people.proxy_sign_in import ProxySignIn
from penstock.people.sessions import Sessions
from penstock.people.sign_in import SignIn
from penstock.people.users import Users
from penstock.provenance.sealer import Sealer
from penstock.recordings.delays import Delays
from penstock.recordings.recordings import Recordings
from penstock.schema import Request, StoredOutput
from penstock.settings import Settings
from penstock.store.base import Store
from penstock.store.probe import WriteProbe
from penstock.telemetry.metrics import Metrics
from penstock.telemetry.tracing import Tracing
from penstock.upstream.candidate import Candidate
from penstock.upstream.client import Upstream
from penstock.values import OrgId
from penstock.vault import Vault
from penstock.webhooks.deliveries import Deliveries
from penstock.webhooks.events import WebhookSecrets
from penstock.webhooks.sender import Sender


class OutputMaker(Protocol):
    """Has a provider make the output of one attempt, where that is more than a call and perhaps polls."""

    @property
    def lines(self) -> tuple[Line, ...]:
        """What the provider bills so far, line by line."""

    async def make(self, note_progress: Callable[[float], Awaitable[None]]) -> StoredOutput:
        """Make and store the output. Raises AttemptFailed, OutputNotStored or a Problem."""


# Makes it for a request, with the media id that its file is to have.
MakesOutputs = Callable[["Gateway", Candidate, Request, str, OrgId], OutputMaker]


@dataclass(slots=True, kw_only=True)
class Gateway:
    """Everything that endpoints and jobs work with; built once by `app`."""

    settings: Settings
    clock: Clock
    store: Store
    keys: Keys
    sessions: Sessions
    users: Users
    own_keys: OwnKeys
    invitations: Invitations
    sign_in: SignIn | ProxySignIn | None  # with an issuer, or through a proxy; None: people sign in with keys
    requests: Requests
    label_values: LabelValues
    usage: UsageReports
    balances: Balances
    alerts: Alerts
    catalog: Catalog
    health: Health
    routing: Routing
    vendor_accounts: VendorAccounts
    upstream: Upstream
    vault: Vault
    guards: Guards
    media_transfer: Transfer
    sealer: Sealer
    storage_writes: StorageWrites
    media: MediaFiles
    quota: StorageQuota
    jobs: Jobs
    endings: Endings
    callbacks: Callbacks
    webhook_secrets: WebhookSecrets
    sender: Sender
    deliveries: Deliveries
    destinations: Destinations
    chat_reservations: ChatReservations
    chat_settlement: ChatSettlement
    unsettled_money: UnsettledMoney
    acceptances: Acceptances
    generation_ends: GenerationEnds
    steps: Steps
    recordings: Recordings
    delays: Delays
    worker_pool: WorkerPool
    sound_pool: WorkerPool  # for streams of sound, which last as long as they are listened to
    server_models: ServerModels
    account_voices: AccountVoices
    live_models: LiveModels
    output_makers: Mapping[str, MakesOutputs]  # by task; the outputs of other tasks are files of providers' replies
    write_probe: WriteProbe
    tracing: Tracing | None = None  # None: off
    metrics: Metrics = field(default_factory=Metrics)
    reasoning_rates: ReasoningRates = field(default_factory=ReasoningRates)
    started_ms: int = 0  # when this process began
    draining: bool = False
    batch_wakeup: asyncio.Event = field(default_factory=asyncio.Event)  # set when there may be a batch to run
    interrupts: Interrupts = field(default_factory=Interrupts)

    async def ready(self) -> bool:
        """Whether calls are accepted: not while draining, before the first start is complete, or while the database
        cannot be written.
        """
        return not self.draining and await self.write_probe.succeeds()
