"""The pieces that handle requests, in one place."""

from dataclasses import dataclass, field

from penstock.auth import Auth
from penstock.billing import Billing
from penstock.callbacks import Callbacks
from penstock.catalog import Catalog
from penstock.clock import Clock
from penstock.deliveries import Deliveries
from penstock.gather import Gather
from penstock.health import Health
from penstock.jobs import Jobs
from penstock.ledger import Ledger
from penstock.media import Media
from penstock.metrics import Metrics
from penstock.pool import Pool
from penstock.replay import Replay
from penstock.settings import Settings
from penstock.settling import Settling
from penstock.store.base import Store
from penstock.upstream import Upstream
from penstock.webhooks import Secrets


@dataclass(slots=True, kw_only=True)
class Gateway:
    """What `flow` and `drive` work with; built once by `app`."""

    settings: Settings
    clock: Clock
    store: Store
    auth: Auth
    ledger: Ledger
    billing: Billing
    catalog: Catalog
    health: Health
    upstream: Upstream
    gather: Gather
    media: Media
    jobs: Jobs
    callbacks: Callbacks
    webhooks: Secrets
    deliveries: Deliveries
    settling: Settling
    replay: Replay
    pool: Pool
    metrics: Metrics = field(default_factory=Metrics)
    started_ms: int = 0  # when this process began
    draining: bool = False

    async def ready(self) -> bool:
        """Whether new work is welcome: not draining, and the store answers."""
        return not self.draining and await self.store.one("get_fact", name="first_org") is not None
