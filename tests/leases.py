"""Take the lease of a generation, as another process would."""

from penstock.jobs.leases import Jobs
from penstock.jobs.running import Lease


async def claim_lease(jobs: Jobs, request_id: str) -> Lease | None:
    """Take the lease if nobody runs the generation; it is not started."""
    leases = await jobs._claim_all([request_id], jobs._clock.steady_ms())
    return leases[0] if leases else None
