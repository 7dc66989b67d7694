"""Keys that people make for themselves, and what admins limit these to."""

from decimal import Decimal

from penstock.api.endpoints.keys import KEY_FIELDS, key_options
from penstock.api.fields import checked_fields
from penstock.api.paging import path_id
from penstock.api.responses import NO_STORE
from penstock.errors import NotFound, PermissionDenied
from penstock.fields import array_field, field_table, integer_field, number_field
from penstock.gateway import Gateway
from penstock.people.own_keys import MAX_DAYS, MAX_KEYS, OPTIONS, checked_limits
from penstock.schema import Call, Response

_MAX_COUNT = 2**31 - 1
OWN_KEY_FIELDS = {name: KEY_FIELDS[name] for name in OPTIONS}
LIMIT_FIELDS = field_table(
    integer_field("keys", "Most keys that a person may have; 0 for none. By default 10.", low=0, high=MAX_KEYS),
    integer_field("days", "Most days that a key lasts. By default 90.", low=1, high=MAX_DAYS),
    integer_field("requests_per_minute", "Maximum requests per minute of each key.", low=1, high=_MAX_COUNT),
    integer_field("concurrent_requests", "Maximum requests at once of each key.", low=1, high=_MAX_COUNT),
    number_field("usd_per_day", "Maximum spend of each key per UTC day.", low=0, high=1_000_000),
    number_field("usd_per_month", "Maximum spend of each key per UTC month.", low=0, high=1_000_000),
    array_field("models", "Models that the keys may use: ids, or beginnings that end with `*`; null for all."),
)


async def list_own_keys(gateway: Gateway, call: Call) -> Response:
    """Return the active keys of the person who is signed in."""
    records = await gateway.own_keys.list_records(_person(call), call.caller.org_id)
    return Response(json={"object": "list", "data": records})


async def make_own_key(gateway: Gateway, call: Call) -> Response:
    """Make a key. No other response ever contains the whole key."""
    person = _person(call)
    options = key_options(call.json, OWN_KEY_FIELDS)
    new = await gateway.own_keys.create(person, call.caller.org_id, options)
    record = await gateway.keys.get_record_of(call.caller.org_id, new.id)
    return Response(json={**record, "key": new.key}, headers=NO_STORE)


async def revoke_own_key(gateway: Gateway, call: Call) -> Response:
    key_id = path_id(call, "key_id", "key", "key")
    if call.caller.user_id is None:
        raise NotFound(f"No such key of yours: {key_id}.")
    return Response(json=await gateway.own_keys.revoke(call.caller.user_id, call.caller.org_id, key_id))


async def retrieve_own_key_limits(gateway: Gateway, call: Call) -> Response:
    return Response(json=(await gateway.own_keys.limits(call.caller.org_id)).record())


async def set_own_key_limits(gateway: Gateway, call: Call) -> Response:
    """Replace the limits. They are for keys that are made from now on."""
    fields = checked_fields(call.json, LIMIT_FIELDS, keeps_null=True)
    for name in ("usd_per_day", "usd_per_month"):
        if fields.get(name) is not None:
            fields[name] = Decimal(str(fields[name]))
    limits = checked_limits(fields)
    await gateway.own_keys.set_limits(call.caller.org_id, limits)
    return Response(json=limits.record())


def _person(call: Call) -> str:
    """The id of the person whose session it is; a key has no keys."""
    if call.caller.user_id is None:
        raise PermissionDenied("Only somebody who has signed in as a person has keys of their own.")
    return call.caller.user_id
