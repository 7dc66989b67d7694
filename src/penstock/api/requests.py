"""List and retrieve request records."""

from penstock.accounts.requests import STATUSES, Filters
from penstock.api import query
from penstock.api.paging import LIMIT, cursors, page_body, path_id
from penstock.api.route import Query
from penstock.errors import NotFound
from penstock.gateway import Gateway
from penstock.schema import Call, Response

REQUESTS_QUERY = (
    LIMIT,
    *cursors("request"),
    Query(name="created_after", type="time", about="Created at this moment or later."),
    Query(name="created_before", type="time", about="Created at this moment or earlier."),
    Query(name="key_id", about="Made with this key."),
    Query(name="status", one_of=STATUSES, about="In this state."),
    Query(name="summary", type="boolean", default=False, about="Add count and cost of everything that matches."),
)


async def list_requests(gateway: Gateway, call: Call) -> Response:
    asked = query.read(REQUESTS_QUERY, call.query)
    filters = Filters(
        limit=asked["limit"],
        starting_after=asked["starting_after"],
        ending_before=asked["ending_before"],
        created_after_ms=asked["created_after"],
        created_before_ms=asked["created_before"],
        key_id=asked["key_id"],
        status=asked["status"],
        summary=asked["summary"],
    )
    page = await gateway.requests.list_records(call.caller.org_id, filters)
    body = page_body(call, REQUESTS_QUERY, page)
    return Response(json={**body, "summary": page.summary} if filters.summary else body)


async def retrieve_request(gateway: Gateway, call: Call) -> Response:
    request_id = path_id(call, "request_id", "req", "request")
    record = await gateway.requests.get_record(call.caller.org_id, request_id)
    if record is None:
        raise NotFound(f"No such request: {request_id}.")
    return Response(json=record)
