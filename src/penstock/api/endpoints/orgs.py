"""List, create and change organizations, add credit to them and create keys for them; for operators."""

from decimal import Decimal
from typing import Any

from penstock.accounts import transfers
from penstock.accounts.limits import month_start_ms
from penstock.accounts.orgs import (
    BILLING_TYPES,
    MAX_NAME_CHARS,
    MAX_USD_PER_MONTH,
    Org,
    change_org,
    create_org,
    credit_org,
    get_org,
    list_orgs,
)
from penstock.api import query
from penstock.api.endpoints.keys import create_key_of
from penstock.api.fields import checked_fields
from penstock.api.paging import LIMIT, path_id
from penstock.fields import field_table, integer_field, number_field, text_field
from penstock.gateway import Gateway
from penstock.schema import SLOT_MS, Call, Response
from penstock.values import ZERO, Nanos, OrgId, dollars, iso, nanos

_MIN_USD = 0.01
_MAX_USD = 1_000_000
_MAX_BYTES = 2**53 - 1  # what a number in JSON can say exactly
CREDITS_QUERY = (LIMIT,)
ORG_FIELDS = field_table(
    text_field("name", "Name.", required=True, max_length=MAX_NAME_CHARS),
    text_field("billing_type", "How it pays; by default as the setting `billing` says.", one_of=BILLING_TYPES),
)
ORG_CHANGE_FIELDS = field_table(
    text_field("name", "Name.", max_length=MAX_NAME_CHARS),
    number_field(
        "usd_per_month",
        "Most that all its keys together may spend per UTC month; null for no limit.",
        low=0,
        high=MAX_USD_PER_MONTH,
    ),
    integer_field(
        "storage_bytes",
        "Most bytes of its stored files; 0 for no limit, null for the setting `storage_bytes_per_org`.",
        low=0,
        high=_MAX_BYTES,
    ),
    text_field(
        "provenance",
        "What is asked of the Content Credentials of its outputs, such as `keep` or `sign; required`, which its calls "
        "cannot lower; null for the setting `provenance`.",
        max_length=64,
    ),
)
CREDIT_FIELDS = field_table(
    number_field("usd", "Amount in US dollars.", required=True, low=_MIN_USD, high=_MAX_USD),
    text_field("note", "Note that is stored with the credit.", max_length=200),
)


async def list_organizations(gateway: Gateway, call: Call) -> Response:
    """Return all organizations, oldest first."""
    orgs = await list_orgs(gateway.store)
    spent = await _spent_this_month(gateway, None)
    return Response(json={"object": "list", "data": [_org_record(org, spent.get(org.id, ZERO)) for org in orgs]})


async def retrieve_organization(gateway: Gateway, call: Call) -> Response:
    org = await _org(gateway, call)
    return Response(json=_org_record(org, (await _spent_this_month(gateway, org.id))[org.id]))


async def create_organization(gateway: Gateway, call: Call) -> Response:
    fields = checked_fields(call.json, ORG_FIELDS)
    billing = fields.get("billing_type", gateway.settings.billing)
    org = await create_org(gateway.store, gateway.clock, fields["name"], billing)
    return Response(json=_org_record(org, ZERO))


async def change_organization(gateway: Gateway, call: Call) -> Response:
    """Change what the body names; null removes a limit."""
    org = await _org(gateway, call)
    fields = checked_fields(call.json, ORG_CHANGE_FIELDS, keeps_null=True)
    if "usd_per_month" in fields:
        usd = fields.pop("usd_per_month")
        fields["nanos_per_month"] = None if usd is None else nanos(Decimal(str(usd)))
    changed = await change_org(gateway.store, gateway.clock, org.id, fields)
    return Response(json=_org_record(changed, (await _spent_this_month(gateway, org.id))[org.id]))


async def create_key_for_organization(gateway: Gateway, call: Call) -> Response:
    """Create a key of any organization, for its first user. No other response ever contains the whole key."""
    return await create_key_of(gateway, (await _org(gateway, call)).id, call.json)


async def add_credit_to_organization(gateway: Gateway, call: Call) -> Response:
    """Add credit. It is stored with a note that names the key which added it."""
    fields = checked_fields(call.json, CREDIT_FIELDS)
    amount = nanos(Decimal(str(fields["usd"])))
    org = await _org(gateway, call)
    note = f"{fields.get('note') or 'added over the API'} (by {call.caller.key_id})"
    credit = await credit_org(gateway.store, gateway.clock, org.id, amount, note)
    return Response(json=_credit_record(credit))


async def list_credits(gateway: Gateway, call: Call) -> Response:
    """Return the newest credits of an organization."""
    asked = query.read(CREDITS_QUERY, call.query)
    org = await _org(gateway, call)
    credits = await transfers.list_credits(gateway.store, org.id, asked["limit"])
    return Response(json={"object": "list", "data": [_credit_record(credit) for credit in credits]})


async def _org(gateway: Gateway, call: Call) -> Org:
    return await get_org(gateway.store, OrgId(path_id(call, "org_id", "org", "organization")))


async def _spent_this_month(gateway: Gateway, org_id: OrgId | None) -> dict[str, Nanos]:
    """Return what one organization or each one has spent in this UTC month."""
    month = month_start_ms(gateway.clock.now_ms()) // SLOT_MS
    rows = await gateway.store.slow("sum_spend_of_orgs", id=org_id, month=month)
    return {row["id"]: Nanos(int(row["spent"])) for row in rows}


def _org_record(org: Org, spent: Nanos) -> dict[str, Any]:
    return {
        "id": org.id,
        "object": "organization",
        "name": org.name,
        "billing_type": org.billing,
        "available": dollars(org.available),
        "held": dollars(org.held),
        "usd_per_month": None if org.nanos_per_month is None else dollars(Nanos(org.nanos_per_month)),
        "spent_this_month": dollars(spent),
        "storage_bytes": org.storage_bytes,
        "provenance": org.provenance,
        "created_at": iso(org.created_at_ms),
    }


def _credit_record(credit: transfers.Credit) -> dict[str, Any]:
    return {
        "id": credit.id,
        "object": "credit",
        "org_id": credit.org_id,
        "amount": dollars(credit.amount),
        "note": credit.note,
        "created_at": iso(credit.created_at_ms),
    }
