"""JSON Schemas of the responses about batches."""

from collections.abc import Mapping

from penstock.api.openapi.schema_parts import (
    FLAG,
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
    ref,
)
from penstock.batches.records import STATUSES, VENDOR_BATCH

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
        "vendor_batch": one_of(*VENDOR_BATCH),
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
        "vendor_batch_rows": INTEGER,
        "currency": always("usd"),
        "models": array(closed_object({"model": TEXT, "rows": INTEGER, "estimated_cost": MONEY})),
    }
)

_FILE = closed_object(
    {
        "id": TEXT,
        "object": always("file"),
        "bytes": INTEGER,
        "created_at": INTEGER,
        "expires_at": or_null(INTEGER),
        "filename": TEXT,
        "purpose": TEXT,
        "status": always("processed"),
    }
)
_OPENAI_BATCH = closed_object(
    {
        "id": TEXT,
        "object": always("batch"),
        "endpoint": TEXT,
        "input_file_id": TEXT,
        "completion_window": always("24h"),
        "status": one_of(*STATUSES),
        "created_at": INTEGER,
        **dict.fromkeys(
            ("in_progress_at", "completed_at", "cancelled_at", "cancelling_at"),
            or_null(INTEGER),
        ),
        "output_file_id": or_null(TEXT),
        "error_file_id": or_null(TEXT),
        "errors": {"type": "null"},
        "request_counts": closed_object(dict.fromkeys(("total", "completed", "failed"), INTEGER)),
        "metadata": or_null({"type": "object", "additionalProperties": TEXT}),
    }
)


def _openai_list(schema: Schema) -> Schema:
    return closed_object(
        {
            "object": always("list"),
            "data": array(schema),
            "first_id": or_null(TEXT),
            "last_id": or_null(TEXT),
            "has_more": FLAG,
        }
    )


BATCH_SCHEMAS: Mapping[str, Schema] = {
    "Batch": _BATCH,
    "BatchEstimate": _ESTIMATE,
    "BatchList": list_of("Batch", pages=True),
    "File": _FILE,
    "FileList": _openai_list(ref("File")),
    "FileDeleted": closed_object({"id": TEXT, "object": always("file"), "deleted": FLAG}),
    "OpenAiBatch": _OPENAI_BATCH,
    "OpenAiBatchList": _openai_list(ref("OpenAiBatch")),
}
