"""JSON Schemas of the responses about batches."""

from collections.abc import Mapping

from penstock.api.openapi.schema_parts import (
    INTEGER,
    MONEY,
    TEXT,
    TIME,
    Schema,
    always,
    array,
    closed_object,
    list_of,
    one_of,
    or_null,
)
from penstock.batches.records import STATUSES

FAULT = closed_object({"row": INTEGER, "column": or_null(TEXT), "message": TEXT})
_BATCH = closed_object(
    {
        "id": TEXT,
        "object": always("batch"),
        "name": or_null(TEXT),
        "status": one_of(*STATUSES),
        "reason": or_null(TEXT),
        "created_at": TIME,
        "ended_at": or_null(TIME),
        "key_id": TEXT,
        "counts": closed_object(dict.fromkeys(("total", "completed", "failed", "pending", "skipped"), INTEGER)),
        "estimated_cost": MONEY,
        "cost": MONEY,
        "max_cost": or_null(MONEY),
        "currency": always("usd"),
        "concurrency": INTEGER,
        "webhook_url": or_null(TEXT),
    }
)
_ESTIMATE = closed_object(
    {
        "object": always("batch.estimate"),
        "rows": INTEGER,
        "skipped": INTEGER,
        "faults": array(FAULT),
        "estimated_cost": MONEY,
        "highest_cost": MONEY,
        "currency": always("usd"),
        "models": array(closed_object({"model": TEXT, "rows": INTEGER, "estimated_cost": MONEY})),
    }
)

BATCH_SCHEMAS: Mapping[str, Schema] = {
    "Batch": _BATCH,
    "BatchEstimate": _ESTIMATE,
    "BatchList": list_of("Batch", pages=True),
}
