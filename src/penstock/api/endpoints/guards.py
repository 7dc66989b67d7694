"""List what guards watch, and how often each gave each verdict."""

from penstock.accounts.key_records import ADMIN, OPERATOR
from penstock.api import query
from penstock.api.route import Query
from penstock.errors import PermissionDenied
from penstock.gateway import Gateway
from penstock.guards.records import guard_record, is_shown_to
from penstock.guards.verdict_counts import ALL_ORGS, MAX_DAYS, sum_verdicts
from penstock.schema import Call, Response

GUARDS_QUERY = (
    Query(
        name="days",
        type="integer",
        default=7,
        low=1,
        high=MAX_DAYS,
        about="Over how many UTC days verdicts are counted, with today.",
    ),
)


async def list_guards(gateway: Gateway, call: Call) -> Response:
    """Return the guards that watch the caller's organization with verdicts about its calls, or for operators all."""
    days = query.read(GUARDS_QUERY, call.query)["days"]
    scopes = call.caller.scopes
    if OPERATOR not in scopes and ADMIN not in scopes:
        raise PermissionDenied("This call needs a key with the `admin` or the `operator` scope.")
    org_id = ALL_ORGS if OPERATOR in scopes else call.caller.org_id
    await gateway.guards.counts.write()
    sums = await sum_verdicts(gateway.store, gateway.clock, org_id, days)
    shown = [guard for guard in gateway.guards.configured if is_shown_to(guard, org_id)]
    data = [guard_record(guard, sums.get(guard.name, {}), org_id) for guard in shown]
    return Response(json={"object": "list", "data": data, "days": days})
