"""List and change accounts at vendors: operators all of them, admins those of their organization."""

from typing import Any

from penstock.accounts.key_records import ADMIN, OPERATOR
from penstock.api import query
from penstock.api.fields import checked_fields
from penstock.api.responses import NO_STORE
from penstock.api.route import Query
from penstock.errors import PermissionDenied
from penstock.fields import Field, array_field, field_table, flag_field, integer_field, number_field, text_field
from penstock.gateway import Gateway
from penstock.models.account_values import (
    MAX_CONCURRENT,
    MAX_CREDENTIAL_CHARS,
    MAX_NAME_CHARS,
    MAX_PER_MINUTE,
    MAX_PRIORITY,
    MAX_USD,
    MAX_WEIGHT,
    STATUSES,
)
from penstock.models.vendor_accounts import ANYBODY, Owner
from penstock.schema import Call, Response
from penstock.values import OrgId

_CREDENTIAL = text_field(
    "credential",
    "What the vendor gave you; no response ever contains it.",
    required=True,
    max_length=MAX_CREDENTIAL_CHARS,
)
_OPTIONS: tuple[Field, ...] = (
    text_field("name", "Name of the account.", max_length=MAX_NAME_CHARS),
    integer_field("weight", "How often it is chosen among equals.", low=1, high=MAX_WEIGHT),
    integer_field("priority", "Accounts with a lower number are tried first.", low=0, high=MAX_PRIORITY),
    integer_field("concurrent", "Calls and jobs at a time; null for any number.", low=1, high=MAX_CONCURRENT),
    integer_field("requests_per_minute", "Calls in a minute; null for any number.", low=1, high=MAX_PER_MINUTE),
    number_field(
        "usd_per_month",
        "Dollars in a month (UTC), after which it takes no new calls; null for any.",
        low=0.01,
        high=MAX_USD,
    ),
    flag_field(
        "fallback_to_shared",
        "Of an account of an organization: whether the operator's accounts may serve what it cannot.",
    ),
    integer_field(
        "fee_percent", "What calls by it cost, in percent of the price; null as the settings say.", low=0, high=100
    ),
    array_field("models", "Models that it serves: ids, or beginnings that end with `*`; null for all."),
)
ACCOUNT_FIELDS = field_table(
    text_field("provider", "Id of the provider, such as `fal`.", required=True),
    _CREDENTIAL,
    text_field("org_id", "The organization whose account it is; null for the operator's."),
    *_OPTIONS,
)
ACCOUNT_CHANGE_FIELDS = field_table(*_OPTIONS, text_field("status", "`off` takes no new jobs.", one_of=STATUSES))
ACCOUNT_ROTATE_FIELDS = field_table(_CREDENTIAL)
DELETE_QUERY = (
    Query(
        name="drain",
        type="boolean",
        default=False,
        about="Keep it for the jobs that it has started, and delete it after the last of them.",
    ),
)


def _owner(gateway: Gateway, call: Call) -> Owner:
    """Whose accounts the caller may manage: operators everybody's, admins those of their organization if organizations
    may bring any. Raises PermissionDenied for others.
    """
    scopes = call.caller.scopes
    if OPERATOR in scopes:
        return ANYBODY
    if not gateway.settings.own_accounts:
        raise PermissionDenied("This call needs a key with the `operator` scope.")
    if ADMIN not in scopes:
        raise PermissionDenied("This call needs a key with the `admin` scope.")
    return call.caller.org_id


def _options(fields: dict[str, Any], owner: Owner) -> dict[str, Any]:
    """The options that are given; raise PermissionDenied for one that only operators may set."""
    if owner is not ANYBODY and (name := next((name for name in ("fee_percent", "org_id") if name in fields), None)):
        raise PermissionDenied(f"Only an operator can set `{name}`.", param=name)
    return fields


async def list_accounts(gateway: Gateway, call: Call) -> Response:
    owner = _owner(gateway, call)
    await gateway.vendor_accounts.refresh()
    return Response(json={"object": "list", "data": gateway.vendor_accounts.list_records(owner)})


async def add_account(gateway: Gateway, call: Call) -> Response:
    """Add an account. Every process uses it within two seconds."""
    owner = _owner(gateway, call)
    fields = _options(checked_fields(call.json, ACCOUNT_FIELDS), owner)
    provider = fields.pop("provider")
    credential = fields.pop("credential")
    if org_id := fields.pop("org_id", None):
        owner = OrgId(org_id)
    return Response(json=await gateway.vendor_accounts.add(provider, credential, fields, owner), headers=NO_STORE)


async def change_account(gateway: Gateway, call: Call) -> Response:
    owner = _owner(gateway, call)
    fields = _options(checked_fields(call.json, ACCOUNT_CHANGE_FIELDS, keeps_null=True), owner)
    return Response(json=await gateway.vendor_accounts.change(call.path["account_id"], fields, owner))


async def rotate_account(gateway: Gateway, call: Call) -> Response:
    """Replace the credential, also for the jobs that run."""
    owner = _owner(gateway, call)
    credential = checked_fields(call.json, ACCOUNT_ROTATE_FIELDS)["credential"]
    record = await gateway.vendor_accounts.rotate(call.path["account_id"], credential, owner)
    return Response(json=record, headers=NO_STORE)


async def delete_account(gateway: Gateway, call: Call) -> Response:
    """Delete an account, or let it end its jobs first."""
    owner = _owner(gateway, call)
    drain = query.read(DELETE_QUERY, call.query)["drain"]
    left = await gateway.vendor_accounts.delete(call.path["account_id"], drain=drain, owner=owner)
    return Response(status=204) if left is None else Response(json=left)
