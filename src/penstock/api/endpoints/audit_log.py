"""List the events of the audit log, and export them as JSON Lines or CSV."""

from collections.abc import AsyncIterator
from typing import Any

import msgspec

from penstock.accounts.key_records import ADMIN, OPERATOR
from penstock.api import query
from penstock.api.endpoints.csv_export import csv_cell, csv_line
from penstock.api.paging import LIMIT, cursors, page_body
from penstock.api.route import Query
from penstock.audit_log import EVERYTHING, Act, EventRow, note_act, read_events, read_head
from penstock.errors import InvalidRequest, PermissionDenied
from penstock.gateway import Gateway
from penstock.schema import Call, Response
from penstock.store.paging import Pager
from penstock.values import OrgId

AUDIT_QUERY = (
    LIMIT,
    *cursors("event"),
    Query(name="actor", about="By this key, or this command such as `command:root`."),
    Query(name="action", about="Of this kind, such as `key.revoked`."),
    Query(name="target", about="About this key, organization, account, request or label."),
    Query(name="org_id", about="About this organization; for operators."),
    Query(name="created_after", type="time", about="At this moment or later."),
    Query(name="created_before", type="time", about="At this moment or earlier."),
    Query(
        name="format",
        one_of=("json", "jsonl", "csv"),
        about="`jsonl` and `csv` return everything that matches, oldest first, without pages.",
    ),
)
_FILTERS = ("actor", "action", "target", "created_after", "created_before")
_COLUMNS = (
    "id",
    "created_at",
    "actor",
    "address",
    "action",
    "target",
    "org_id",
    "before",
    "after",
    "request_id",
    "previous",
    "hash",
)


async def list_audit_events(gateway: Gateway, call: Call) -> Response:
    """Return events of the caller's organization, or of the whole installation for an operator."""
    asked = query.read(AUDIT_QUERY, call.query)
    org_id = _readable_org(call, asked["org_id"])
    filters = {name: asked[name] for name in _FILTERS}
    if asked["format"] in ("jsonl", "csv"):
        return await _export(gateway, call, org_id, asked["format"], filters)
    pager = Pager(gateway.store, "audit_event", "aud", EventRow)
    page = await pager.page(org_id, asked["limit"], asked["starting_after"], asked["ending_before"], **filters)
    body = page_body(call, AUDIT_QUERY, page.with_data([row.record() for row in page.data]))
    return Response(json={**body, "head": await read_head(gateway.store)})


def _readable_org(call: Call, asked: str | None) -> OrgId:
    """The organization whose events are returned; raise PermissionDenied for one that is not the caller's."""
    if OPERATOR in call.caller.scopes:
        return OrgId(asked) if asked else EVERYTHING
    if ADMIN not in call.caller.scopes:
        raise PermissionDenied("This call needs a key with the `admin` or the `operator` scope.")
    if asked not in (None, call.caller.org_id):
        raise PermissionDenied("Only a key with the `operator` scope may read events of other organizations.")
    return call.caller.org_id


async def _export(gateway: Gateway, call: Call, org_id: OrgId, form: str, filters: dict[str, Any]) -> Response:
    for name in ("limit", "starting_after", "ending_before"):
        if name in call.query:
            raise InvalidRequest(f"`{name}` cannot be combined with an export, which has all events.", param=name)
    whose = None if org_id == EVERYTHING else org_id
    await note_act(gateway.store, call.at_ms, Act("audit_log.exported", whose or "everything", whose))
    rows = read_events(gateway.store, org_id, **filters)
    return Response(
        chunks=csv_events(rows) if form == "csv" else json_lines(rows),
        headers={"content-disposition": f'attachment; filename="audit-log.{form}"', "cache-control": "no-store"},
        media_type="text/csv; charset=utf-8" if form == "csv" else "application/jsonl",
    )


async def json_lines(rows: AsyncIterator[EventRow]) -> AsyncIterator[bytes]:
    """Yield one JSON object per event, as the list has them."""
    async for row in rows:
        yield msgspec.json.encode(row.record(), order="sorted") + b"\n"


async def csv_events(rows: AsyncIterator[EventRow]) -> AsyncIterator[bytes]:
    yield csv_line(_COLUMNS)
    async for row in rows:
        record = row.record()
        yield csv_line([csv_cell(record[name]) for name in _COLUMNS])
