"""The webhook message that tells of the end of a batch."""

import msgspec

from penstock.batches.records import BatchRecord, batch_object
from penstock.store.base import Row
from penstock.webhooks.events import message_row

_encode = msgspec.json.Encoder(decimal_format="number").encode


def message(batch: BatchRecord, at_ms: int) -> Row:
    """The values of the message for the query `add_message`. It belongs to no request."""
    assert batch.webhook_url, "its caller wants to be told"
    event = f"batch.{batch.status}"
    body = _encode({"type": event, "data": batch_object(batch)})
    row = message_row(
        org_id=batch.org_id, request_id=batch.id, url=batch.webhook_url, event=event, body=body, at_ms=at_ms
    )
    return {**row, "id": f"msg_req_{batch.id.partition('_')[2]}", "request_id": None}
