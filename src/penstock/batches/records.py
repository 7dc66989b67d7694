"""The rows of batches in the store, and how the API shows a batch."""

from typing import Any

import msgspec

from penstock.batches.lines import EDITS, IMAGES, VIDEOS
from penstock.errors import NotFound
from penstock.store.base import Store
from penstock.values import Nanos, OrgId, dollars, is_id, iso

PREFIX = "batch"
VALIDATING = "validating"
IN_PROGRESS = "in_progress"
PAUSED = "paused"
CANCELLING = "cancelling"
COMPLETED = "completed"
CANCELLED = "cancelled"
# Whether chats go with batches of providers: those that can, or all of them.
AUTO = "auto"
ONLY = "only"
NEVER = "never"
VENDOR_BATCH = (NEVER, AUTO, ONLY)
STATUSES = (VALIDATING, IN_PROGRESS, PAUSED, CANCELLING, COMPLETED, CANCELLED)


class BatchRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the table `batches`, without its lease. Money is in nano-dollars."""

    id: str
    org_id: OrgId
    key_id: str
    status: str
    reason: str | None
    name: str | None
    max_cost: int | None
    concurrency: int
    webhook_url: str | None
    created_at_ms: int
    ended_at_ms: int | None
    rows_total: int
    rows_completed: int
    rows_failed: int
    rows_skipped: int
    estimate: int
    cost: int
    upload_id: str | None = None
    endpoint: str | None = None
    metadata: str | None = None  # the pairs of a caller of OpenAI's API, as JSON
    vendor_batch: str | None = None  # AUTO or ONLY; None: rows are made alone


class PendingRow(msgspec.Struct, frozen=True, kw_only=True):
    """A row of a batch that has not ended."""

    number: int
    custom_id: str
    endpoint: str
    body: bytes
    hold: int
    request_id: str | None = None  # of a row that waits at a provider

    @property
    def is_generation(self) -> bool:
        """Whether it is a job, and not a chat call."""
        return self.endpoint in (IMAGES, EDITS, VIDEOS)


class EndedRow(msgspec.Struct, frozen=True, kw_only=True):
    """A row of a batch as its results show it; it may be pending still."""

    number: int
    custom_id: str
    endpoint: str
    status: str
    request_id: str | None
    cost: int
    error_code: str | None
    error_message: str | None


async def get_batch(store: Store, org_id: OrgId, batch_id: str) -> BatchRecord:
    """One batch of an organization. Raises NotFound."""
    row = await store.one("get_batch", id=batch_id, org_id=org_id) if is_id(batch_id, PREFIX) else None
    if row is None:
        raise NotFound(f"No such batch: {batch_id[:64]}.")
    return BatchRecord(**row)


async def list_rows(store: Store, batch_id: str, after: int, limit: int) -> list[EndedRow]:
    """The next rows of a batch, in the order of its file."""
    rows = await store.slow("list_batch_rows", batch_id=batch_id, after=after, limit=limit)
    return [EndedRow(**row) for row in rows]


def batch_object(batch: BatchRecord) -> dict[str, Any]:
    """A batch as the API shows it; amounts are in dollars."""
    return {
        "id": batch.id,
        "object": "batch",
        "name": batch.name,
        "status": batch.status,
        "reason": batch.reason,
        "created_at": iso(batch.created_at_ms),
        "ended_at": None if batch.ended_at_ms is None else iso(batch.ended_at_ms),
        "key_id": batch.key_id,
        "counts": {
            "total": batch.rows_total,
            "completed": batch.rows_completed,
            "failed": batch.rows_failed,
            "pending": batch.rows_total - batch.rows_completed - batch.rows_failed,
            "skipped": batch.rows_skipped,
        },
        "estimated_cost": dollars(Nanos(batch.estimate)),
        "cost": dollars(Nanos(batch.cost)),
        "max_cost": None if batch.max_cost is None else dollars(Nanos(batch.max_cost)),
        "currency": "usd",
        "concurrency": batch.concurrency,
        "webhook_url": batch.webhook_url,
        "vendor_batch": batch.vendor_batch or NEVER,
    }
