"""Complete request records: their attempts, outputs, webhook deliveries and the names of their keys."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from penstock.accounts.records import RequestRow, decode_attempts, request_record
from penstock.gateway import Gateway
from penstock.schema import Call
from penstock.store.base import Row, Store
from penstock.store.related import read_related
from penstock.values import iso
from penstock.webhooks.records import list_messages_of_requests, message_records

# Why an attempt failed, in plain words, by the kind of the failure.
REASONS = {
    "rejected": "The provider rejected the request as invalid.",
    "refused": "The provider refused the content.",
    "busy": "The provider was too busy or limits how often it may be called.",
    "down": "The provider was unavailable.",
    "unsent": "The provider could not be reached.",
    "broken": "The provider failed, or did not accept the gateway's account.",
    "timeout": "No response came; the provider may have made the output.",
    "unreadable": "The provider's response or file could not be read.",
    "unfetched": "The output was made, but could not be downloaded.",
}
_ATTEMPT_STATUSES = {"intent": "sent", "submitted": "running"}  # the others are shown as they are


async def complete_records(gateway: Gateway, call: Call, rows: Sequence[RequestRow]) -> list[dict[str, Any]]:
    """Return the records of rows of the caller's organization, in their order."""
    org_id = call.caller.org_id
    made = [row.id for row in rows if row.kind != "chat" and row.status != "rejected"]
    store = gateway.store
    attempts = defaultdict[str, list[Row]](list)
    for attempt in await read_related(store, "list_attempts_of_requests", made, org_id=org_id):
        attempts[attempt["request_id"]].append(attempt)
    generations = await read_related(store, "list_progress_of_requests", made, org_id=org_id)
    progress = {generation["id"]: generation["progress"] for generation in generations}
    outputs = await _outputs(gateway, call, made)
    messages = await list_messages_of_requests(store, made, org_id)
    webhooks = {message["request_id"]: message for message in await message_records(store, messages)}
    keys = await read_related(store, "list_names_of_keys", sorted({row.key_id for row in rows}), org_id=org_id)
    key_names = {key["id"]: key["name"] for key in keys}
    names = gateway.catalog.names
    return [
        {
            **request_record(row),
            "key_name": key_names.get(row.key_id),
            "progress": progress.get(row.id),
            "attempts": [_attempt(attempt, names) for attempt in attempts[row.id] or _chat_attempts(row)],
            "outputs": outputs[row.id],
            "webhook": webhooks.get(row.id),
        }
        for row in rows
    ]


async def _outputs(gateway: Gateway, call: Call, ids: Sequence[str]) -> defaultdict[str, list[dict[str, Any]]]:
    """The outputs that are still stored, with URLs that work for as long as those of an image response."""
    now_ms = gateway.clock.now_ms()
    found = defaultdict[str, list[dict[str, Any]]](list)
    for row in await read_related(
        gateway.store, "list_outputs_of_requests", ids, org_id=call.caller.org_id, now_ms=now_ms
    ):
        until_ms = min(row["expires_at_ms"], now_ms + gateway.settings.url_seconds * 1000)
        output = {
            "id": row["id"],
            "url": await gateway.media.signed_url(row["id"], until_ms, call.base_url),
            "content_type": row["content_type"],
            "size_bytes": row["size_bytes"],
            "width": row["width"],
            "height": row["height"],
            "revised_prompt": row["revised_prompt"],
            "expires_at": iso(row["expires_at_ms"]),
        }
        found[row["request_id"]].append(output)
    return found


# ------------------------------------------------------------------------------------------------------------- attempts


async def failure_reasons(store: Store, org_id: str, request_ids: Sequence[str]) -> dict[str, str]:
    """Return by request why its last failed attempt failed; requests without a stored attempt are left out."""
    attempts = await read_related(store, "list_attempts_of_requests", request_ids, org_id=org_id)
    chats = await read_related(store, "list_failed_chat_attempts", request_ids, org_id=org_id)
    kinds = {attempt["request_id"]: attempt["failure_kind"] for attempt in attempts if attempt["failure_kind"]}
    kinds |= {chat["id"]: decode_attempts(chat["attempts"])[-1].kind for chat in chats}
    return {request_id: _reason(kind) for request_id, kind in kinds.items()}


def _reason(kind: str) -> str:
    return REASONS.get(kind, "The attempt failed.")


def _attempt(row: Row, names: Mapping[str, str]) -> dict[str, Any]:
    is_open = row["state"] in _ATTEMPT_STATUSES
    kind = row["failure_kind"]
    failure = None
    if kind is not None:
        failure = {"kind": kind, "reason": _reason(kind), "message": row["failure_message"]}
    return {
        "id": row["id"],
        "provider": row["provider"],
        "provider_name": names.get(row["provider"], row["provider"]),
        "model": row["upstream_model"],
        "status": _ATTEMPT_STATUSES.get(row["state"], row["state"]),
        "started_at": iso(row["created_at_ms"]),
        "ended_at": None if is_open else iso(row["updated_at_ms"]),
        "outputs": row["count"],
        "round": row["round"],
        "failure": failure,
        "http_status": row["http_status"],
        "upstream_id": row["upstream_id"],
    }


def _chat_attempts(row: RequestRow) -> list[Row]:
    """The attempts of a chat call, in the form of those of generations: the failed ones, and the one that served it."""
    failed = row.decode_attempts()
    found = [
        _chat_attempt(attempt.provider, attempt.upstream_model, "failed", attempt.started_at_ms, attempt.ended_at_ms)
        | {
            "failure_kind": attempt.kind,
            "failure_message": attempt.message,
            "http_status": attempt.http_status,
        }
        for attempt in failed
    ]
    is_listed = bool(failed) and (failed[-1].provider, failed[-1].upstream_model) == (row.provider, row.upstream_model)
    if row.kind == "chat" and row.provider and row.status in ("completed", "cancelled") and not is_listed:
        started_at_ms = failed[-1].ended_at_ms if failed else row.created_at_ms
        ended_at_ms = row.created_at_ms + (row.duration_ms or 0)
        found.append(_chat_attempt(row.provider, row.upstream_model, row.status, started_at_ms, ended_at_ms))
    return found


def _chat_attempt(provider: str, model: str | None, state: str, started_at_ms: int, ended_at_ms: int) -> Row:
    return {
        "id": None,
        "provider": provider,
        "upstream_model": model,
        "state": state,
        "created_at_ms": started_at_ms,
        "updated_at_ms": ended_at_ms,
        "count": 1,
        "round": 1,
        "failure_kind": None,
        "failure_message": None,
        "http_status": None,
        "upstream_id": None,
    }
