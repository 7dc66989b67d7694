"""A message that is being delivered, how a delivery ended, and how that is written down."""

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
from msgspec.structs import force_setattr

from penstock.store.base import Row, Transaction
from penstock.values import OrgId


class LeasedMessage(msgspec.Struct, frozen=True):
    """A message that only this process may deliver until its lease ends."""

    id: str
    org_id: OrgId
    url: str
    body: bytes
    deliveries: int  # deliveries whose result was recorded
    lease_token: int
    trace_context: str | None = None
    drops: int | None = None  # how many deliveries are not made
    host: str = ""  # that of the URL

    @classmethod
    def first(cls, row: Row) -> "LeasedMessage":
        """A message that is leased for its first delivery, from the values of the query `add_message`."""
        return cls(
            row["id"],
            row["org_id"],
            row["url"],
            row["body"],
            deliveries=0,
            lease_token=1,
            trace_context=row["trace_context"],
            drops=row["drops"],
        )

    def __post_init__(self) -> None:
        force_setattr(self, "host", self.url.split("/", 3)[2])


class DeliveryResult(msgspec.Struct, frozen=True):
    """How a delivery ended; `text` is shown to operators."""

    text: str
    status: int | None = None  # of the receiver's response
    delivered: bool = False
    may_retry: bool = True  # False when the receiver says that it wants no more of them
    counts: bool = True  # False when the receiver is not to blame: the delivery is repeated soon
    short_of_places: bool = True  # if it does not count: whether fewer deliveries at once would help


class MessageChange(msgspec.Struct, frozen=True):
    """What a delivery changes in the store: the message, and the delivery that is added."""

    query: str
    values: Row
    delivery: Row | None  # None when nothing was sent

    @property
    def message_id(self) -> str:
        return str(self.values["id"])


@dataclass(frozen=True, slots=True)
class TrialDelivery:
    """A test event that was sent, and how that ended."""

    message: LeasedMessage
    result: DeliveryResult
    duration_ms: int


class LeasesLost(Exception):
    """Of several messages, some are delivered by other processes now."""


async def write_changes(tx: Transaction, changes: Sequence[MessageChange]) -> list[bool]:
    """Write what became of deliveries; return for each whether its lease was still held.

    Raises LeasesLost if some of several leases were not held: then each change must be written by itself.
    """
    in_order = sorted(changes, key=lambda change: change.message_id)
    changed = await tx.run_each([(change.query, change.values) for change in in_order])
    if changed.total() < len(changes):
        if len(changes) > 1:
            raise LeasesLost
        return [False]
    deliveries = [change.delivery for change in changes if change.delivery]
    if deliveries:
        await tx.put_many("add_delivery", deliveries)
    return [True] * len(changes)
