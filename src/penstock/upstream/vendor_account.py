"""An account at a vendor: a credential beside the one of the environment."""

from dataclasses import dataclass, field

from penstock.clock import Clock
from penstock.upstream.account_limits import AccountLimits, Wait
from penstock.values import OrgId


@dataclass(slots=True, eq=False)
class VendorAccount:
    """A credential of a provider with its place in the order. Its values change when somebody changes the account, so
    jobs that run already use a rotated credential.
    """

    id: str
    provider: str
    name: str
    credential: str = field(repr=False)
    status: str = "on"  # draining: for the jobs that it has started, not for new ones
    weight: int = 1
    priority: int = 0
    models: tuple[str, ...] | None = None  # ids, or beginnings of ids that end with `*`; None: all
    last_four: str = ""
    version: int = 1
    created_at_ms: int = 0
    concurrent: int | None = None  # calls and jobs at a time
    requests_per_minute: int | None = None
    nanos_per_month: int | None = None
    org_id: OrgId | None = None  # whose it is; None: the operator's
    fee_percent: int | None = None  # of the list price; None: as the settings say
    fallback_to_shared: bool = False
    failed_status: int | None = None  # of the vendor's refusal of the account itself; tried last until it is mended
    failed_at_ms: int | None = None
    spent: int = 0  # of this month, as it was read last
    limits: AccountLimits = field(default_factory=lambda: AccountLimits(Clock()), repr=False)

    @property
    def wait(self) -> Wait | None:
        """Why it takes no new call now, or None."""
        return self.limits.wait(self.concurrent, self.requests_per_minute)

    @property
    def share(self) -> float:
        """Its weight among equals, less the more of it is in use."""
        return self.weight * self.limits.free_share(self.concurrent)

    @property
    def is_spent(self) -> bool:
        """Whether the dollars of the month are used up."""
        return self.nanos_per_month is not None and self.spent >= self.nanos_per_month

    def serves(self, model: str) -> bool:
        """Whether new calls of a model may use the account, unless its dollars are used up."""
        if self.status != "on":
            return False
        return self.models is None or any(
            model.startswith(name[:-1]) if name.endswith("*") else model == name for name in self.models
        )
