"""List, add, change, rotate and delete accounts at vendors, for operators."""

from penstock.api import query
from penstock.api.fields import checked_fields
from penstock.api.responses import NO_STORE
from penstock.api.route import Query
from penstock.fields import Field, array_field, field_table, integer_field, number_field, text_field
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
from penstock.schema import Call, Response

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
        low=0,
        high=MAX_USD,
    ),
    array_field("models", "Models that it serves: ids, or beginnings that end with `*`; null for all."),
)
ACCOUNT_FIELDS = field_table(
    text_field("provider", "Id of the provider, such as `fal`.", required=True), _CREDENTIAL, *_OPTIONS
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


async def list_accounts(gateway: Gateway, call: Call) -> Response:
    await gateway.accounts.refresh()
    return Response(json={"object": "list", "data": gateway.accounts.list_records()})


async def add_account(gateway: Gateway, call: Call) -> Response:
    """Add an account. Every process uses it within two seconds."""
    fields = checked_fields(call.json, ACCOUNT_FIELDS)
    provider = fields.pop("provider")
    credential = fields.pop("credential")
    return Response(json=await gateway.accounts.add(provider, credential, fields), headers=NO_STORE)


async def change_account(gateway: Gateway, call: Call) -> Response:
    fields = checked_fields(call.json, ACCOUNT_CHANGE_FIELDS, keeps_null=True)
    return Response(json=await gateway.accounts.change(call.path["account_id"], fields))


async def rotate_account(gateway: Gateway, call: Call) -> Response:
    """Replace the credential, also for the jobs that run."""
    credential = checked_fields(call.json, ACCOUNT_ROTATE_FIELDS)["credential"]
    return Response(json=await gateway.accounts.rotate(call.path["account_id"], credential), headers=NO_STORE)


async def delete_account(gateway: Gateway, call: Call) -> Response:
    """Delete an account, or let it end its jobs first."""
    drain = query.read(DELETE_QUERY, call.query)["drain"]
    left = await gateway.accounts.delete(call.path["account_id"], drain=drain)
    return Response(status=204) if left is None else Response(json=left)
