"""List, create, change and revoke API keys."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from penstock.accounts.key_records import ADMIN, FAULTS, GRANTED_BY_API
from penstock.accounts.labels import check_declared_names
from penstock.api import query
from penstock.api.fields import checked_fields
from penstock.api.paging import LIMIT, cursors, page_body, path_id
from penstock.api.responses import NO_STORE
from penstock.api.route import Query
from penstock.errors import InvalidRequest, quoted
from penstock.fields import Field, array_field, field_table, integer_field, number_field, object_field, text_field
from penstock.gateway import Gateway
from penstock.schema import Call, Response
from penstock.states import KEY
from penstock.values import IMAGE_FORMS, REPLAY_MODES, OrgId

KEYS_QUERY = (LIMIT, *cursors("key"), Query(name="status", one_of=tuple(KEY), about="In this state."))

_MAX_COUNT = 2**31 - 1
KEY_FIELDS = field_table(
    text_field("name", "Name of the key.", max_length=200),
    array_field(
        "scopes", f"`{ADMIN}` lets the key manage keys and webhooks, `{FAULTS}` ask for faults in its own calls."
    ),
    integer_field("requests_per_minute", "Maximum requests per minute.", low=1, high=_MAX_COUNT),
    integer_field("concurrent_requests", "Maximum requests at once.", low=1, high=_MAX_COUNT),
    number_field("usd_per_day", "Maximum spend per UTC day.", low=0, high=1_000_000),
    number_field("usd_per_month", "Maximum spend per UTC month.", low=0, high=1_000_000),
    array_field("models", "Models that the key may use: ids, or beginnings that end with `*`; null for all."),
    text_field("expires_at", "When the key stops working, in ISO 8601."),
    text_field("replay_mode", "Replay mode of calls that name none.", one_of=REPLAY_MODES),
    text_field("image_response_format", "How images are returned to calls that name no form.", one_of=IMAGE_FORMS),
    object_field("labels", "Labels of all calls with this key, which calls cannot change."),
)
CHANGE_FIELDS: Mapping[str, Field] = {name: row for name, row in KEY_FIELDS.items() if name != "scopes"}


async def list_keys(gateway: Gateway, call: Call) -> Response:
    asked = query.read(KEYS_QUERY, call.query)
    page = await gateway.keys.list_records(call.caller.org_id, **asked)
    return Response(json=page_body(call, KEYS_QUERY, page))


async def retrieve_own_key(gateway: Gateway, call: Call) -> Response:
    """Return the key of this call with its scopes, so that a client knows what it may do."""
    return Response(json=await gateway.keys.get_record(call.caller))


async def create_key(gateway: Gateway, call: Call) -> Response:
    """Create a key. No other response ever contains the whole key."""
    return await create_key_of(gateway, call.caller.org_id, call.json)


async def create_key_of(gateway: Gateway, org_id: OrgId, body: Mapping[str, Any]) -> Response:
    """Create a key of an organization."""
    options = {name: value for name, value in key_options(body, KEY_FIELDS).items() if value is not None}
    await check_declared_names(gateway.store, org_id, options.get("labels", ()), "labels")
    new = await gateway.keys.create_key(org_id, **options)
    [record] = await gateway.keys.records(org_id, [new.row])
    return Response(json={**record, "key": new.key}, headers=NO_STORE)


async def retrieve_key(gateway: Gateway, call: Call) -> Response:
    key_id = path_id(call, "key_id", "key", "key")
    return Response(json=await gateway.keys.get_record_of(call.caller.org_id, key_id))


async def change_key(gateway: Gateway, call: Call) -> Response:
    """Change what the body names; null removes a limit."""
    key_id = path_id(call, "key_id", "key", "key")
    options = key_options(call.json, CHANGE_FIELDS)
    await check_declared_names(gateway.store, call.caller.org_id, options.get("labels") or (), "labels")
    row = await gateway.keys.change_key(call.caller.org_id, key_id, options)
    return Response(json=(await gateway.keys.records(call.caller.org_id, [row]))[0])


async def revoke_key(gateway: Gateway, call: Call) -> Response:
    key_id = path_id(call, "key_id", "key", "key")
    revoked = await gateway.keys.revoke_key(call.caller.org_id, key_id)
    return Response(json=(await gateway.keys.records(call.caller.org_id, [revoked]))[0])


def key_options(body: Mapping[str, Any], fields: Mapping[str, Field]) -> dict[str, Any]:
    """Return the fields of a key, checked; raise InvalidRequest for an unknown field or a bad value."""
    options = checked_fields(body, fields, keeps_null=True)
    for name in ("usd_per_day", "usd_per_month"):
        if options.get(name) is not None:
            options[name] = Decimal(str(options[name]))
    if any(scope not in GRANTED_BY_API for scope in options.get("scopes") or ()):
        allowed = quoted(GRANTED_BY_API)
        raise InvalidRequest(f"`scopes` must be an array; the scopes allowed in it are {allowed}.", param="scopes")
    return options
