"""List and retrieve request records."""

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any

from penstock.accounts.key_records import READ
from penstock.accounts.request_filters import Filters
from penstock.accounts.request_records import read_prompts
from penstock.accounts.requests import KINDS, STATUSES
from penstock.api import query
from penstock.api.endpoints.csv_export import csv_lines
from penstock.api.endpoints.label_filters import LABEL_FILTER, check_label_filter
from penstock.api.paging import LIMIT, cursors, page_body, path_id
from penstock.api.responses import encode
from penstock.api.route import Query
from penstock.audit_log import Act, note_act
from penstock.errors import InvalidRequest, NotFound, PermissionDenied
from penstock.gateway import Gateway
from penstock.generations.records import credential_statuses, detailed_records
from penstock.generations.verify import find_request
from penstock.provenance.statuses import STATUSES as CREDENTIAL_STATUSES
from penstock.schema import Call, Response

REQUESTS_QUERY = (
    LIMIT,
    *cursors("request"),
    Query(name="created_after", type="time", about="Created at this moment or later."),
    Query(name="created_before", type="time", about="Created at this moment or earlier."),
    Query(name="key_id", about="Made with this key."),
    Query(name="status", one_of=STATUSES, about="In this state."),
    Query(name="model", about="Of this model, by the name in the call."),
    Query(name="provider", about="Served by this provider, or last sent to it."),
    Query(name="kind", one_of=KINDS, about="Of this kind."),
    Query(name="user", about="Of this end user."),
    Query(name="session_id", about="Of this session."),
    LABEL_FILTER,
    Query(
        name="content_credentials",
        one_of=tuple(CREDENTIAL_STATUSES),
        about="With an output whose Content Credentials have this status.",
    ),
    Query(
        name="search",
        about="With all these words in the prompt, where it is stored, or this text in `user`, `session_id` or the id; "
        "`req_…` is the beginning of the id.",
    ),
    Query(name="sha256", about="That delivered the file with this SHA-256, in hexadecimal; alone, without filters."),
    Query(name="manifest", about="That delivered the file with these Content Credentials, `urn:c2pa:…`; alone."),
    Query(name="summary", type="boolean", default=False, about="Add count and cost of everything that matches."),
    Query(
        name="format",
        one_of=("json", "csv"),
        about="`csv` returns everything that matches, as does `Accept: text/csv`; without pages and summary.",
    ),
)


async def list_requests(gateway: Gateway, call: Call) -> Response:
    asked = query.read(REQUESTS_QUERY, call.query)
    filters = read_filters(asked)
    check_label_filter(call.caller, filters.labels)
    if READ in call.caller.scopes and (asked["search"] or asked["sha256"] or asked["manifest"]):
        raise PermissionDenied("With the `read` scope, requests cannot be found by what was asked or made.")
    if asked["format"] == "csv" or (asked["format"] is None and call.headers.get("accept") == "text/csv"):
        response = _csv_response(gateway, call, filters)
        await note_act(gateway.store, call.at_ms, Act("requests.exported", call.caller.org_id, call.caller.org_id))
        return response
    if asked["sha256"] or asked["manifest"]:
        return await _by_file(gateway, call, asked["sha256"], asked["manifest"])
    page = await gateway.requests.list_page(call.caller.org_id, filters)
    records = await detailed_records(gateway, call, page.data)
    body = page_body(call, REQUESTS_QUERY, page.with_data(records))
    return tagged_response(call, {**body, "summary": page.summary} if filters.summary else body, records)


async def _by_file(gateway: Gateway, call: Call, sha256: str | None, manifest: str | None) -> Response:
    """The request that delivered a file, as a list of at most one."""
    try:
        digest = bytes.fromhex(sha256) if sha256 else None
    except ValueError:
        raise InvalidRequest("`sha256` must be 64 hexadecimal digits.", param="sha256") from None
    request_id = await find_request(gateway, call.caller.org_id, digest, manifest)
    row = await gateway.requests.get(call.caller.org_id, request_id) if request_id else None
    records = await detailed_records(gateway, call, [row] if row else [])
    body = {"object": "list", "data": records, "next_page_url": None, "previous_page_url": None}
    return tagged_response(call, body, records)


def _csv_response(gateway: Gateway, call: Call, filters: Filters) -> Response:
    for name in ("limit", "starting_after", "ending_before", "summary"):
        if name in call.query:
            raise InvalidRequest(f"`{name}` cannot be combined with CSV, which has all that matches.", param=name)
    org_id = call.caller.org_id
    rows = gateway.requests.iterate(org_id, filters)

    async def read_columns(ids: Sequence[str]) -> dict[str, dict[str, Any]]:
        statuses = await credential_statuses(gateway.store, ids, org_id)
        prompts = await read_prompts(gateway.store, ids if READ not in call.caller.scopes else [], org_id)
        return {id_: {"content_credentials": statuses.get(id_), "prompt": prompts.get(id_)} for id_ in ids}

    return Response(
        chunks=csv_lines(rows, read_columns),
        headers={"content-disposition": 'attachment; filename="requests.csv"', "cache-control": "no-store"},
        media_type="text/csv; charset=utf-8",
    )


def read_filters(asked: Mapping[str, Any]) -> Filters:
    return Filters(
        limit=asked["limit"],
        starting_after=asked["starting_after"],
        ending_before=asked["ending_before"],
        created_after_ms=asked["created_after"],
        created_before_ms=asked["created_before"],
        key_id=asked["key_id"],
        status=asked["status"],
        model=asked["model"],
        provider=asked["provider"],
        kind=asked["kind"],
        user=asked["user"],
        session_id=asked["session_id"],
        labels=asked["label."],
        content_credentials=asked["content_credentials"],
        search=asked["search"],
        summary=asked["summary"],
    )


async def retrieve_request(gateway: Gateway, call: Call) -> Response:
    request_id = path_id(call, "request_id", "req", "request")
    row = await gateway.requests.get(call.caller.org_id, request_id)
    if row is None:
        raise NotFound(f"No such request: {request_id}.")
    [record] = await detailed_records(gateway, call, [row])
    return tagged_response(call, record, [record])


def tagged_response(call: Call, body: dict[str, Any], records: Sequence[Mapping[str, Any]]) -> Response:
    """Return records with an entity tag, or status 304 to a caller who has them already.

    URLs of outputs do not count: they are new each time.
    """
    stable = [{**record, "outputs": [output["id"] for output in record["outputs"]]} for record in records]
    ends = [body.get(name) for name in ("next_page_url", "previous_page_url", "summary")]
    digest = blake2b(encode([stable, ends]), digest_size=16).hexdigest()
    headers = {"etag": f'W/"{digest}"', "cache-control": "private, no-cache"}
    if call.headers.get("if-none-match") == headers["etag"]:
        return Response(status=304, headers=headers)
    return Response(json=body, headers=headers)
