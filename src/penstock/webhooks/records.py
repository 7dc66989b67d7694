"""Show webhook messages and their deliveries as the API does."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from penstock.store.base import Row, Store
from penstock.store.related import read_related
from penstock.values import iso


async def message_records(store: Store, rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Return messages with their deliveries, oldest first."""
    deliveries = defaultdict[str, list[Row]](list)
    for delivery in await read_related(store, "list_deliveries_of_messages", [row["id"] for row in rows]):
        deliveries[delivery["message_id"]].append(delivery)
    return [_message(row, deliveries[row["id"]]) for row in rows]


def _message(row: Row, deliveries: Sequence[Row]) -> dict[str, Any]:
    is_waiting = row["state"] == "waiting"
    return {
        "id": row["id"],
        "object": "webhook.message",
        "request_id": row["request_id"],
        "event": row["event"],
        "url": row["url"],
        "status": row["state"],
        "created_at": iso(row["created_at_ms"]),
        "ended_at": None if row["ended_at_ms"] is None else iso(row["ended_at_ms"]),
        "next_at": iso(row["next_at_ms"] or row["created_at_ms"]) if is_waiting else None,
        "deliveries": [_delivery(number, delivery) for number, delivery in enumerate(deliveries, 1)],
    }


def _delivery(number: int, row: Row) -> dict[str, Any]:
    return {
        "number": number,
        "at": iso(row["started_at_ms"]),
        "duration_ms": max(0, row["ended_at_ms"] - row["started_at_ms"]),
        "status_code": row["http_status"],
        "result": row["result"],
    }
