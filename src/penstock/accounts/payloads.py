"""Store what a chat call leaves until it expires: its bodies, where settings ask for it, and its response's items."""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from penstock.accounts.response_items import KeptItem, add_items
from penstock.settings import Settings
from penstock.store.base import Store, Transaction
from penstock.values import OrgId, Retention

MESSAGE_NOT_STORED = "The message is not stored."
# With `payloads = "none"` everything is removed this long after the end, so that a waiting caller is answered first.
_GRACE_MS = 2_000
_PROMPT_LENGTH = 2_000


class Payload(msgspec.Struct, frozen=True):
    """The bodies of one chat call."""

    request: bytes | bytearray  # a long one is not copied, nor is a long response
    response: bytes | bytearray
    expires_at_ms: int
    prompt: str | None = None


class Leftovers(msgspec.Struct, frozen=True):
    """What is stored of one chat call beside its record."""

    org_id: OrgId
    request_id: str
    payload: Payload | None = None  # where the settings ask for it
    items: tuple[KeptItem, ...] = ()


def expiry_ms(settings: Settings, ended_at_ms: int) -> int:
    """When the stored payloads of a request that ended at this moment are removed."""
    if settings.payloads == "none":
        return ended_at_ms + _GRACE_MS
    return ended_at_ms + Retention.parse(settings.payload_retention).seconds * 1000


def prompt_of(body: Mapping[str, Any]) -> str | None:
    """The beginning of what a chat or speech call says last: its text, or that of the last message of its user."""
    told = body.get("messages") or body.get("input")
    if isinstance(told, list):
        last = next((item for item in reversed(told) if isinstance(item, dict) and item.get("role") == "user"), {})
        told = last.get("content")
    if isinstance(told, list):
        texts = (part.get("text") for part in told if isinstance(part, dict))
        told = next((text for text in texts if isinstance(text, str)), None)
    return told[:_PROMPT_LENGTH] if isinstance(told, str) else None


async def add_payload(tx: Transaction, org_id: OrgId, request_id: str, payload: Payload) -> None:
    """Store the bodies of a chat call whose request is in the store; does nothing when they are stored already."""
    await tx.put(
        "add_payload",
        org_id=org_id,
        request_id=request_id,
        request=payload.request,
        response=payload.response,
        prompt=payload.prompt,
        expires_at_ms=payload.expires_at_ms,
    )


async def add_leftovers(tx: Transaction, found: Iterable[Leftovers | None]) -> None:
    """Store what chat calls leave, whose requests are in the store."""
    calls = [leftovers for leftovers in found if leftovers]
    for call in calls:
        if call.payload:
            await add_payload(tx, call.org_id, call.request_id, call.payload)
    await add_items(tx, [item for call in calls for item in call.items])


async def get_payload(store: Store, org_id: OrgId, request_id: str) -> Payload | None:
    row = await store.one("get_payload", org_id=org_id, request_id=request_id)
    return None if row is None else Payload(**row)
