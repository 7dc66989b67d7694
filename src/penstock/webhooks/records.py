"""The stored rows of webhook messages and their deliveries, and how the API shows them."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import msgspec

from penstock.store.base import Store
from penstock.store.related import read_related
from penstock.values import OrgId, iso


class MessageRow(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the table `messages`, without what only its delivery needs."""

    id: str
    org_id: OrgId
    request_id: str | None  # None for an alert
    event: str
    url: str
    state: str
    deliveries: int
    last_result: str | None
    next_at_ms: int
    created_at_ms: int
    ended_at_ms: int | None


class MessageWithBody(MessageRow, frozen=True, kw_only=True):
    """A message and the event that receivers get."""

    body: bytes


class DeliveryRow(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the table `deliveries`."""

    message_id: str
    number: int
    started_at_ms: int
    ended_at_ms: int
    http_status: int | None
    result: str


async def list_messages(store: Store, state: str | None = None, limit: int = 50) -> list[MessageRow]:
    """The newest messages of all organizations, of one state or of all."""
    return [MessageRow(**row) for row in await store.slow("list_messages", state=state, limit=limit)]


async def get_message(store: Store, message_id: str, org_id: OrgId) -> MessageWithBody | None:
    row = await store.one("get_message_of_org", id=message_id, org_id=org_id)
    return None if row is None else MessageWithBody(**row)


async def list_messages_of_requests(store: Store, request_ids: Sequence[str], org_id: OrgId) -> list[MessageRow]:
    rows = await read_related(store, "list_messages_of_requests", request_ids, org_id=org_id)
    return [MessageRow(**row) for row in rows]


async def message_records(store: Store, messages: Sequence[MessageRow]) -> list[dict[str, Any]]:
    """Return messages with their deliveries, oldest first."""
    deliveries = defaultdict[str, list[DeliveryRow]](list)
    for row in await read_related(store, "list_deliveries_of_messages", [message.id for message in messages]):
        delivery = DeliveryRow(**row)
        deliveries[delivery.message_id].append(delivery)
    return [_message(message, deliveries[message.id]) for message in messages]


async def complete_message_record(store: Store, message: MessageWithBody) -> dict[str, Any]:
    """Return a message with its deliveries and the event that receivers get."""
    [record] = await message_records(store, [message])
    return {**record, "body": msgspec.json.decode(message.body)}


def _message(message: MessageRow, deliveries: Sequence[DeliveryRow]) -> dict[str, Any]:
    is_waiting = message.state == "waiting"
    return {
        "id": message.id,
        "object": "webhook.message",
        "request_id": message.request_id,
        "event": message.event,
        "url": message.url,
        "status": message.state,
        "created_at": iso(message.created_at_ms),
        "ended_at": None if message.ended_at_ms is None else iso(message.ended_at_ms),
        "next_at": iso(message.next_at_ms or message.created_at_ms) if is_waiting else None,
        "deliveries": [_delivery(number, delivery) for number, delivery in enumerate(deliveries, 1)],
    }


def _delivery(number: int, delivery: DeliveryRow) -> dict[str, Any]:
    return {
        "number": number,
        "at": iso(delivery.started_at_ms),
        "duration_ms": max(0, delivery.ended_at_ms - delivery.started_at_ms),
        "status_code": delivery.http_status,
        "result": delivery.result,
    }
