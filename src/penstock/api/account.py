"""The native account API: request records, keys, balance, webhook secret."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from penstock.accounts.keys import ADMIN, REPLAY_MODES
from penstock.accounts.requests import STATUSES, Filters
from penstock.api import query
from penstock.api.paging import LIMIT, check_cursors, cursors, listed, path_id
from penstock.api.route import Query
from penstock.errors import InvalidRequest, NotFound
from penstock.fields import check_field
from penstock.gateway import Gateway
from penstock.schema import Call, Field, Response
from penstock.states import KEY

_SECRET = {"cache-control": "no-store"}

# ---------------------------------------------------------------------------------------------------------------- rows

REQUESTS_QUERY = (
    LIMIT,
    *cursors("request"),
    Query(name="created_after", type="time", about="Created at this moment or later."),
    Query(name="created_before", type="time", about="Created at this moment or earlier."),
    Query(name="key_id", about="Made with this key."),
    Query(name="status", one_of=STATUSES, about="In this state."),
    Query(name="summary", type="boolean", default=False, about="Add count and cost of everything that matches."),
)
KEYS_QUERY = (LIMIT, *cursors("key"), Query(name="status", one_of=tuple(KEY), about="In this state."))

_MOST_CALLS = 2**31 - 1
KEY_FIELDS: Mapping[str, Field] = {
    row.name: row
    for row in (
        Field(name="name", types=("string",), about="What to call the key.", longest=200),
        Field(name="scopes", types=("array",), about=f"`{ADMIN}` lets the key create and revoke keys."),
        Field(name="calls_a_minute", types=("integer",), about="Most calls in a minute.", low=1, high=_MOST_CALLS),
        Field(name="calls_at_once", types=("integer",), about="Most calls at a time.", low=1, high=_MOST_CALLS),
        Field(name="usd_a_day", types=("number",), about="Most dollars to spend in a day.", low=0, high=1_000_000),
        Field(name="replay_mode", types=("string",), about="Replay mode of calls that name none.", one_of=REPLAY_MODES),
    )
}

# ------------------------------------------------------------------------------------------------------------- records


async def list_requests(gateway: Gateway, call: Call) -> Response:
    asked = query.read(REQUESTS_QUERY, call.query)
    check_cursors(asked, "req", "request")
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
    page = await gateway.requests.page(call.caller.org_id, filters)
    shown = listed(call, REQUESTS_QUERY, page)
    return Response(json={**shown, "summary": page.summary} if filters.summary else shown)


async def retrieve_request(gateway: Gateway, call: Call) -> Response:
    request_id = path_id(call, "request_id", "req", "request")
    record = await gateway.requests.find(call.caller.org_id, request_id)
    if record is None:
        raise NotFound(f"No such request: {request_id}.")
    return Response(json=record)


# ---------------------------------------------------------------------------------------------------------------- keys


async def list_keys(gateway: Gateway, call: Call) -> Response:
    asked = query.read(KEYS_QUERY, call.query)
    check_cursors(asked, "key", "key")
    page = await gateway.keys.keys_page(call.caller.org_id, **asked)
    return Response(json=listed(call, KEYS_QUERY, page))


async def create_key(gateway: Gateway, call: Call) -> Response:
    """The answer is the only place where the whole key is ever shown."""
    asked = _key_wishes(call.json)
    new = await gateway.keys.create_key(call.caller.org_id, **asked)
    return Response(json={**new.record, "key": new.key}, headers=_SECRET)


async def revoke_key(gateway: Gateway, call: Call) -> Response:
    key_id = path_id(call, "key_id", "key", "key")
    return Response(json=await gateway.keys.revoke_key(call.caller.org_id, key_id))


def _key_wishes(body: Mapping[str, Any]) -> dict[str, Any]:
    wishes = {}
    for name, value in body.items():
        row = KEY_FIELDS.get(name)
        if row is None:
            raise InvalidRequest(f"`{name[:64]}` is not a field of a key.", param=name[:64])
        if value is None:
            continue
        if isinstance(value, float) and value.is_integer():
            value = int(value)  # JSON knows one kind of number
        check_field(row, value)
        wishes[name] = value
    if "usd_a_day" in wishes:
        wishes["usd_a_day"] = Decimal(str(wishes["usd_a_day"]))
    if not all(isinstance(scope, str) for scope in wishes.get("scopes", ())):
        raise InvalidRequest("`scopes` must be an array of strings.", param="scopes")
    return wishes


# --------------------------------------------------------------------------------------------------------------- money


async def balance(gateway: Gateway, call: Call) -> Response:
    return Response(json=await gateway.billing.balance(call.caller.org_id))


async def webhook_secret(gateway: Gateway, call: Call) -> Response:
    return Response(json={"key": await gateway.webhooks.secret(call.caller.org_id)}, headers=_SECRET)
