"""List, create and revoke API keys."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from penstock.accounts.keys import ADMIN, key_record
from penstock.api import query
from penstock.api.paging import LIMIT, cursors, page_body, path_id
from penstock.api.responses import NO_STORE
from penstock.api.route import Query
from penstock.errors import InvalidRequest
from penstock.fields import Field, check_field
from penstock.gateway import Gateway
from penstock.schema import Call, Response
from penstock.states import KEY
from penstock.values import REPLAY_MODES

KEYS_QUERY = (LIMIT, *cursors("key"), Query(name="status", one_of=tuple(KEY), about="In this state."))

_MAX_COUNT = 2**31 - 1
KEY_FIELDS: Mapping[str, Field] = {
    row.name: row
    for row in (
        Field(name="name", types=("string",), about="Name of the key.", max_length=200),
        Field(name="scopes", types=("array",), about=f"`{ADMIN}` lets the key create and revoke keys."),
        Field(
            name="requests_per_minute", types=("integer",), about="Maximum requests per minute.", low=1, high=_MAX_COUNT
        ),
        Field(
            name="concurrent_requests", types=("integer",), about="Maximum requests at once.", low=1, high=_MAX_COUNT
        ),
        Field(name="usd_per_day", types=("number",), about="Maximum spend per UTC day.", low=0, high=1_000_000),
        Field(name="replay_mode", types=("string",), about="Replay mode of calls that name none.", one_of=REPLAY_MODES),
    )
}


async def list_keys(gateway: Gateway, call: Call) -> Response:
    asked = query.read(KEYS_QUERY, call.query)
    page = await gateway.keys.list_records(call.caller.org_id, **asked)
    return Response(json=page_body(call, KEYS_QUERY, page))


async def retrieve_own_key(gateway: Gateway, call: Call) -> Response:
    """Return the key of this call with its scopes, so that a client knows what it may do."""
    return Response(json=await gateway.keys.get_record(call.caller))


async def create_key(gateway: Gateway, call: Call) -> Response:
    """Create a key. No other response ever contains the whole key."""
    new = await gateway.keys.create_key(call.caller.org_id, **_key_options(call.json))
    return Response(json={**key_record(new.row), "key": new.key}, headers=NO_STORE)


async def revoke_key(gateway: Gateway, call: Call) -> Response:
    key_id = path_id(call, "key_id", "key", "key")
    revoked = await gateway.keys.revoke_key(call.caller.org_id, key_id)
    return Response(json=key_record(revoked))


def _key_options(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a new key, checked; raise InvalidRequest for an unknown field or a bad value."""
    options = {}
    for name, value in body.items():
        row = KEY_FIELDS.get(name)
        if row is None:
            known = ", ".join(f"`{field}`" for field in KEY_FIELDS)
            raise InvalidRequest(f"`{name[:64]}` is not a field of a key; allowed are {known}.", param=name[:64])
        if value is None:
            continue
        if isinstance(value, float) and value.is_integer():
            value = int(value)  # in JSON, 3.0 is the same number as 3
        check_field(row, value)
        options[name] = value
    if "usd_per_day" in options:
        options["usd_per_day"] = Decimal(str(options["usd_per_day"]))
    if any(scope != ADMIN for scope in options.get("scopes", ())):
        raise InvalidRequest(f"`scopes` must be an array; the only scope allowed in it is `{ADMIN}`.", param="scopes")
    return options
