"""Record chat calls that ended after another process had ended them: theirs was taken for dead, but went on."""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec
import structlog

from penstock.accounts import transfers
from penstock.store.base import Transaction
from penstock.values import Nanos, OrgId

log = structlog.get_logger()


class LateEnd(NamedTuple):
    """A call whose request had ended before, and what its provider bills for it."""

    org_id: OrgId
    request_id: str
    cost: Nanos


async def record_late_ends(tx: Transaction, ends: Sequence[LateEnd], at_ms: int) -> list[LateEnd]:
    """Record as losses what calls cost that another process has ended as interrupted; return those.

    Their holds are released, and their records say that they failed, so they are not charged any more. Calls that this
    process has ended itself, by a commit that was not confirmed, are charged or recorded as losses already.
    """
    costly = {end.request_id: end for end in sorted(ends, key=lambda end: end.request_id) if end.cost > 0}
    if not costly:
        return []
    rows = await tx.all("list_released", ids=msgspec.json.encode(list(costly)).decode())
    released = [costly[row["id"]] for row in rows]
    for end in released:
        await transfers.record_loss(tx, end.org_id, end.request_id, end.cost, at_ms)
    return released


def log_losses(losses: Sequence[LateEnd]) -> None:
    """Say that calls were delivered which nobody pays for."""
    for loss in losses:
        log.error(
            "a chat call ended after its process was taken for dead, and is recorded as a loss",
            request_id=loss.request_id,
            loss_nanos=loss.cost,
        )
