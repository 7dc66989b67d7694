"""Show request records in detail: their attempts, outputs, webhook deliveries and the names of their keys."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from penstock.accounts.key_records import READ, read_key_names
from penstock.accounts.request_records import RequestRow, decode_attempts, read_prompts, request_record
from penstock.gateway import Gateway
from penstock.media.rows import list_outputs
from penstock.provenance.statuses import worst
from penstock.schema import Call
from penstock.store.base import Store
from penstock.store.related import read_related
from penstock.values import OrgId, iso
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


async def detailed_records(gateway: Gateway, call: Call, rows: Sequence[RequestRow]) -> list[dict[str, Any]]:
    """Return the records of rows of the caller's organization, in their order."""
    org_id = call.caller.org_id
    made = [row.id for row in rows if row.kind != "chat" and row.status != "rejected"]
    store = gateway.store
    attempts = defaultdict[str, list[ShownAttempt]](list)
    for attempt in await _list_attempts(store, made, org_id):
        attempts[attempt.request_id].append(attempt)
    generations = await read_related(store, "list_progress_of_requests", made, org_id=org_id)
    progress = {generation["id"]: generation["progress"] for generation in generations}
    shows_contents = READ not in call.caller.scopes
    outputs = await _outputs(gateway, call, made if shows_contents else [])
    messages = await list_messages_of_requests(store, made, org_id)
    webhooks = {message["request_id"]: message for message in await message_records(store, messages)}
    statuses = await credential_statuses(store, made, org_id)
    prompts = await read_prompts(store, [row.id for row in rows if shows_contents], org_id)
    key_names = await read_key_names(store, sorted({row.key_id for row in rows}), org_id)
    names = gateway.catalog.providers.names
    return [
        {
            **request_record(row),
            "prompt": prompts.get(row.id),
            "key_name": key_names.get(row.key_id),
            "progress": progress.get(row.id),
            "attempts": [_attempt(attempt, names) for attempt in attempts[row.id] or _chat_attempts(row)],
            "outputs": outputs[row.id],
            "content_credentials": statuses.get(row.id),
            "webhook": webhooks.get(row.id),
        }
        for row in rows
    ]


async def _outputs(gateway: Gateway, call: Call, ids: Sequence[str]) -> defaultdict[str, list[dict[str, Any]]]:
    """The outputs that are still stored, with URLs that work for as long as those of an image response."""
    now_ms = gateway.clock.now_ms()
    found = defaultdict[str, list[dict[str, Any]]](list)
    for output in await list_outputs(gateway.store, ids, call.caller.org_id, now_ms):
        until_ms = min(output.expires_at_ms, now_ms + gateway.settings.url_seconds * 1000)
        shown = {
            "id": output.id,
            "url": await gateway.media.signed_url(output.id, until_ms, call.base_url),
            "thumbnail_url": gateway.media.thumbnail_url(output.id, output.content_type, until_ms, call.base_url),
            "content_type": output.content_type,
            "size_bytes": output.size_bytes,
            "width": output.width,
            "height": output.height,
            "revised_prompt": output.revised_prompt,
            "content_credentials": msgspec.json.decode(output.credentials) if output.credentials else None,
            "expires_at": iso(output.expires_at_ms),
            **(msgspec.json.decode(output.delivered) if output.delivered else {}),
        }
        found[output.request_id].append(shown)
    return found


async def credential_statuses(store: Store, ids: Sequence[str], org_id: OrgId) -> dict[str, str]:
    """By request the worst status of the Content Credentials of its outputs, also when those have expired."""
    found = defaultdict[str, list[str]](list)
    for row in await read_related(store, "list_credential_statuses", ids, org_id=org_id):
        found[row["request_id"]].append(row["status"])
    return {request_id: status for request_id, several in found.items() if (status := worst(several))}


# ------------------------------------------------------------------------------------------------------------- attempts


class ShownAttempt(msgspec.Struct, frozen=True, kw_only=True):
    """The columns of an attempt that callers see. An attempt of a chat call, which has no row of its own, has no id."""

    id: str | None = None
    request_id: str
    round: int = 1
    count: int = 1
    provider: str
    upstream_model: str | None
    state: str
    upstream_id: str | None = None
    failure_kind: str | None = None
    failure_message: str | None = None
    http_status: int | None = None
    created_at_ms: int
    updated_at_ms: int


async def _list_attempts(store: Store, request_ids: Sequence[str], org_id: OrgId) -> list[ShownAttempt]:
    """The attempts of generations, in the order in which candidates are tried."""
    rows = await read_related(store, "list_attempts_of_requests", request_ids, org_id=org_id)
    return [ShownAttempt(**row) for row in rows]


async def failure_reasons(store: Store, org_id: OrgId, request_ids: Sequence[str]) -> dict[str, str]:
    """Return by request why its last failed attempt failed; requests without a stored attempt are left out."""
    attempts = await _list_attempts(store, request_ids, org_id)
    chats = await read_related(store, "list_failed_chat_attempts", request_ids, org_id=org_id)
    kinds = {attempt.request_id: attempt.failure_kind for attempt in attempts if attempt.failure_kind}
    kinds |= {chat["id"]: decode_attempts(chat["attempts"])[-1].kind for chat in chats}
    return {request_id: _reason(kind) for request_id, kind in kinds.items()}


def _reason(kind: str) -> str:
    return REASONS.get(kind, "The attempt failed.")


def _attempt(attempt: ShownAttempt, names: Mapping[str, str]) -> dict[str, Any]:
    is_open = attempt.state in _ATTEMPT_STATUSES
    kind = attempt.failure_kind
    failure = None
    if kind is not None:
        failure = {"kind": kind, "reason": _reason(kind), "message": attempt.failure_message}
    return {
        "id": attempt.id,
        "provider": attempt.provider,
        "provider_name": names.get(attempt.provider, attempt.provider),
        "model": attempt.upstream_model,
        "status": _ATTEMPT_STATUSES.get(attempt.state, attempt.state),
        "started_at": iso(attempt.created_at_ms),
        "ended_at": None if is_open else iso(attempt.updated_at_ms),
        "outputs": attempt.count,
        "round": attempt.round,
        "failure": failure,
        "http_status": attempt.http_status,
        "upstream_id": attempt.upstream_id,
    }


def _chat_attempts(row: RequestRow) -> list[ShownAttempt]:
    """The attempts of a chat call, in the form of those of generations: the failed ones, and the one that served it."""
    failed = row.decode_attempts()
    found = [
        ShownAttempt(
            request_id=row.id,
            provider=attempt.provider,
            upstream_model=attempt.upstream_model,
            state="failed",
            failure_kind=attempt.kind,
            failure_message=attempt.message,
            http_status=attempt.http_status,
            created_at_ms=attempt.started_at_ms,
            updated_at_ms=attempt.ended_at_ms,
        )
        for attempt in failed
    ]
    is_listed = bool(failed) and (failed[-1].provider, failed[-1].upstream_model) == (row.provider, row.upstream_model)
    if row.kind == "chat" and row.provider and row.status in ("completed", "cancelled") and not is_listed:
        served = ShownAttempt(
            request_id=row.id,
            provider=row.provider,
            upstream_model=row.upstream_model,
            state=row.status,
            created_at_ms=failed[-1].ended_at_ms if failed else row.created_at_ms,
            updated_at_ms=row.created_at_ms + (row.duration_ms or 0),
        )
        found.append(served)
    return found
